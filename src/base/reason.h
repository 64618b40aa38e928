/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Every refusal, error completion and drop has a reason: one code and one meaning, listed here and
 * nowhere else.
 *
 * A failed completion carries the code in vendor_err. The log prints the code beside a sentence
 * that is formatted where the fault arises. A code never changes its meaning; a new code goes to
 * the end of its group.
 */
#ifndef VB_BASE_REASON_H
#define VB_BASE_REASON_H

#include <stdint.h>

/* X(code, NAME, meaning) */
#define VB_REASONS(X)                                                                              \
	/* 0x1xx: arguments of a call */                                                           \
	X(0x101, ARG, "an argument has a value that the call does not take")                       \
	X(0x102, ARG_MASK, "a mask names a bit that is unknown or not allowed here")               \
	X(0x103, ARG_LIMIT, "more was asked for than the device's limit")                          \
	X(0x104, UNSUPPORTED, "this device does not offer what was asked for")                     \
	X(0x105, HANDLE, "the object does not belong to this context or is already destroyed")     \
	X(0x106, BUSY, "other objects still use this one")                                         \
	X(0x107, NO_MEMORY, "memory or a table of the device is exhausted")                        \
	X(0x108, PERMISSION, "the caller lacks a privilege")                                       \
	X(0x109, UNMAPPED, "the address range is not mapped with the rights asked for")            \
	X(0x10a, FORKED, "the object was inherited through fork and belongs to the parent")        \
	X(0x10b, UNREACHABLE, "no link reaches the destination address")                           \
	X(0x10c, SYSTEM, "a system call of the device failed")                                     \
	X(0x10d, PORT_TAKEN, "another user or a driver holds the UDP port of RoCEv2")              \
	X(0x10e, FLOW_SPEC, "a flow rule's specs are malformed or contradict each other")          \
	X(0x10f, ALLOCATOR, "the parent domain's allocator gave no usable memory")                 \
	/* 0x2xx: queues and states */                                                             \
	X(0x201, QP_STATE, "the queue pair's state does not allow this")                           \
	X(0x202, QP_TRANSITION, "no such state transition")                                        \
	X(0x203, QP_ATTR_MISSING, "the transition needs an attribute that is not in the mask")     \
	X(0x204, QP_ATTR_EXTRA, "the transition does not take an attribute that is in the mask")   \
	X(0x205, QUEUE_FULL, "the work queue is full")                                             \
	X(0x206, OPCODE, "the operation does not exist for this queue pair type")                  \
	X(0x207, SGE_COUNT, "more scatter/gather elements than the queue was created with")        \
	X(0x208, INLINE_LENGTH, "more inline data than the queue was created with")                \
	X(0x209, FLUSHED, "flushed: the queue pair is in the error state")                         \
	X(0x20a, CQ_OVERRUN, "the completion queue has no room")                                   \
	X(0x20b, AH_PD, "the address handle belongs to another protection domain")                 \
	X(0x20c, RD_ATOMIC_ZERO, "max_rd_atomic is 0, no READ or ATOMIC may start")                \
	X(0x20d, FLUSHED_LOCAL, "flushed: an earlier work request of this queue failed")           \
	X(0x20e, TAG_GONE, "no such tagged buffer: a message has taken it, or it was removed")     \
	/* 0x3xx: local memory */                                                                  \
	X(0x301, LKEY_UNKNOWN, "no such local key")                                                \
	X(0x302, LKEY_PD, "the local key belongs to another protection domain")                    \
	X(0x303, LKEY_RANGE, "the address range exceeds the memory region")                        \
	X(0x304, LKEY_ACCESS, "the memory region lacks LOCAL_WRITE")                               \
	X(0x305, MESSAGE_LENGTH, "the message is longer than the port or the path allows")         \
	X(0x306, ATOMIC_LENGTH, "an atomic needs scatter elements of exactly 8 bytes in sum")      \
	X(0x307, MEMORY_GONE, "registered memory is no longer mapped")                             \
	X(0x308, BIND_WINDOW, "the window to bind is unknown or of the other type")                \
	X(0x309, BIND_BOUND, "the type 2 window is bound: it has to be invalidated first")         \
	X(0x30a, BIND_REGION, "the region to bind to is unknown or not registered for windows")    \
	X(0x30b, BIND_RANGE, "the range to bind is empty or exceeds the memory region")            \
	X(0x30c, BIND_ACCESS, "a window may not allow changes that its region does not allow")     \
	X(0x30d, BIND_PD, "window, region and queue pair are not of one protection domain")        \
	X(0x30e, OWNER_GONE, "the process that owns the imported object has ended")                \
	/* 0x4xx: what the responder refuses */                                                    \
	X(0x401, RKEY_UNKNOWN, "no such remote key")                                               \
	X(0x402, RKEY_PD, "the remote key belongs to another protection domain")                   \
	X(0x403, RKEY_RANGE, "the remote range exceeds the memory region")                         \
	X(0x404, RKEY_ACCESS, "the memory region lacks the remote access flag")                    \
	X(0x405, QP_ACCESS, "the queue pair lacks the remote access flag")                         \
	X(0x406, ATOMIC_ALIGN, "the remote address of an atomic is not a multiple of 8")           \
	X(0x407, RD_ATOMIC_EXCEEDED, "more READs and ATOMICs at once than max_dest_rd_atomic")     \
	X(0x408, RECV_TOO_SMALL, "the receive buffers are shorter than the message")               \
	X(0x409, OPCODE_SEQUENCE, "packets of a message arrived in an impossible order")           \
	X(0x40a, RETH_LENGTH, "the RETH's length is over 2^31 or does not match the data")         \
	X(0x40b, NO_RECEIVE, "no receive was posted")                                              \
	X(0x40c, PACKET_LENGTH, "a packet's length does not fit its opcode or the path MTU")       \
	X(0x40d, INVALIDATE, "the key to invalidate is no bound type 2 window of this queue pair") \
	X(0x40e, SRQ_UNKNOWN, "the request names no shared receive queue of the XRC domain")       \
	X(0x40f, RKEY_QP, "the memory window is bound on another queue pair")                      \
	X(0x410, RKEY_OWNER_GONE, "the process that owns the imported region has ended")           \
	X(0x411, FLUSH_TYPE, "a FLUSH names no placement type, or an unknown type or level")       \
	/* 0x5xx: what the requester learns from the peer or the link */                           \
	X(0x501, NAK_SEQUENCE, "the peer missed a packet")                                         \
	X(0x502, NAK_INVALID, "the peer answered: invalid request")                                \
	X(0x503, NAK_ACCESS, "the peer answered: remote access error")                             \
	X(0x504, NAK_OPERATION, "the peer answered: remote operational error")                     \
	X(0x505, RNR_EXCEEDED, "the peer had no receive posted, rnr_retry is used up")             \
	X(0x506, RETRY_EXCEEDED, "the peer did not answer, retry_cnt is used up")                  \
	X(0x507, PEER_DEAD, "the peer's process has ended")                                        \
	X(0x508, BAD_RESPONSE, "a response does not fit its request")                              \
	X(0x509, PEER_NOT_READY, "the peer dropped the request: its queue pair is not ready")      \
	X(0x50a, PEER_NOT_YET, "the peer's queue pair has not been brought to RTR yet")            \
	X(0x50b, PEER_FAILED, "the peer's queue pair is in the error state after a fault")         \
	X(0x50c, PEER_NO_QP, "nobody has the queue pair number of the destination")                \
	X(0x50d, PEER_TYPE, "the peer's queue pair is of another type")                            \
	X(0x50e, PEER_SOURCE, "the peer's queue pair is connected to another one")                 \
	X(0x50f, PEER_PKEY, "the peer's queue pair has another P_Key")                             \
	X(0x510, PEER_PSN, "the peer expects another PSN: sq_psn here is not rq_psn there")        \
	/* 0x6xx: drops */                                                                         \
	X(0x601, DROP_QPN, "no such queue pair")                                                   \
	X(0x602, DROP_STATE, "the queue pair is not ready to receive")                             \
	X(0x603, DROP_TYPE, "the packet is for another queue pair type")                           \
	X(0x604, DROP_QKEY, "wrong Q_Key")                                                         \
	X(0x605, DROP_PKEY, "wrong P_Key")                                                         \
	X(0x606, DROP_SOURCE, "the sender is not the queue pair's peer")                           \
	X(0x607, DROP_NO_RECEIVE, "no receive was posted (unreliable service)")                    \
	X(0x608, DROP_TOO_LONG, "the message is longer than the receive (unreliable service)")     \
	X(0x609, DROP_STALE, "an old or impossible PSN")                                           \
	X(0x60a, DROP_MALFORMED, "the packet is malformed")                                        \
	X(0x60b, DROP_SEQUENCE, "a packet of an unreliable message is missing")                    \
	X(0x60c, DROP_UNREACHABLE, "no link reaches the destination")                              \
	X(0x60d, DROP_ACCESS, "an unreliable RDMA WRITE failed its access check")                  \
	X(0x60e, DROP_OPCODE, "the packet's opcode is unknown")                                    \
	X(0x60f, DROP_VERSION, "the packet has an unknown transport version")                      \
	X(0x610, DROP_ICRC, "the packet's ICRC is wrong")                                          \
	X(0x611, DROP_CONGESTION, "a congestion notification, to which nothing here listens")      \
	X(0x612, DROP_SEND_BUFFER, "the send buffer of the UDP socket is full")                    \
	X(0x613, DROP_INBOX, "the engine that a packet is for does not keep up")                   \
	X(0x614, DROP_STRAY, "the packet is for a process of this host that cannot be reached")    \
	X(0x615, DROP_NOT_YET, "the queue pair has not been brought to RTR yet")                   \
	X(0x616, DROP_FAILED, "the queue pair is in the error state after a fault")                \
	X(0x617, DROP_PSN, "the PSN cannot be the sender's: rq_psn here is not sq_psn there")      \
	X(0x618, DROP_SOCKET_FULL, "the packet socket's buffer had no room for frames")            \
	X(0x619, DROP_FORGED, "the source is a number that is not its sender's")                   \
	/* 0x7xx: the host: names, pages, rings */                                                 \
	X(0x701, PEER_VERSION, "the peer speaks another version of the shared-memory protocol")    \
	X(0x702, PEER_USER, "the peer belongs to another user")                                    \
	X(0x703, PEER_CORRUPT, "the peer's shared memory holds impossible values")                 \
	X(0x704, NO_DIRECT_ACCESS, "direct access to the peer's memory is not possible")           \
	X(0x705, DESCRIPTORS_GONE, "the program closed descriptors of the device")                 \
	X(0x706, NAMES_TAKEN, "other processes hold the names of queue pair numbers")              \
	X(0x707, STRANGERS, "other users' processes ask for more than they are given")             \
	X(0x708, NO_ANSWER, "a process began to introduce itself and did not go on")               \
	X(0x709, PEER_SHORT, "the peer has no descriptor left for a connection")                   \
	X(0x70a, PEER_STILL, "a process that stands still is not waited for any longer")           \
	X(0x70b, NO_TRUST, "the peer may not have this process's memory")                          \
	X(0x70c, DESCRIPTORS_SHORT, "no descriptor is left here for a connection (RLIMIT_NOFILE)")

enum vb_reason {
	VB_REASON_NONE = 0,
#define VB_REASON_ENUM(code, name, text) VB_REASON_##name = code,
	VB_REASONS(VB_REASON_ENUM)
#undef VB_REASON_ENUM
};

/* The name ("LKEY_RANGE") and the meaning of a code; never NULL. */
const char *vb_reason_name(enum vb_reason reason);
const char *vb_reason_text(enum vb_reason reason);

/*
 * Counts and, at level debug, logs one occurrence. Thread-safe; not for the fast path of success.
 */
void vb_note(enum vb_reason reason, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * vb_note() for a refused call. Its value is -err, for `return vb_refuse(err, reason, fmt, ...)`.
 */
#define vb_refuse(err, ...) (vb_note(__VA_ARGS__), -(err))

/* How often the reason was noted by this process. */
uint64_t vb_reason_count(enum vb_reason reason);

#endif

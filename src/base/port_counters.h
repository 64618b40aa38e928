/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The counters of a port, and the file in which a process shows them to others.
 *
 * Each engine has a block of counters of its device's port. Only the holder of the engine's lock
 * writes it, with plain additions. With VERBATIM_VIEW the blocks lie in a file that the process has
 * mapped and that other processes read while it changes: a reader sees each number as it was at
 * some moment. Blocks are used again for other engines of the same device, and never set back, so
 * that the sum over a file only grows.
 *
 * Bytes are those of the payload. A packet is one of the path MTU, whatever the link
 * (transport/run.h); a direct access counts as the packets that it saves, at the initiator's port
 * in both directions.
 */
#ifndef VB_BASE_PORT_COUNTERS_H
#define VB_BASE_PORT_COUNTERS_H

#include <stdint.h>

/* X(name). A new counter goes to the end, and the version changes. */
#define VB_PORT_COUNTERS(X)                                                                   \
	X(tx_bytes)                                                                           \
	X(tx_packets)                                                                         \
	X(tx_multicast) /* packets, among tx_packets */                                       \
	X(tx_discards)  /* packets that could not be sent */                                  \
	X(rx_bytes)                                                                           \
	X(rx_packets)                                                                         \
	X(rx_multicast)                                                                       \
	X(rx_errors)     /* malformed packets, of wrong ICRC, opcode or version */            \
	X(rx_icrc)       /* of wrong ICRC, among rx_errors */                                 \
	X(rx_constraint) /* packets of wrong P_Key, Q_Key or source */                        \
	X(rx_dropped)    /* packets for which there was no queue pair, state or buffer */     \
	X(out_of_sequence)                                                                    \
	X(out_of_buffer) /* no receive was posted */                                          \
	X(duplicate_request)                                                                  \
	X(packet_seq_err)        /* NAKs of that kind received */                             \
	X(rnr_nak_retry_err)     /* RNR NAKs received */                                      \
	X(local_ack_timeout_err) /* acknowledgement timers that expired */                    \
	X(implied_nak_seq_err)   /* an acknowledgement beyond a response that has not come */ \
	X(resp_local_length_error)                                                            \
	X(resp_remote_access_errors)                                                          \
	X(resp_cqe_error)                                                                     \
	X(resp_cqe_flush_error)                                                               \
	X(req_cqe_error)                                                                      \
	X(req_cqe_flush_error)                                                                \
	X(req_remote_access_errors)                                                           \
	X(req_remote_invalid_request)                                                         \
	X(req_transport_retries_exceeded)                                                     \
	X(req_rnr_retries_exceeded)                                                           \
	X(rx_read_requests)                                                                   \
	X(rx_write_requests)                                                                  \
	X(rx_atomic_requests)

struct vb_port_counters {
#define VB_PORT_COUNTER_MEMBER(name) uint64_t name;
	VB_PORT_COUNTERS(VB_PORT_COUNTER_MEMBER)
#undef VB_PORT_COUNTER_MEMBER
};

enum {
	VB_COUNTER_DEVICE = 64, /* bytes of a device's name, with its end */
	VB_COUNTER_BLOCK = 512, /* bytes of a block */
	VB_COUNTER_VERSION = 1,
	VB_COUNTER_BLOCKS_MOST = 1 << 16,
};

#define VB_COUNTER_MAGIC 0x746e756f63627631ull

/* The first block of the file. */
struct vb_counter_head {
	uint64_t magic;
	uint32_t version;
	uint32_t blocks; /* that follow this one; grows only */
	/*
	 * The file of those that have ended (VB_COUNTER_ENDED), which is replaced as a whole: it
	 * counts its replacements, and has behind its blocks so many more, which name the files
	 * that were added to it last. A file that is still there under such a name is not to be
	 * counted again.
	 */
	uint64_t generation;
	uint32_t names;
};

struct vb_counter_block {
	char device[VB_COUNTER_DEVICE];
	struct vb_port_counters c;
};

_Static_assert(sizeof(struct vb_counter_block) <= VB_COUNTER_BLOCK, "a block has its room");

/* Below the view's directory. */
#define VB_COUNTER_FOLDER ".counters"
#define VB_COUNTER_ENDED  "ended"
/* Held (flock(2)) by who writes sums into the tree. */
#define VB_COUNTER_LOCK   "lock"
/* The most files that are added to the file of the ended at once. */
#define VB_COUNTER_NAMES  64

#endif

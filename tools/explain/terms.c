/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table of statuses, events and errnos. */
#include "explain/terms.h"

#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>

#define STATUS(name, text, cause, cure)                                        \
	{                                                                      \
		TERM_STATUS, IBV_WC_##name, "IBV_WC_" #name, text, cause, cure \
	}
#define EVENT(name, text, cause, cure)                                              \
	{                                                                           \
		TERM_EVENT, IBV_EVENT_##name, "IBV_EVENT_" #name, text, cause, cure \
	}
#define CALL(name, text, cause, cure)                      \
	{                                                  \
		TERM_ERRNO, name, #name, text, cause, cure \
	}

#define UNUSED_STATUS \
	"It belongs to a service that no present device offers; verbatim never reports it."
#define UNUSED_CURE "Look whether the program prints another number as a status."
#define INFINIBAND  "It belongs to InfiniBand fabrics; devices of verbatim never report it."
#define NOTHING     "Nothing has to be done."

/* clang-format off */
static const struct term terms[] = {
	STATUS(SUCCESS, "the work request has succeeded",
	       "Nothing failed.", NOTHING),
	STATUS(LOC_LEN_ERR, "a length does not fit, on this side",
	       "At a receive: the message is longer than the posted buffers. At a send: longer than the MTU (UD) or 2^31 bytes; an atomic whose elements are not 8 bytes.",
	       "Post receives for the longest message (UD: plus 40 bytes); send datagrams of at most active_mtu. The vendor_err says which: verbatim explain CODE."),
	STATUS(LOC_QP_OP_ERR, "the queue pair cannot do this operation",
	       "The operation does not fit the type of the queue pair, max_rd_atomic is 0, or an address handle is of another PD.",
	       "Look at the completion's vendor_err: verbatim explain CODE."),
	STATUS(LOC_EEC_OP_ERR, "an error of an end-to-end context", UNUSED_STATUS, UNUSED_CURE),
	STATUS(LOC_PROT_ERR, "a local buffer may not be used",
	       "An lkey of sg_list is unknown or of another PD, the range exceeds the region, the region lacks IBV_ACCESS_LOCAL_WRITE, or its memory was unmapped.",
	       "The vendor_err says which of them (0x301 to 0x307), and the report names element, key and range."),
	STATUS(WR_FLUSH_ERR, "the request was not executed: the queue pair is in the error state",
	       "An earlier request failed, the peer's fault moved the queue pair to the error state, or the program did (ibv_modify_qp() to ERR).",
	       "Look at the first completion of the queue pair that is not this one. At the end of a connection it is ordinary."),
	STATUS(MW_BIND_ERR, "a memory window cannot be bound or invalidated",
	       "The region lacks IBV_ACCESS_MW_BIND, the range exceeds it, or window, region and queue pair are of different PDs.",
	       "Look at the completion's vendor_err (0x308 to 0x30d): verbatim explain CODE."),
	STATUS(BAD_RESP_ERR, "a response of the peer does not fit its request",
	       "Two queue pairs send with one number, or the peer's software is faulty.",
	       "Connect each queue pair to exactly one peer."),
	STATUS(LOC_ACCESS_ERR, "a peer's request was refused for its remote key, on this side",
	       "A WRITE with immediate named a wrong rkey or range, or the region or queue pair lacks the access flag.",
	       "Compare rkey and range that the peer uses with the region here; see vendor_err."),
	STATUS(REM_INV_REQ_ERR, "the peer refused the request as invalid",
	       "The message is longer than the peer's receive, an atomic is not aligned to 8 bytes, or more READs were outstanding than max_dest_rd_atomic of the peer.",
	       "The peer knows which: its failed receive, or `verbatim explain` on its host."),
	STATUS(REM_ACCESS_ERR, "the peer refused access to its memory",
	       "The rkey is wrong, of another PD or already deregistered; remote_addr and length exceed the region; the peer's region or its queue pair (qp_access_flags) lacks the IBV_ACCESS_REMOTE_* flag.",
	       "The peer knows which: `verbatim explain` on its host names the key and the range. Print rkey, remote_addr and length on both sides and compare."),
	STATUS(REM_OP_ERR, "the peer could not execute the request",
	       "The peer's posted receive is faulty: wrong lkey, or memory without IBV_ACCESS_LOCAL_WRITE.",
	       "Look at the failed receive of the peer: its completion has the cause."),
	STATUS(RETRY_EXC_ERR, "the peer did not answer in time",
	       "The peer's process has ended; it had not reached RTR; dest_qp_num, the GID or a PSN is wrong; a firewall drops UDP port 4791; the path MTU is too large.",
	       "The vendor_err says what is known (0x506 to 0x510). Synchronise after RTR, compare qp_num, GID and PSN of both sides, raise timeout and retry_cnt."),
	STATUS(RNR_RETRY_EXC_ERR, "the peer had no receive posted for too long",
	       "The peer posts receives too late or too few, and rnr_retry is small.",
	       "Post receives before the peer may send; set rnr_retry to 7 (for ever) and min_rnr_timer at the peer."),
	STATUS(LOC_RDD_VIOL_ERR, "a violation of a reliable datagram domain", UNUSED_STATUS, UNUSED_CURE),
	STATUS(REM_INV_RD_REQ_ERR, "the peer refused a reliable datagram request", UNUSED_STATUS, UNUSED_CURE),
	STATUS(REM_ABORT_ERR, "the peer aborted the operation", UNUSED_STATUS, UNUSED_CURE),
	STATUS(INV_EECN_ERR, "an end-to-end context number is invalid", UNUSED_STATUS, UNUSED_CURE),
	STATUS(INV_EEC_STATE_ERR, "an end-to-end context is in a wrong state", UNUSED_STATUS, UNUSED_CURE),
	STATUS(FATAL_ERR, "a fatal error of the device", UNUSED_STATUS, UNUSED_CURE),
	STATUS(RESP_TIMEOUT_ERR, "a response did not come in time", UNUSED_STATUS, UNUSED_CURE),
	STATUS(GENERAL_ERR, "an error that has no other status", UNUSED_STATUS, UNUSED_CURE),
	STATUS(TM_ERR, "an operation on a list of tagged buffers failed",
	       "A buffer was removed that a message had taken meanwhile.",
	       "Poll on: the message's completion is there or comes."),
	STATUS(TM_RNDV_INCOMPLETE, "a rendezvous message has to be fetched by the program",
	       "The device could not read the data of a large tagged message itself.",
	       "Read the header that was received, and fetch the data with an RDMA READ."),
	EVENT(CQ_ERR, "a completion queue has overrun",
	      "More completions are outstanding than cqe of ibv_create_cq() has room for.",
	      "Create the queue with the sum of max_send_wr and max_recv_wr of all queue pairs that use it."),
	EVENT(QP_FATAL, "a queue pair cannot go on",
	      "Its completion queue has overrun, or a completion could not be delivered.",
	      "Look at the size of the completion queue; make the queue pair anew."),
	EVENT(QP_REQ_ERR, "a peer's request was invalid",
	      "The peer sent an operation with a wrong length, alignment or order of packets.",
	      "`verbatim explain PID` of this process names the request; look at the peer's program."),
	EVENT(QP_ACCESS_ERR, "a peer's request had no access",
	      "The peer used a wrong rkey or range, or this side lacks an access flag at the region or the queue pair.",
	      "`verbatim explain PID` of this process names the key, the range and the flag."),
	EVENT(COMM_EST, "the first packet arrived at a queue pair in RTR",
	      "The peer has begun to send.", "Nothing, or move the queue pair to RTS."),
	EVENT(SQ_DRAINED, "the send queue is empty",
	      "The queue pair was moved to SQD with en_sqd_async_notify.", NOTHING),
	EVENT(PATH_MIG, "the connection went over to its second path", INFINIBAND, NOTHING),
	EVENT(PATH_MIG_ERR, "the connection could not go over to its second path", INFINIBAND, NOTHING),
	EVENT(DEVICE_FATAL, "the device is gone",
	      "The network interface was removed.",
	      "Close the device, and take the device list anew when the interface is back."),
	EVENT(PORT_ACTIVE, "the port is active",
	      "The network interface came up.", NOTHING),
	EVENT(PORT_ERR, "the port is down",
	      "The network interface went down, or lost its carrier.",
	      "Bring it up: ip link set IFACE up. Queue pairs go on if it comes back before their retries end."),
	EVENT(LID_CHANGE, "the port's LID has changed", INFINIBAND, NOTHING),
	EVENT(PKEY_CHANGE, "the table of P_Keys has changed", INFINIBAND, NOTHING),
	EVENT(SM_CHANGE, "another subnet manager is in charge", INFINIBAND, NOTHING),
	EVENT(SRQ_ERR, "a shared receive queue cannot go on", "A receive of it could not be read.",
	      "Make the queue anew."),
	EVENT(SRQ_LIMIT_REACHED, "a shared receive queue has fewer receives than its limit",
	      "The limit of ibv_modify_srq() was set, and receives were used up.",
	      "Post more receives, and set the limit again."),
	EVENT(QP_LAST_WQE_REACHED, "a failed queue pair takes nothing more from its shared receive queue",
	      "The queue pair went to the error state.", "It may be destroyed now."),
	EVENT(CLIENT_REREGISTER, "the subnet manager asks to register anew", INFINIBAND, NOTHING),
	EVENT(GID_CHANGE, "the table of GIDs has changed",
	      "An address of the interface was added or removed.",
	      "Read the table again; tell peers the new GID."),
	EVENT(WQ_FATAL, "a receive work queue cannot go on",
	      "Its completion queue has overrun.", "Look at the size of the completion queue."),
	EVENT(DEVICE_SPEED_CHANGE, "the speed of the link has changed",
	      "The network interface agreed on another speed.", NOTHING),
	CALL(EPERM, "a privilege is lacking, or objects of two domains are mixed",
	     "Raw packet queue pairs and privileged Q_Keys need CAP_NET_RAW; a window and a region are of different PDs; an object belongs to another user.",
	     "Run `verbatim doctor`, or take all objects from one PD."),
	CALL(ENOENT, "the object is not known",
	     "It was destroyed before, or belongs to another context.",
	     "Destroy each object once, with the context that made it still open."),
	CALL(EBADF, "a descriptor is not open",
	     "The program closed descriptors of the library, or a file descriptor argument is wrong. UCX tries ibv_reg_dmabuf_mr() with -1 on purpose.",
	     "Close descriptors before the first verbs call, or only those that the program opened."),
	CALL(EAGAIN, "nothing is there yet, or it is to be tried again",
	     "ibv_get_cq_event() or ibv_get_async_event() on a descriptor with O_NONBLOCK, without an event.",
	     "Wait for the descriptor with poll(2), then call again."),
	CALL(ENOMEM, "a queue is full, or memory or a limit of the device is exhausted",
	     "ibv_post_send() and ibv_post_recv(): the queue is full, because completions were not polled, or sends are not signalled. Calls that create: too many objects, or a memory limit.",
	     "Poll completions and signal every n-th send. Compare with ibv_query_device(), `ulimit -v`, the container's memory. `ulimit -l` does not matter: nothing is locked."),
	CALL(EFAULT, "memory is not mapped",
	     "ibv_reg_mr() of a range that is not allocated, or read-only with IBV_ACCESS_LOCAL_WRITE.",
	     "Register exactly the bytes that were allocated."),
	CALL(EBUSY, "the object is still in use",
	     "A PD before its regions and queue pairs, a CQ before its queue pairs, a region before its windows, a queue pair in a multicast group.",
	     "Destroy in the reverse order of making."),
	CALL(ENODEV, "the device or the owner of the object is gone",
	     "The interface was removed; a forked child uses the parent's objects; the owner of an imported object has ended.",
	     "Open the device after fork(); take the device list anew."),
	CALL(EINVAL, "an argument is wrong",
	     "A state transition that does not exist, a mask bit too many or too few, a value above a limit, a structure that was not cleared.",
	     "The report's first line names the argument. Without it: VERBATIM_LOG=debug."),
	CALL(ENODATA, "the entry is empty",
	     "ibv_query_gid_ex() of an index without an address.",
	     "Go on with the next index, or use ibv_query_gid_table()."),
	CALL(EOPNOTSUPP, "this device does not offer it",
	     "The call, the type or the flag needs hardware, or is not built. Many programs ask only to find out.",
	     "docs/coverage.md lists what is offered. Switch the feature off in the program."),
	CALL(EADDRINUSE, "UDP port 4791 is taken",
	     "Another user's process or the kernel driver rdma_rxe holds it; only processes of this host can be reached then.",
	     "End it, or unload the driver (`rdma link delete rxe0`), or use a network namespace of your own."),
	CALL(ENETUNREACH, "no route leads to the destination",
	     "The GID of the peer is wrong or all zeros, or of the other IP version.",
	     "Exchange GIDs with ibv_query_gid() of the sgid_index that is used; try `ip route get ADDRESS`."),
	CALL(ETIMEDOUT, "a process did not answer in time",
	     "The peer stands still (SIGSTOP, a debugger).", "Let it go on."),
	CALL(EHOSTUNREACH, "the destination host is not reached",
	     "The address is on this network, but nobody answers for it, or a firewall refuses.",
	     "Try `ping ADDRESS` and `ip neighbour`."),
	CALL(EMFILE, "the process has too many descriptors open",
	     "RLIMIT_NOFILE is used up; each neighbour process needs a few.",
	     "Raise it with `ulimit -n`."),
	CALL(EPROTONOSUPPORT, "the header of a datagram is of no known kind",
	     "ibv_init_ah_from_wc() was given a buffer that is not the first 40 bytes of a receive of UD, or a completion without IBV_WC_GRH.",
	     "Pass the address of the receive buffer itself."),
};
/* clang-format on */

const struct term *terms_all(size_t *count)
{
	*count = sizeof(terms) / sizeof(terms[0]);
	return terms;
}

const char *term_kind_name(enum term_kind kind)
{
	static const char *const names[] = {[TERM_STATUS] = "completion status",
					    [TERM_EVENT] = "asynchronous event",
					    [TERM_ERRNO] = "errno of a call"};

	return names[kind];
}

const char *term_short_name(const struct term *term)
{
	static const char *const heads[] = {
		[TERM_STATUS] = "IBV_WC_", [TERM_EVENT] = "IBV_EVENT_", [TERM_ERRNO] = ""};

	return term->name + strlen(heads[term->kind]);
}

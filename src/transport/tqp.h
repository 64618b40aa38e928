/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A queue pair as the protocol sees it: requester and responder, for RC, UC, UD and XRC, over any
 * link.
 *
 * Pure: everything comes in as arguments or through env.h. The device embeds it in its queue pair,
 * and the simulator in its own. Not thread-safe: the owner's lock is held around every call.
 */
#ifndef VB_TRANSPORT_TQP_H
#define VB_TRANSPORT_TQP_H

#include <assert.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/env.h"
#include "transport/requester.h"
#include "transport/responder.h"
#include "transport/run.h"
#include "transport/wqe.h"

#define VB_CACHE_LINE 64

/*
 * The members are ordered by lines of the processor's cache: those that each request and each
 * arriving run use; the requester, of which the first line serves a request that is answered in
 * time; those for lost packets and for commands; the responder.
 */
struct vb_tqp {
	_Alignas(VB_CACHE_LINE) const struct vb_env *env;

	/*
	 * The send queue: a ring of sq_size (a power of two) entries of sq_stride bytes at sq. The
	 * device writes entry sq_posted & (sq_size-1), increments sq_posted, then calls
	 * vb_tqp_run(). Counters only grow (they wrap at 2^32).
	 */
	char *sq;
	uint32_t sq_size;
	uint32_t sq_posted;
	uint16_t sq_stride;
	uint8_t sender;        /* VB_SENDER_...: selects the operations that it has */
	uint8_t max_rd_atomic; /* as requester */

	/*
	 * Identity and attributes, here and below `req`. The device writes them while no other call
	 * runs.
	 */
	uint32_t qpn;
	uint32_t dest_qpn;
	uint32_t mtu; /* path MTU in bytes; UD: the largest payload */
	/* The most payload of one run: a multiple of the MTU, at least one MTU. */
	uint32_t max_run_bytes;
	uint32_t window_packets; /* the most unacknowledged packets (lossy links); 0: no limit */
	uint32_t access;         /* qp_access_flags */
	uint32_t qkey;
	uint32_t pkey; /* 16 bits; a word of its own, so that no narrower copy is stored and read back */
	uint8_t service; /* enum vb_service */
	uint8_t state;   /* enum ibv_qp_state */
	/*
	 * reliable: no run is lost while the peer lives. No acknowledgement timer runs, and a
	 * request that the peer's QP could not take is answered by VB_OP_DROP (requester.h).
	 */
	bool link_reliable : 1;
	bool acks_ride : 1; /* RC: requests may carry an ACK of the other direction (VB_RUN_ACKS) */
	bool sends_only : 1; /* XRC_SEND: there is no responder half (IBA A14.2) */
	bool tells : 1;      /* env->queue.remote_done is to be called */
	bool lends : 1;      /* RC: the payload of long SENDs may be lent (VB_RUN_LENT) */
	uint8_t least;       /* bytes of the shortest payload: 0, or a frame's header */

	struct vb_requester req;

	/*
	 * A READ is split into requests of at most this length (a multiple of the MTU); 0: not
	 * split.
	 */
	uint32_t max_read_bytes;
	uint32_t read_window_packets; /* as window_packets, for READ requests; 0: the same */
	bool was_ready; /* the program has brought it to RTR before, or it is in RTR now */
	bool failed;    /* it is in ERR because of a fault, not by a command of the program */
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t min_rnr_timer;
	uint8_t max_dest_rd_atomic; /* as responder */

	_Alignas(VB_CACHE_LINE) struct vb_responder resp;
};

static_assert(offsetof(struct vb_tqp, req) == VB_CACHE_LINE, "the requester begins a cache line");
static_assert(offsetof(struct vb_requester, backoff_ns) == VB_CACHE_LINE,
	      "what a request needs that is answered in time is one cache line");
static_assert(offsetof(struct vb_responder, length) <= VB_CACHE_LINE,
	      "what a SEND needs at the responder is one cache line");
static_assert(sizeof(struct vb_tqp) <= 6 * VB_CACHE_LINE, "each queue pair has one");

static inline void vb_tqp_count(struct vb_tqp *qp, enum vb_count what)
{
	if (qp->env->queue.count)
		qp->env->queue.count(qp, what);
}

/*
 * A thread that fills entries reads the counter while another may take the queue pair to RESET. The
 * device then refuses the entries.
 */
static inline uint32_t vb_tqp_posted(const struct vb_tqp *qp)
{
	return __atomic_load_n(&qp->sq_posted, __ATOMIC_RELAXED);
}

static inline void vb_tqp_posted_set(struct vb_tqp *qp, uint32_t posted)
{
	__atomic_store_n(&qp->sq_posted, posted, __ATOMIC_RELAXED);
}

static inline struct vb_send_wqe *vb_tqp_wqe(const struct vb_tqp *qp, uint32_t index)
{
	return (struct vb_send_wqe *)(void *)(qp->sq + (uint64_t)(index & (qp->sq_size - 1)) *
							       qp->sq_stride);
}

/*
 * Enters RESET: queues become empty (sq_posted becomes 0) without completions, PSNs and stored
 * responses are gone, the timer is cancelled, and the receive under way is given back
 * (recv_untake). Owed answers are sent if the link takes them at once.
 */
void vb_tqp_reset(struct vb_tqp *qp);

/*
 * The device sets `state` itself on these two transitions. Entering RTR: the responder expects
 * rq_psn. Entering RTS from RTR: the requester starts at sq_psn.
 */
void vb_tqp_start_responder(struct vb_tqp *qp, uint32_t rq_psn);
void vb_tqp_start_requester(struct vb_tqp *qp, uint32_t sq_psn);

/*
 * Does what can be done now: starts and continues posted requests (state RTS; in SQD only those
 * that have been started), sends owed responses and acknowledgements. Returns true if work is left
 * that waits for room in the link (call again then), false if nothing waits for the link. Cheap
 * when there is nothing to do. Also to be called in ERR: flushes posted requests, and sends what
 * was owed when the error arose (the NAK among it). What is owed goes first, but for an
 * acknowledgement that may ride on a request.
 */
bool vb_tqp_run(struct vb_tqp *qp);

/*
 * As vb_tqp_run(), with the order reversed: the posted request is a reply and is sent first, the
 * acknowledgement of the message that it replies to is sent behind it.
 */
bool vb_tqp_run_reply(struct vb_tqp *qp);

/* True if only a positive acknowledgement is owed, for which the peer does not wait as for data. */
static inline bool vb_tqp_owes_ack_alone(const struct vb_tqp *qp)
{
	return qp->resp.owed == VB_OWED_ACK && qp->resp.syndrome == VB_AETH_ACK;
}

/*
 * A validated run has arrived for this queue pair (any state). `payload` is run->length bytes, read
 * once. The next vb_tqp_run() sends owed acknowledgements.
 */
void vb_tqp_receive(struct vb_tqp *qp, const struct vb_run *run, const void *payload);

/*
 * The timer armed through env->queue.timer has expired. Call vb_tqp_run() afterwards, as after
 * vb_tqp_receive().
 */
void vb_tqp_timer(struct vb_tqp *qp);

/*
 * The link has lost its peer until the next reset: outstanding and later requests complete with
 * RETRY_EXC (reason PEER_DEAD), then the queue is flushed. While no request is outstanding, the
 * state and the receives stay. UC: requests are lost and complete successfully.
 */
void vb_tqp_peer_dead(struct vb_tqp *qp);

/*
 * The link could not deliver (no such process yet). RC waits and tries again as after VB_OP_DROP;
 * if it gives up, `reason` is the completion's. UC, UD: the message being sent is lost and
 * completes successfully.
 */
void vb_tqp_unreachable(struct vb_tqp *qp, enum vb_reason reason);

/*
 * The device moves the queue pair to ERR (ibv_modify_qp(3), CQ overrun): sets the state, flushes
 * the receive under way and every send request. state_changed is not called. Afterwards the device
 * flushes the other receives.
 */
void vb_tqp_to_error(struct vb_tqp *qp);

/* True while a started send request is unfinished (SQD: still draining). */
bool vb_tqp_busy(const struct vb_tqp *qp);

/* Running PSNs for ibv_query_qp(3). */
uint32_t vb_tqp_sq_psn(const struct vb_tqp *qp);
uint32_t vb_tqp_rq_psn(const struct vb_tqp *qp);

/* Requests that were posted and not yet passed to send_done. */
uint32_t vb_tqp_outstanding(const struct vb_tqp *qp);

#endif

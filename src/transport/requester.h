/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The requester: turns posted work into requests, and answers into completions.
 *
 * Three places in the send queue, head <= cur <= started <= posted: the oldest unfinished entry, the one whose packets
 * go out next, and the first that never got a PSN. Going back after a loss means cur = head, psn = una; everything is
 * then sent again from the oldest unacknowledged packet (IBA 9.9.2).
 *
 * Lost packets. On a link that loses, one timer runs while requests are in flight (vb_retry_arm); `retry_cnt` further
 * tries, refilled by every progress. On a reliable link silence is patience (the peer may be stopped): after half a second
 * without progress the oldest packet is sent again, as often as it takes, for the case that the answer went down with
 * the peer's queue pair. There, VB_OP_DROP says that the peer's queue pair could not take a request, and why: the requester
 * waits (50 us, doubling to 20 ms) and sends again. It gives up with RETRY_EXC by the clock: (retry_cnt + 1) * T after the
 * first such answer since the last progress, as if the request had been lost each time; after 1.5 s at most where waiting is
 * known to be in vain (vb_retry_in_vain). timeout 0 waits for ever.
 */
#ifndef VB_TRANSPORT_REQUESTER_H
#define VB_TRANSPORT_REQUESTER_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/reason.h"
#include "transport/operation.h"
#include "transport/run.h"
#include "transport/wqe.h"

struct vb_tqp;

enum vb_requester_wait {
	VB_WAIT_NONE,
	VB_WAIT_RNR,     /* the peer asked for patience: nothing is sent until the timer expires */
	VB_WAIT_BACKOFF, /* the peer's queue pair is not ready: likewise */
};

struct vb_requester {
	uint32_t head;
	uint32_t cur;
	uint32_t started;
	uint32_t two_sided; /* one past the last started entry that the peer must receive */

	uint32_t psn;       /* of the next packet to send */
	uint32_t next_psn;  /* of the first packet of the request that starts next */
	uint32_t una;       /* oldest unacknowledged */
	uint32_t max_psn;   /* one past the highest ever sent */
	uint32_t ack_asked; /* one past the last packet sent with AckReq */

	/*
	 * READ and ATOMIC requests in flight: one past the last PSN of each, oldest at rd_head. Whoever has the queue pair gives
	 * it the ring, of vb_resource_slots(max_rd_atomic) places or more; none while max_rd_atomic is 0.
	 */
	uint8_t rd_head;
	uint8_t rd_tail;
	uint16_t rd_slots; /* a power of two, at most 256, or 0 */
	uint32_t *rd_end;

	uint8_t wait; /* enum vb_requester_wait */
	bool timer;   /* the acknowledgement timer is armed */
	bool progress; /* something was acknowledged, or the first request sent, since it was armed */
	bool trouble;     /* any of the counters below is not at its start */
	bool dead;        /* the peer's process has ended */
	bool direct_more; /* the entry at cur is half done by direct access */
	bool probing;     /* the last pause was not answered yet */
	bool recovering; /* gone back and not acknowledged since: further hints of the same loss count once */
	uint32_t first_psn; /* sq_psn */
	uint8_t retries;
	uint8_t rnr_tries;
	bool odd_answer; /* what the peer expects did not fit, since the last progress */

	uint64_t backoff_ns; /* the latest wait */
	uint64_t since_ns;   /* backoff_ns: when the first drop since the last progress was told */
	uint32_t peer_psn;   /* odd_answer: what the peer said it expects */
};

/* What sending a piece led to. */
enum vb_step {
	VB_STEP_ON,   /* go on */
	VB_STEP_STOP, /* nothing to do until something arrives or is posted */
	VB_STEP_LINK, /* waits for room in the link (or for another turn of direct access) */
};

/* requester.c: true if work is left that waits for the link. */
bool vb_requester_run(struct vb_tqp *qp);

/* send_queue.c */
/* A larger ring of requests in flight; what the former one held is copied. Returns the former one. */
uint32_t *vb_requester_grow(struct vb_requester *r, uint32_t *rd_end, uint32_t slots);
/* Completes what `upto` (exclusive) acknowledges; false if an unanswered READ or ATOMIC stands in the way. */
bool vb_requester_acked(struct vb_tqp *qp, uint32_t upto);
void vb_requester_go_back(struct vb_tqp *qp);
void vb_requester_flush(struct vb_tqp *qp, enum vb_reason reason);
/* The oldest entry, the only one that was started, completes successfully. */
void vb_requester_done(struct vb_tqp *qp, struct vb_send_wqe *w);

/* fault.c */
/* The oldest entry fails: it completes with status, the queue pair goes to ERR (UC, UD: SQE), the rest is flushed. */
void vb_requester_fail(struct vb_tqp *qp, enum ibv_wc_status status, enum vb_reason reason);
/* This entry can't be done: it fails as soon as it is the oldest. */
enum vb_step vb_requester_refuse(struct vb_tqp *qp, struct vb_send_wqe *w,
				 enum ibv_wc_status status, enum vb_reason reason);

/* request.c: the next run of a started entry that has packets. */
enum vb_step vb_request_connected(struct vb_tqp *qp, struct vb_send_wqe *w,
				  const struct vb_operation *op);
enum vb_step vb_request_datagram(struct vb_tqp *qp, struct vb_send_wqe *w,
				 const struct vb_operation *op);

/* completer.c: ACK, NAK, READ response, ATOMIC response, DROP, in a state that sends. */
void vb_completer_receive(struct vb_tqp *qp, const struct vb_run *run, const void *payload);

/* timer.c */
#define VB_REPAIR_NS 500000000ull

uint64_t
vb_retry_ack_ns(uint8_t timeout); /* 4.096 us * 2^timeout; 0 for 0 = for ever (IBA 9.7.6.1.3) */
void vb_retry_arm(struct vb_tqp *qp);
void vb_retry_cancel(struct vb_tqp *qp);
void vb_retry_forget(struct vb_tqp *qp); /* progress was made: all counters afresh */

/* retry.c */
#define VB_BACKOFF_FIRST_NS 50000ull
#define VB_BACKOFF_MOST_NS  20000000ull
#define VB_IN_VAIN_NS       1500000000ull

uint64_t vb_retry_rnr_ns(uint8_t rnr_timer); /* by the table of IBA 9.7.5.2.8 */
void vb_retry_lost(struct vb_tqp *qp, enum vb_reason reason);
void vb_retry_not_ready(struct vb_tqp *qp, uint8_t rnr_timer);
/* The request was not taken; `reason` is the completion's if the requester gives up (VB_REASON_PEER_...). */
void vb_retry_dropped(struct vb_tqp *qp, enum vb_reason reason);
/* The peer expects another PSN than any that is in flight: `psn`. */
void vb_retry_odd_psn(struct vb_tqp *qp, uint32_t psn);
/* Nothing but a command to its program could make the peer take the request. */
bool vb_retry_in_vain(enum vb_reason reason);
void vb_retry_expired(struct vb_tqp *qp);

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The requester: turns posted work into requests, and answers into completions.
 *
 * The send queue has three places, head <= cur <= started <= posted: the oldest unfinished entry,
 * the entry whose packets are sent next, and the first entry that never got a PSN. Going back after
 * a loss means cur = head, psn = una: all packets are sent again from the oldest unacknowledged one
 * (IBA 9.9.2).
 *
 * Lost packets. On a link that loses packets one timer runs while requests are in flight
 * (vb_retry_arm). There are `retry_cnt` further tries; progress resets their count. On a reliable
 * link silence is no loss (the peer may be stopped). There, after half a second without progress,
 * the oldest packet is sent again without counting the try, because the answer may have ended with
 * the peer's queue pair. There, VB_OP_DROP says that the peer's queue pair could not take a
 * request, and why. The requester then waits (50 us, doubling to 20 ms) and sends again. It gives
 * up with RETRY_EXC by the clock: (retry_cnt + 1) * T after the first such answer since the last
 * progress, as if the request had been lost each time, and after 1.5 s at most where no waiting
 * helps (vb_retry_in_vain). timeout 0: waits for ever.
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
	VB_WAIT_RNR,     /* the peer sent an RNR NAK: nothing is sent until the timer expires */
	VB_WAIT_BACKOFF, /* the peer's queue pair is not ready: likewise */
};

struct vb_requester {
	uint32_t head;
	uint32_t cur;
	uint32_t started;
	uint32_t two_sided; /* one past the last started entry that the peer must receive */

	uint32_t psn;       /* of the next packet to send */
	uint32_t next_psn;  /* of the first packet of the request that starts next */
	uint32_t una;       /* oldest unacknowledged PSN */
	uint32_t max_psn;   /* one past the highest ever sent */
	uint32_t ack_asked; /* one past the last packet sent with AckReq */

	/*
	 * READ and ATOMIC requests in flight: one past the last PSN of each, the oldest at rd_head.
	 * The owner of the queue pair provides the ring, of at least
	 * vb_resource_slots(max_rd_atomic) places; none while max_rd_atomic is 0.
	 */
	uint8_t rd_head;
	uint8_t rd_tail;
	uint16_t rd_slots; /* a power of two, at most 256, or 0 */
	uint32_t *rd_end;

	uint8_t wait; /* enum vb_requester_wait */
	bool timer;   /* the acknowledgement timer is armed */
	/* Since the timer was armed a PSN was acknowledged, or the first request was sent. */
	bool progress;
	bool trouble;     /* one of the counters below is not at its initial value */
	bool dead;        /* the peer's process has ended */
	bool direct_more; /* the entry at cur is partly done by direct access */
	bool probing;     /* the packet after the last pause is not answered yet */
	/* Gone back, and no PSN acknowledged since: further hints of the same loss do not count. */
	bool recovering;
	uint32_t first_psn; /* sq_psn */
	uint8_t retries;
	uint8_t rnr_tries;
	/* Since the last progress, an answer expected a PSN that is not in flight. */
	bool odd_answer;

	uint64_t backoff_ns; /* the latest wait */
	uint64_t since_ns;   /* with backoff_ns: time of the first drop since the last progress */
	uint32_t peer_psn;   /* with odd_answer: the PSN that the peer expects */
	uint32_t lend_pause; /* runs whose payload is sent, after one that could not be fetched */
};

/*
 * A payload shorter than the first is copied through a link in the time that a system call takes.
 * One fetch takes at most the second, so that a queue pair does not keep its engine for long.
 */
#define VB_LEND_LEAST 32768u
#define VB_LEND_MOST  262144u
#define VB_LEND_PAUSE 256u /* runs */

/* The result of sending a run. */
enum vb_step {
	VB_STEP_ON,   /* go on */
	VB_STEP_STOP, /* nothing to do until a run arrives or a request is posted */
	VB_STEP_LINK, /* the link has no room (or direct access goes on in the next drive) */
};

/*
 * requester.c. For env->link.direct_list: the entry `behind` places behind the oldest, which was
 * not started yet. NULL: there is none, it is of another operation, or it fails without being
 * executed.
 */
struct vb_send_wqe *vb_requester_alike(const struct vb_tqp *qp, uint32_t behind);
/*
 * requester.c. For a link that lends: the request in flight to which `length` bytes of payload from
 * this PSN on belong, and *offset, where they begin in it. NULL: there is none.
 */
struct vb_send_wqe *vb_requester_lent(const struct vb_tqp *qp, uint32_t psn, uint32_t length,
				      uint64_t *offset);
/* True if work is left that waits for the link. */
bool vb_requester_run(struct vb_tqp *qp);

/* send_queue.c */
/*
 * Sets a larger ring of requests in flight and copies the content of the former one, which is
 * returned.
 */
uint32_t *vb_requester_grow(struct vb_requester *r, uint32_t *rd_end, uint32_t slots);
/*
 * Completes the entries before `upto`. False if a READ or ATOMIC without its response is among
 * them.
 */
bool vb_requester_acked(struct vb_tqp *qp, uint32_t upto);
void vb_requester_go_back(struct vb_tqp *qp);
void vb_requester_flush(struct vb_tqp *qp, enum vb_reason reason);
/* The oldest entry, the only one that was started, completes successfully. */
void vb_requester_done(struct vb_tqp *qp, struct vb_send_wqe *w);

/* fault.c */
/*
 * The oldest entry fails: it completes with `status`, the queue pair goes to ERR (UC, UD: SQE), and
 * the other entries are flushed.
 */
void vb_requester_fail(struct vb_tqp *qp, enum ibv_wc_status status, enum vb_reason reason);
/* This entry cannot be executed: it fails as soon as it is the oldest. */
enum vb_step vb_requester_refuse(struct vb_tqp *qp, struct vb_send_wqe *w,
				 enum ibv_wc_status status, enum vb_reason reason);

/* request.c: sends the next run of a started entry that has packets. */
enum vb_step vb_request_connected(struct vb_tqp *qp, struct vb_send_wqe *w,
				  const struct vb_operation *op);
enum vb_step vb_request_datagram(struct vb_tqp *qp, struct vb_send_wqe *w,
				 const struct vb_operation *op);

/* completer.c: ACK, NAK, READ response, ATOMIC response, DROP, in a state that sends. */
void vb_completer_receive(struct vb_tqp *qp, const struct vb_run *run, const void *payload);

/* timer.c */
#define VB_REPAIR_NS 500000000ull

uint64_t vb_retry_ack_ns(uint8_t timeout); /* 4.096 us * 2^timeout; 0: never (IBA 9.7.6.1.3) */
void vb_retry_arm(struct vb_tqp *qp);
void vb_retry_cancel(struct vb_tqp *qp);
void vb_retry_forget(struct vb_tqp *qp); /* after progress: resets all counters */

/* retry.c */
#define VB_BACKOFF_FIRST_NS 50000ull
#define VB_BACKOFF_MOST_NS  20000000ull
#define VB_IN_VAIN_NS       1500000000ull

uint64_t vb_retry_rnr_ns(uint8_t rnr_timer); /* by the table of IBA 9.7.5.2.8 */
void vb_retry_lost(struct vb_tqp *qp, enum vb_reason reason);
void vb_retry_not_ready(struct vb_tqp *qp, uint8_t rnr_timer);
/*
 * The peer did not take the request. `reason` becomes the completion's if the requester gives up
 * (VB_REASON_PEER_...).
 */
void vb_retry_dropped(struct vb_tqp *qp, enum vb_reason reason);
/* The peer expects `psn`, which is not in flight. */
void vb_retry_odd_psn(struct vb_tqp *qp, uint32_t psn);
/* True if only a command of the peer's program could make the peer take the request. */
bool vb_retry_in_vain(enum vb_reason reason);
void vb_retry_expired(struct vb_tqp *qp);

#endif

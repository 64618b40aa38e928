/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* When a request is sent again, after how long, and how often (IBA 9.7.5.2, 9.7.6). */
#include "transport/psn.h"
#include "transport/requester.h"
#include "transport/tqp.h"

uint64_t vb_retry_rnr_ns(uint8_t rnr_timer)
{
	/* In units of 10 us; 0 stands for the longest time. */
	static const uint16_t table[32] = {
		65535, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
		48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
		2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};

	rnr_timer &= 31;
	return rnr_timer ? table[rnr_timer] * 10000ull : 655360000ull;
}

/*
 * Programs set long timers because a network, a switch or a slow peer may need them. No long wait
 * is needed where the link knows more: no process has the number, or the program of the process
 * that has it took the queue pair out of service.
 */
bool vb_retry_in_vain(enum vb_reason reason)
{
	switch (reason) {
	case VB_REASON_PEER_NO_QP:
	case VB_REASON_PEER_NOT_READY:
	case VB_REASON_PEER_TYPE:
	case VB_REASON_PEER_USER:
		return true;
	default:
		return false;
	}
}

/*
 * How long a peer that drops requests is asked again: for all tries that the program wants, within
 * a bound.
 */
static uint64_t patience(const struct vb_tqp *qp, enum vb_reason reason)
{
	uint64_t one = vb_retry_ack_ns(qp->timeout);
	uint64_t all = one * (qp->retry_cnt + 1u);

	if (!one)
		return UINT64_MAX;
	return all > VB_IN_VAIN_NS && vb_retry_in_vain(reason) ? VB_IN_VAIN_NS : all;
}

/*
 * A packet of this side or of the peer is missing: sends again from the oldest, if a try is left.
 */
static void try_again(struct vb_tqp *qp, enum vb_reason reason)
{
	struct vb_requester *r = &qp->req;

	if (r->retries >= qp->retry_cnt) {
		vb_requester_fail(qp, IBV_WC_RETRY_EXC_ERR,
				  r->odd_answer ? VB_REASON_PEER_PSN : reason);
		return;
	}
	r->retries++;
	r->trouble = true;
	vb_requester_go_back(qp);
}

void vb_retry_lost(struct vb_tqp *qp, enum vb_reason reason)
{
	struct vb_requester *r = &qp->req;

	if (r->recovering || r->wait)
		return;
	try_again(qp, reason);
	r->recovering = true;
}

static void pause_for(struct vb_tqp *qp, enum vb_requester_wait wait, uint64_t delay_ns)
{
	qp->req.wait = wait;
	qp->req.timer = false;
	qp->req.trouble = true;
	qp->req.probing = true;
	qp->env->queue.timer(qp, delay_ns);
}

void vb_retry_not_ready(struct vb_tqp *qp, uint8_t rnr_timer)
{
	struct vb_requester *r = &qp->req;

	if (r->wait)
		return;
	if (qp->rnr_retry != 7 && r->rnr_tries >= qp->rnr_retry) { /* 7: no limit */
		vb_requester_fail(qp, IBV_WC_RNR_RETRY_EXC_ERR, VB_REASON_RNR_EXCEEDED);
		return;
	}
	r->rnr_tries++;
	/* An RNR NAK comes from a queue pair that is ready: earlier drops do not count any more. */
	r->backoff_ns = 0;
	pause_for(qp, VB_WAIT_RNR, vb_retry_rnr_ns(rnr_timer));
}

void vb_retry_dropped(struct vb_tqp *qp, enum vb_reason reason)
{
	struct vb_requester *r = &qp->req;
	uint64_t left = patience(qp, reason);
	uint64_t now;

	if (r->wait)
		return;
	now = qp->env->queue.now(qp);
	if (!r->backoff_ns)
		r->since_ns = now;
	if (now - r->since_ns >= left) {
		vb_requester_fail(qp, IBV_WC_RETRY_EXC_ERR, reason);
		return;
	}
	left -= now - r->since_ns;
	r->backoff_ns = r->backoff_ns ? r->backoff_ns * 2 : VB_BACKOFF_FIRST_NS;
	if (r->backoff_ns > VB_BACKOFF_MOST_NS)
		r->backoff_ns = VB_BACKOFF_MOST_NS;
	pause_for(qp, VB_WAIT_BACKOFF, r->backoff_ns < left ? r->backoff_ns : left);
}

/*
 * On a link that keeps order no answer is late, so the peer means another connection than this one.
 * On other links the answer may be an old packet, so the tries go on. If they end, this is the
 * reason.
 */
void vb_retry_odd_psn(struct vb_tqp *qp, uint32_t psn)
{
	struct vb_requester *r = &qp->req;

	r->peer_psn = psn & VB_PSN_MASK;
	r->odd_answer = r->trouble = true;
	if (qp->link_reliable && r->una != r->max_psn)
		vb_retry_dropped(qp, VB_REASON_PEER_PSN);
}

void vb_retry_expired(struct vb_tqp *qp)
{
	struct vb_requester *r = &qp->req;

	if (r->wait) {
		r->wait = VB_WAIT_NONE;
		vb_requester_go_back(qp);
		return;
	}
	if (!r->timer)
		return;
	r->timer = false;
	if (r->psn == r->una && r->max_psn == r->una)
		return; /* nothing in flight */
	if (r->progress) {
		r->progress = false;
		vb_retry_arm(qp);
		return;
	}
	r->recovering = false;
	if (qp->link_reliable) {
		/*
		 * An answer can be missing only because its queue pair was reset or destroyed:
		 * asks, without counting a try.
		 */
		r->trouble = r->probing = true;
		vb_requester_go_back(qp);
	} else {
		vb_tqp_count(qp, VB_COUNT_TIMEOUT);
		try_again(qp, VB_REASON_RETRY_EXCEEDED);
	}
	if (qp->state != IBV_QPS_ERR)
		vb_retry_arm(qp);
}

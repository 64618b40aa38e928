/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The requester's one timer and the counters of its tries: armed, cancelled, reset (IBA 9.7.6.1.3).
 */
#include "transport/requester.h"
#include "transport/tqp.h"

uint64_t vb_retry_ack_ns(uint8_t timeout)
{
	return timeout ? 4096ull << (timeout & 31) : 0;
}

/*
 * Called when a request was sent and no timer runs. The timer is not moved for each request: it
 * looks back when it expires, so the real time-out lies between once and twice the configured one
 * (the rule allows up to four times).
 */
void vb_retry_arm(struct vb_tqp *qp)
{
	uint64_t delay = qp->link_reliable ? VB_REPAIR_NS : vb_retry_ack_ns(qp->timeout);

	if (!delay)
		return;
	qp->req.timer = true;
	qp->env->queue.timer(qp, delay);
}

void vb_retry_cancel(struct vb_tqp *qp)
{
	if (qp->req.timer || qp->req.wait)
		qp->env->queue.timer(qp, 0);
	qp->req.timer = false;
	qp->req.wait = VB_WAIT_NONE;
}

void vb_retry_forget(struct vb_tqp *qp)
{
	struct vb_requester *r = &qp->req;

	r->trouble = false;
	r->recovering = false;
	r->probing = false;
	r->retries = 0;
	r->rnr_tries = 0;
	r->backoff_ns = 0;
	r->odd_answer = false;
}

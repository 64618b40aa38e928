/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The functions of a queue pair that the device calls: start, run, receive, time out, stop. */
#include "transport/tqp.h"

#include "transport/psn.h"

static void requester_reset(struct vb_tqp *qp, uint32_t psn)
{
	struct vb_requester *r = &qp->req;

	r->psn = r->next_psn = r->una = r->max_psn = r->ack_asked = r->first_psn = psn &
										   VB_PSN_MASK;
	r->rd_head = r->rd_tail = 0;
	r->progress = false;
	r->direct_more = false;
	vb_retry_forget(qp);
}

void vb_tqp_reset(struct vb_tqp *qp)
{
	bool healthy = qp->state != IBV_QPS_ERR;

	vb_retry_cancel(qp);
	/*
	 * Executed requests are acknowledged, if the link takes the acknowledgement at once. A
	 * fault on the way is not reported: the queue pair is being reset.
	 */
	qp->state = IBV_QPS_ERR;
	if (qp->resp.owed)
		vb_respond(qp);
	if (healthy && !qp->link_reliable)
		vb_respond_last_acks(qp);
	vb_responder_reset(qp, 0);
	requester_reset(qp, 0);
	vb_tqp_posted_set(qp, 0);
	qp->req.head = qp->req.cur = qp->req.started = qp->req.two_sided = 0;
	qp->req.dead = false;
	qp->failed = false;
	qp->state = IBV_QPS_RESET;
}

void vb_tqp_start_responder(struct vb_tqp *qp, uint32_t rq_psn)
{
	/* What came too early is still to be told of: its sender waits for that alone. */
	uint8_t owed = qp->resp.owed & VB_OWED_DROP;

	vb_responder_reset(qp, rq_psn);
	qp->resp.owed = owed;
	qp->was_ready = true;
}

void vb_tqp_start_requester(struct vb_tqp *qp, uint32_t sq_psn)
{
	requester_reset(qp, sq_psn);
}

static bool ask(struct vb_tqp *qp)
{
	return qp->req.cur != qp->sq_posted && vb_requester_run(qp);
}

static bool answer(struct vb_tqp *qp)
{
	return qp->resp.owed && vb_respond(qp);
}

bool vb_tqp_run_reply(struct vb_tqp *qp)
{
	bool waits = ask(qp);

	return answer(qp) || waits;
}

/*
 * Whether the next request takes the owed acknowledgement along. Behind another one, a READ, it
 * would come too late: if the peer refuses that request, the message that was received completes
 * with an error there.
 */
static bool ack_rides(const struct vb_tqp *qp)
{
	return qp->acks_ride && vb_tqp_owes_ack_alone(qp) && qp->req.cur != qp->sq_posted &&
	       vb_operation(vb_tqp_wqe(qp, qp->req.cur)->opcode)->kind == VB_REQUEST_DATA;
}

bool vb_tqp_run(struct vb_tqp *qp)
{
	if (ack_rides(qp))
		return vb_tqp_run_reply(qp);
	bool waits = answer(qp);

	return ask(qp) || waits;
}

static bool can_send(const struct vb_tqp *qp)
{
	return qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD;
}

void vb_tqp_timer(struct vb_tqp *qp)
{
	if (can_send(qp))
		vb_retry_expired(qp);
}

/*
 * Without acknowledgements the program cannot learn that a message was lost: the one being sent is
 * complete.
 */
static void send_nowhere(struct vb_tqp *qp)
{
	struct vb_requester *r = &qp->req;
	struct vb_send_wqe *w = vb_tqp_wqe(qp, r->cur);

	if (r->cur == r->started)
		return;
	r->psn = r->una = r->max_psn = r->next_psn;
	r->head = r->cur = r->started;
	qp->env->queue.send_done(qp, w, IBV_WC_SUCCESS, VB_REASON_NONE);
}

void vb_tqp_peer_dead(struct vb_tqp *qp)
{
	qp->req.dead = true;
	qp->resp.owed = 0;
	if (!can_send(qp))
		return;
	if (!vb_service_reliable(qp->service))
		send_nowhere(qp);
	else if (qp->req.head != qp->sq_posted)
		vb_requester_fail(qp, IBV_WC_RETRY_EXC_ERR, VB_REASON_PEER_DEAD);
}

void vb_tqp_unreachable(struct vb_tqp *qp, enum vb_reason reason)
{
	if (!can_send(qp))
		return;
	if (!vb_service_reliable(qp->service))
		send_nowhere(qp);
	else if (qp->req.head != qp->sq_posted)
		vb_retry_dropped(qp, reason);
}

void vb_tqp_to_error(struct vb_tqp *qp)
{
	vb_retry_cancel(qp);
	qp->state = IBV_QPS_ERR;
	qp->failed = false;
	/*
	 * Executed requests are acknowledged if the link takes the acknowledgement now. Otherwise
	 * the peer is told that no answer will come.
	 */
	if (qp->resp.owed && vb_respond(qp)) {
		qp->resp.owed &= VB_OWED_DROP;
		vb_responder_owe_drop(qp, qp->dest_qpn, vb_psn_add(qp->resp.epsn, VB_PSN_MASK),
				      VB_REASON_DROP_STATE);
	}
	qp->resp.message = VB_OP_COUNT;
	vb_responder_recv_fail(qp, IBV_WC_WR_FLUSH_ERR, VB_REASON_FLUSHED);
	vb_requester_flush(qp, VB_REASON_FLUSHED);
}

bool vb_tqp_busy(const struct vb_tqp *qp)
{
	return qp->req.head != qp->req.started || qp->req.direct_more;
}

uint32_t vb_tqp_sq_psn(const struct vb_tqp *qp)
{
	return qp->req.next_psn;
}

uint32_t vb_tqp_rq_psn(const struct vb_tqp *qp)
{
	return qp->resp.epsn;
}

uint32_t vb_tqp_outstanding(const struct vb_tqp *qp)
{
	return qp->sq_posted - qp->req.head;
}

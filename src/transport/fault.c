/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A fault of one half ends both: the queue pair changes its state, requests under way complete, and
 * the rest is flushed (IBA 10.3.1).
 */
#include "transport/requester.h"
#include "transport/responder.h"
#include "transport/tqp.h"

void vb_requester_fail(struct vb_tqp *qp, enum ibv_wc_status status, enum vb_reason reason)
{
	struct vb_requester *r = &qp->req;
	struct vb_send_wqe *w = vb_tqp_wqe(qp, r->head);

	vb_retry_cancel(qp);
	/* IBA 10.3.1: an unreliable queue pair only stops sending. */
	qp->state = vb_service_reliable(qp->service) ? IBV_QPS_ERR : IBV_QPS_SQE;
	qp->failed = qp->state == IBV_QPS_ERR;
	r->head++;
	qp->env->queue.send_done(qp, w, status, reason);
	if (qp->state == IBV_QPS_ERR)
		vb_responder_recv_fail(qp, IBV_WC_WR_FLUSH_ERR, VB_REASON_FLUSHED_LOCAL);
	qp->env->queue.state_changed(qp);
	vb_requester_flush(qp, VB_REASON_FLUSHED_LOCAL);
}

enum vb_step vb_requester_refuse(struct vb_tqp *qp, struct vb_send_wqe *w,
				 enum ibv_wc_status status, enum vb_reason reason)
{
	w->error = (uint8_t)status;
	w->reason = (uint16_t)reason;
	if (qp->req.head == qp->req.cur)
		vb_requester_fail(qp, status, reason);
	return VB_STEP_STOP;
}

void vb_responder_error(struct vb_tqp *qp)
{
	vb_retry_cancel(qp);
	qp->state = IBV_QPS_ERR;
	qp->failed = true;
	qp->resp.message = VB_OP_COUNT;
	vb_responder_recv_fail(qp, IBV_WC_WR_FLUSH_ERR, VB_REASON_FLUSHED);
	qp->env->queue.state_changed(qp);
	vb_requester_flush(qp, VB_REASON_FLUSHED);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What follows when the protocol has run, or a run has arrived: errors, events, and what was noted
 * meanwhile.
 */
#include "engine/settle.h"

#include "base/reason.h"
#include "engine/count.h"

void vb_qp_flush_receives(struct vb_qp *qp)
{
	/* Shared receives stay for the other queue pairs. */
	while (qp->rq.taken != atomic_load_explicit(&qp->rq.posted, memory_order_acquire)) {
		struct vb_recv_wqe *wqe = vb_recv_queue_entry(&qp->rq, qp->rq.taken++);
		struct vb_recv_done done = {
			.wqe = wqe,
			.status = IBV_WC_WR_FLUSH_ERR,
			.reason = VB_REASON_FLUSHED,
			.opcode = IBV_WC_RECV,
		};
		qp->t.env->queue.recv_done(&qp->t, &done);
	}
}

void vb_qp_entered_error(struct vb_qp *qp)
{
	vb_lock_assert_held(&qp->engine->lock);
	qp->draining = false;
	if (qp->link->halt)
		qp->link->halt(qp);
	/* A thread that posts has done so by now, or sees the state (post_recv.c). */
	vb_lock_take(&qp->rq.lock);
	vb_lock_release(&qp->rq.lock);
	vb_qp_flush_receives(qp);
	/*
	 * After the last receive completion of this queue pair is in the CQ (IBA 10.3.1,
	 * ibv_get_async_event(3)).
	 */
	if (qp->srq && !qp->last_wqe_raised) {
		qp->last_wqe_raised = true;
		vb_qp_event(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
	}
}

static void overrun_settle(struct vb_qp *qp)
{
	qp->overrun = false;
	if (qp->t.state == IBV_QPS_ERR || qp->t.state == IBV_QPS_RESET)
		return;
	qp->t.state = IBV_QPS_ERR;
	vb_qp_publish(qp);
	vb_tqp_to_error(&qp->t);
	qp->t.failed = true;
	vb_qp_entered_error(qp);
	vb_qp_event(qp, IBV_EVENT_QP_FATAL);
	qp->overrun = false;
}

void vb_qp_settle(struct vb_qp *qp)
{
	vb_lock_assert_held(&qp->engine->lock);
	if (qp->unreachable) {
		enum vb_reason reason = qp->unreachable;

		qp->unreachable = 0;
		vb_tqp_unreachable(&qp->t, reason);
	}
	if (qp->peer_lost) {
		qp->peer_lost = false;
		vb_tqp_peer_dead(&qp->t);
	}
	if (qp->overrun)
		overrun_settle(qp);
	if (qp->draining && !vb_tqp_busy(&qp->t)) {
		qp->draining = false;
		if (qp->drain_notify)
			vb_qp_event(qp, IBV_EVENT_SQ_DRAINED);
	}
}

void vb_qp_arrived(struct vb_qp *qp, const struct vb_run *run, const void *payload)
{
	vb_lock_assert_held(&qp->engine->lock);
	vb_count_arrived(qp->engine, run);
	qp->kind->receive(qp, run, payload);
	vb_qp_touched(qp);
}

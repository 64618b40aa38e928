/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Posting to a queue pair's own receive queue: under the queue's lock, so that it does not wait for
 * the engine.
 */
#include <errno.h>
#include <stdatomic.h>

#include "base/reason.h"
#include "base/seldom.h"
#include "engine/engines.h"
#include "engine/fastpath.h"
#include "engine/qp.h"
#include "engine/settle.h"

static int post_state_check(const struct vb_qp *qp, struct ibv_recv_wr *wr,
			    struct ibv_recv_wr **bad_wr)
{
	if (qp->srq) {
		*bad_wr = wr;
		return -vb_refuse(EINVAL, VB_REASON_ARG, "post_recv: qp 0x%x receives from an srq",
				  qp->t.qpn);
	}
	if (atomic_load_explicit(&qp->state, memory_order_relaxed) == IBV_QPS_RESET) {
		*bad_wr = wr;
		return -vb_refuse(EINVAL, VB_REASON_QP_STATE, "post_recv: qp 0x%x is in RESET",
				  qp->t.qpn);
	}
	return 0;
}

int vb_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct vb_qp *qp = vb_qp_of(ibqp);
	int err = post_state_check(qp, wr, bad_wr);
	bool failed;

	if (err)
		return err;
	vb_lock_take(&qp->rq.lock);
	for (; wr; wr = wr->next) {
		err = vb_recv_queue_post(&qp->rq, wr, "post_recv", qp->t.qpn);
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	/* Under the lock: else the change to ERR sees what was just posted (vb_qp_entered_error()). */
	failed = atomic_load_explicit(&qp->state, memory_order_relaxed) == IBV_QPS_ERR;
	vb_lock_release(&qp->rq.lock);
	if (VB_SELDOM(failed)) {
		vb_engine_take(qp->engine);
		if (qp->t.state == IBV_QPS_ERR)
			vb_qp_flush_receives(qp);
		vb_lock_release(&qp->engine->lock);
	}
	return err;
}

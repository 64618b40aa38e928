/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ibv_query_qp(3): the attributes that were set, and the present state. */
#include "base/reason.h"
#include "engine/engines.h"
#include "object/context.h"
#include "qp/parts.h"
#include "qp/qp.h"

static void init_fill(const struct vb_qp *qp, struct ibv_qp_init_attr *init)
{
	const struct ibv_qp *q = &qp->u.qp;

	init->qp_context = q->qp_context;
	init->send_cq = q->send_cq;
	init->recv_cq = q->recv_cq;
	init->srq = q->srq;
	init->qp_type = q->qp_type;
	init->sq_sig_all = qp->sq_sig_all;
}

/* The protocol began with the values last set, so they are right until traffic has moved them. */
void vb_qp_ordinary_psns(const struct vb_qp *qp, struct ibv_qp_attr *attr)
{
	if (qp->t.state >= IBV_QPS_RTR)
		attr->rq_psn = vb_tqp_rq_psn(&qp->t);
	if (qp->t.state >= IBV_QPS_RTS)
		attr->sq_psn = vb_tqp_sq_psn(&qp->t);
}

int vb_qp_query(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		struct ibv_qp_init_attr *init)
{
	struct vb_qp *qp = vb_qp_of(ibqp);
	int err = vb_context_check(ibqp->context, VB_HANDLE_QP, ibqp->handle, qp, "qp");

	(void)mask; /* a hint: all attributes are filled in */
	if (err)
		return err;
	init_fill(qp, init);
	qp = vb_qp_body(qp);
	init->cap = qp->attrs->cap;
	vb_engine_take(qp->engine);
	if (qp->kind->pull)
		qp->kind->pull(qp);
	*attr = qp->attrs->set;
	attr->qp_state = attr->cur_qp_state = (enum ibv_qp_state)qp->t.state;
	attr->cap = qp->attrs->cap;
	attr->sq_draining = qp->t.state == IBV_QPS_SQD && vb_tqp_busy(&qp->t);
	qp->kind->psns(qp, attr);
	vb_lock_release(&qp->engine->lock);
	return 0;
}

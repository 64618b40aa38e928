/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* UD requests: one packet, one receive, the network header in front (IBA 9.8.3, 11.4.1.2). */
#include "transport/grh.h"
#include "transport/responder.h"
#include "transport/tqp.h"

static void fail(struct vb_tqp *qp, const struct vb_run *run, enum vb_reason reason)
{
	qp->env->queue.explain(qp, reason, run);
	vb_responder_recv_fail(qp, IBV_WC_LOC_PROT_ERR, reason);
	vb_responder_error(qp);
}

static enum vb_reason unfit(const struct vb_tqp *qp, const struct vb_run *run)
{
	uint8_t whole = VB_RUN_FIRST | VB_RUN_LAST;

	if (run->op != VB_OP_SEND || run->segments != 1 || (run->flags & whole) != whole ||
	    run->flags & VB_RUN_INV || run->length > qp->mtu)
		return VB_REASON_DROP_MALFORMED;
	return run->qkey != qp->qkey ? VB_REASON_DROP_QKEY : VB_REASON_NONE;
}

void vb_responder_ud(struct vb_tqp *qp, const struct vb_run *run, const void *payload)
{
	uint8_t grh[VB_GRH_BYTES];
	enum vb_reason reason = unfit(qp, run);
	struct vb_recv_wqe *recv;

	if (reason) {
		vb_responder_drop(qp, reason, run);
		return;
	}
	recv = vb_responder_recv(qp);
	if (!recv) {
		vb_responder_drop(qp, VB_REASON_DROP_NO_RECEIVE, run);
		return;
	}
	if (recv->length < (uint64_t)run->length + VB_GRH_BYTES) {
		vb_responder_recv_return(qp);
		vb_responder_drop(qp, VB_REASON_DROP_TOO_LONG, run);
		return;
	}
	vb_grh_build(&run->path, run->length, run->flags & VB_RUN_IMM, grh);
	reason = qp->env->queue.recv_scatter(qp, recv, 0, grh, VB_GRH_BYTES);
	if (!reason && run->length)
		reason = qp->env->queue.recv_scatter(qp, recv, VB_GRH_BYTES, payload, run->length);
	if (reason)
		fail(qp, run, reason);
	else
		vb_responder_recv_done(qp, run, IBV_WC_RECV, run->length + VB_GRH_BYTES);
}

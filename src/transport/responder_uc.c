/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * UC requests: a lost packet loses its message, without a report, and no other message (IBA 9.8.2).
 */
#include "transport/psn.h"
#include "transport/responder.h"
#include "transport/tqp.h"

/* The message is lost. Its receive serves the next one. */
static void lose(struct vb_tqp *qp, enum vb_reason reason, const struct vb_run *run)
{
	qp->resp.message = VB_OP_COUNT;
	vb_responder_recv_return(qp);
	vb_responder_drop(qp, reason, run);
}

static bool send(struct vb_tqp *qp, const struct vb_run *run, const void *payload)
{
	struct vb_responder *p = &qp->resp;
	struct vb_recv_wqe *recv = vb_responder_recv(qp);
	enum vb_reason reason;

	if (!recv || run->flags & VB_RUN_INV) {
		lose(qp, recv ? VB_REASON_DROP_MALFORMED : VB_REASON_DROP_NO_RECEIVE, run);
		return false;
	}
	if (run->length > recv->length - p->done) {
		lose(qp, VB_REASON_DROP_TOO_LONG, run);
		return false;
	}
	if (!run->length)
		return true;
	reason = qp->env->queue.recv_scatter(qp, recv, p->done, payload, run->length);
	if (reason) { /* a fault of the receiver, not of the message */
		qp->env->queue.explain(qp, reason, run);
		vb_responder_recv_fail(qp, IBV_WC_LOC_PROT_ERR, reason);
		vb_responder_error(qp);
	}
	return !reason;
}

static enum vb_reason judge_reth(struct vb_tqp *qp, const struct vb_run *run)
{
	if (!(qp->access & IBV_ACCESS_REMOTE_WRITE) || run->dma_length > VB_MESSAGE_MOST)
		return VB_REASON_DROP_ACCESS;
	if (run->dma_length && qp->env->memory.remote_check(qp, run->rkey, run->va, run->dma_length,
							    IBV_ACCESS_REMOTE_WRITE))
		return VB_REASON_DROP_ACCESS;
	return VB_REASON_NONE;
}

static bool write_run(struct vb_tqp *qp, const struct vb_run *run, const void *payload)
{
	struct vb_responder *p = &qp->resp;
	enum vb_reason reason = VB_REASON_NONE;
	uint64_t rest;

	if (run->flags & VB_RUN_FIRST) {
		reason = judge_reth(qp, run);
		p->rkey = run->rkey;
		p->va = run->va;
		p->length = run->dma_length;
	}
	rest = p->length - p->done;
	if (!reason && (run->flags & VB_RUN_LAST ? run->length != rest : run->length >= rest))
		reason = VB_REASON_DROP_MALFORMED;
	if (!reason && run->flags & VB_RUN_IMM && !vb_responder_recv(qp))
		reason = VB_REASON_DROP_NO_RECEIVE;
	if (!reason && run->length &&
	    qp->env->memory.remote_write(qp, p->rkey, p->va + p->done, payload, run->length))
		reason = VB_REASON_DROP_ACCESS;
	if (reason)
		lose(qp, reason, run);
	return !reason;
}

/*
 * Continues the message under way, or begins one at any PSN, so that the receiver recovers from a
 * loss.
 */
static bool in_order(struct vb_tqp *qp, const struct vb_run *run)
{
	struct vb_responder *p = &qp->resp;

	if (run->flags & VB_RUN_FIRST) {
		if (p->message != VB_OP_COUNT)
			lose(qp, VB_REASON_DROP_SEQUENCE, run);
		p->done = 0;
		return true;
	}
	if (p->message == run->op && run->psn == p->epsn)
		return true;
	lose(qp, VB_REASON_DROP_SEQUENCE, run);
	return false;
}

void vb_responder_uc(struct vb_tqp *qp, const struct vb_run *run, const void *payload)
{
	struct vb_responder *p = &qp->resp;
	bool taken;

	if (run->op > VB_OP_WRITE || !vb_responder_lengths_fit(qp, run)) {
		lose(qp, VB_REASON_DROP_MALFORMED, run);
		return;
	}
	if (!in_order(qp, run))
		return;
	taken = run->op == VB_OP_SEND ? send(qp, run, payload) : write_run(qp, run, payload);
	p->epsn = vb_psn_add(run->psn, run->segments);
	if (!taken)
		return;
	p->done += run->length;
	p->message = run->flags & VB_RUN_LAST ? VB_OP_COUNT : run->op;
	if (!(run->flags & VB_RUN_LAST))
		return;
	if (qp->tells && run->op == VB_OP_WRITE)
		qp->env->queue.remote_done(qp, run->op, p->length, true);
	if (run->op == VB_OP_SEND)
		vb_responder_recv_done(qp, run, IBV_WC_RECV, (uint32_t)p->done);
	else if (run->flags & VB_RUN_IMM)
		vb_responder_recv_done(qp, run, IBV_WC_RECV_RDMA_WITH_IMM, (uint32_t)p->length);
}

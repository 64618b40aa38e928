/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The responder: what all services share, and who serves which request. */
#include "transport/responder.h"

#include "transport/grh.h"
#include "transport/psn.h"
#include "transport/tqp.h"

struct vb_resource *vb_responder_grow(struct vb_responder *p, struct vb_resource *res,
				      uint32_t slots)
{
	struct vb_resource *former = p->res;

	for (uint32_t n = p->res_head - p->res_known; n != p->res_head; n++)
		res[n & (slots - 1)] = *vb_resource_at(p, n);
	p->res = res;
	p->res_slots = slots;
	return former;
}

void vb_responder_reset(struct vb_tqp *qp, uint32_t psn)
{
	struct vb_responder *p = &qp->resp;

	vb_responder_recv_return(qp);
	p->epsn = p->first_psn = psn & VB_PSN_MASK;
	p->executed = 0;
	p->ahead = false;
	p->msn = 0;
	p->ack_psn = vb_psn_add(p->epsn, VB_PSN_MASK);
	p->ack_msn = 0;
	p->owed = 0;
	p->nak_sent = false;
	p->established = false;
	p->message = VB_OP_COUNT;
	p->res_head = p->res_serve = 0;
	p->res_known = 0;
	/* Of the ring an entry is only looked at below res_head. */
}

void vb_responder_owe_drop(struct vb_tqp *qp, uint32_t qpn, uint32_t psn, enum vb_reason reason)
{
	struct vb_responder *p = &qp->resp;

	/* Only where silence does not mean loss; and of several the first is enough. */
	if (!qp->link_reliable || !qpn || p->owed & VB_OWED_DROP)
		return;
	p->owed |= VB_OWED_DROP;
	p->drop_qpn = qpn;
	p->drop_psn = psn;
	p->drop_reason = reason;
}

void vb_responder_drop(struct vb_tqp *qp, enum vb_reason reason, const struct vb_run *run)
{
	qp->env->drop(qp, reason, run);
	if (vb_service_reliable(run->service) &&
	    vb_op_is_request(run->op)) /* who waits for an answer is told */
		vb_responder_owe_drop(qp, run->src_qpn, run->psn, reason);
}

struct vb_recv_wqe *vb_responder_recv(struct vb_tqp *qp)
{
	if (!qp->resp.recv)
		qp->resp.recv = qp->env->recv_take(qp);
	return qp->resp.recv;
}

void vb_responder_recv_return(struct vb_tqp *qp)
{
	if (qp->resp.recv)
		qp->env->recv_untake(qp, qp->resp.recv);
	qp->resp.recv = NULL;
}

void vb_responder_recv_done(struct vb_tqp *qp, const struct vb_run *run, enum ibv_wc_opcode opcode,
			    uint32_t byte_len)
{
	struct vb_recv_done done;

	done.wqe = qp->resp.recv;
	done.status = IBV_WC_SUCCESS;
	done.reason = VB_REASON_NONE;
	done.opcode = opcode;
	done.byte_len = byte_len;
	done.wc_flags = run->flags & VB_RUN_IMM   ? IBV_WC_WITH_IMM
			: run->flags & VB_RUN_INV ? IBV_WC_WITH_INV
						  : 0;
	done.imm = run->flags & (VB_RUN_IMM | VB_RUN_INV) ? run->imm : 0;
	done.src_qp = run->src_qpn;
	done.sl = 0;
	done.solicited = run->flags & VB_RUN_SOLICITED;
	if (qp->service == VB_SERVICE_UD) {
		done.wc_flags |= IBV_WC_GRH;
		done.sl = vb_grh_kind(&run->path);
	}
	qp->resp.recv = NULL;
	qp->env->recv_done(qp, &done);
}

void vb_responder_recv_fail(struct vb_tqp *qp, enum ibv_wc_status status, enum vb_reason reason)
{
	struct vb_recv_done done = {
		.wqe = qp->resp.recv,
		.status = status,
		.reason = reason,
		.opcode = IBV_WC_RECV,
	};

	if (!done.wqe)
		return;
	qp->resp.recv = NULL;
	qp->env->recv_done(qp, &done);
}

void vb_responder_error(struct vb_tqp *qp)
{
	vb_retry_cancel(qp);
	qp->state = IBV_QPS_ERR;
	qp->failed = true;
	qp->resp.message = VB_OP_COUNT;
	vb_responder_recv_fail(qp, IBV_WC_WR_FLUSH_ERR, VB_REASON_FLUSHED);
	qp->env->state_changed(qp);
	vb_requester_flush(qp, VB_REASON_FLUSHED);
}

bool vb_responder_lengths_fit(const struct vb_tqp *qp, const struct vb_run *run)
{
	uint32_t full = run->segments * qp->mtu;

	if (!(run->flags & VB_RUN_LAST))
		return run->length == full && !(run->flags & (VB_RUN_IMM | VB_RUN_INV));
	if ((run->flags & (VB_RUN_IMM | VB_RUN_INV)) == (VB_RUN_IMM | VB_RUN_INV))
		return false;
	if (run->segments == 1 && run->flags & VB_RUN_FIRST)
		return run->length <= full;
	return run->length <= full && run->length > full - qp->mtu;
}

/* Why the queue pair can't take this run at all, if so. */
static enum vb_reason unfit(const struct vb_tqp *qp, const struct vb_run *run)
{
	if (qp->sends_only)
		return VB_REASON_DROP_TYPE;
	if (qp->state == IBV_QPS_RESET || qp->state == IBV_QPS_INIT)
		return qp->was_ready ? VB_REASON_DROP_STATE : VB_REASON_DROP_NOT_YET;
	if (qp->state >= IBV_QPS_ERR)
		return qp->failed ? VB_REASON_DROP_FAILED : VB_REASON_DROP_STATE;
	/* IBA 9.6.1.4.1: equal but for the membership bit, and not both limited members. */
	if (((run->pkey ^ qp->pkey) & 0x7fff) || !((run->pkey | qp->pkey) & 0x8000))
		return VB_REASON_DROP_PKEY;
	return VB_REASON_NONE;
}

void vb_responder_receive(struct vb_tqp *qp, const struct vb_run *run, const void *payload)
{
	enum vb_reason reason = unfit(qp, run);

	if (reason) {
		vb_responder_drop(qp, reason, run);
		return;
	}
	if (qp->state == IBV_QPS_RTR && !qp->resp.established) {
		qp->resp.established = true;
		if (qp->service != VB_SERVICE_UD)
			qp->env->event(qp, IBV_EVENT_COMM_EST);
	}
	switch (qp->service) {
	case VB_SERVICE_RC:
	case VB_SERVICE_XRC:
		vb_responder_rc(qp, run, payload);
		break;
	case VB_SERVICE_UC:
		vb_responder_uc(qp, run, payload);
		break;
	case VB_SERVICE_UD:
		vb_responder_ud(qp, run, payload);
		break;
	default:
		vb_responder_drop(qp, VB_REASON_DROP_TYPE, run);
		break;
	}
}

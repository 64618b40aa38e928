/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The responder: what all services share. */
#include "transport/responder.h"

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

	/* Only on links where silence does not mean loss. Of several drops the first is told. */
	if (!qp->link_reliable || !qpn || p->owed & VB_OWED_DROP)
		return;
	p->owed |= VB_OWED_DROP;
	p->drop_qpn = qpn;
	p->drop_psn = psn;
	p->drop_reason = reason;
}

void vb_responder_drop(struct vb_tqp *qp, enum vb_reason reason, const struct vb_run *run)
{
	qp->env->queue.drop(qp, reason, run);
	if (vb_service_reliable(run->service) &&
	    vb_op_is_request(run->op)) /* the sender of a request waits for an answer */
		vb_responder_owe_drop(qp, run->src_qpn, run->psn, reason);
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

/*
 * What a reason for refusal means: the NAK, the event, and the status of the receive in use (IBA
 * 9.9.3).
 */
struct refusal {
	enum vb_reason reason;
	uint8_t syndrome;
	enum ibv_wc_status recv;
	enum ibv_event_type event;
};

static const struct refusal *refusal(enum vb_reason reason)
{
	static const struct refusal table[] = {
		{VB_REASON_RKEY_UNKNOWN, VB_AETH_NAK_ACCESS, IBV_WC_LOC_ACCESS_ERR,
		 IBV_EVENT_QP_ACCESS_ERR},
		{VB_REASON_RKEY_PD, VB_AETH_NAK_ACCESS, IBV_WC_LOC_ACCESS_ERR,
		 IBV_EVENT_QP_ACCESS_ERR},
		{VB_REASON_RKEY_RANGE, VB_AETH_NAK_ACCESS, IBV_WC_LOC_ACCESS_ERR,
		 IBV_EVENT_QP_ACCESS_ERR},
		{VB_REASON_RKEY_ACCESS, VB_AETH_NAK_ACCESS, IBV_WC_LOC_ACCESS_ERR,
		 IBV_EVENT_QP_ACCESS_ERR},
		{VB_REASON_RKEY_QP, VB_AETH_NAK_ACCESS, IBV_WC_LOC_ACCESS_ERR,
		 IBV_EVENT_QP_ACCESS_ERR},
		{VB_REASON_RKEY_OWNER_GONE, VB_AETH_NAK_ACCESS, IBV_WC_LOC_ACCESS_ERR,
		 IBV_EVENT_QP_ACCESS_ERR},
		{VB_REASON_OWNER_GONE, VB_AETH_NAK_OPERATION, IBV_WC_LOC_PROT_ERR,
		 IBV_EVENT_QP_FATAL},
		{VB_REASON_NO_DIRECT_ACCESS, VB_AETH_NAK_OPERATION, IBV_WC_LOC_PROT_ERR,
		 IBV_EVENT_QP_FATAL},
		{VB_REASON_MEMORY_GONE, VB_AETH_NAK_OPERATION, IBV_WC_LOC_PROT_ERR,
		 IBV_EVENT_QP_FATAL},
		{VB_REASON_LKEY_UNKNOWN, VB_AETH_NAK_OPERATION, IBV_WC_LOC_PROT_ERR,
		 IBV_EVENT_QP_FATAL},
		{VB_REASON_LKEY_PD, VB_AETH_NAK_OPERATION, IBV_WC_LOC_PROT_ERR, IBV_EVENT_QP_FATAL},
		{VB_REASON_LKEY_RANGE, VB_AETH_NAK_OPERATION, IBV_WC_LOC_PROT_ERR,
		 IBV_EVENT_QP_FATAL},
		{VB_REASON_LKEY_ACCESS, VB_AETH_NAK_OPERATION, IBV_WC_LOC_PROT_ERR,
		 IBV_EVENT_QP_FATAL},
		{VB_REASON_RECV_TOO_SMALL, VB_AETH_NAK_INVALID, IBV_WC_LOC_LEN_ERR,
		 IBV_EVENT_QP_REQ_ERR},
	};
	static const struct refusal other = {VB_REASON_NONE, VB_AETH_NAK_INVALID,
					     IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (table[i].reason == reason)
			return &table[i];
	}
	return &other;
}

void vb_responder_nak(struct vb_tqp *qp, const struct vb_run *run, uint32_t psn,
		      enum vb_reason reason)
{
	struct vb_responder *p = &qp->resp;
	const struct refusal *f = refusal(reason);

	qp->env->queue.explain(qp, reason, run);
	if (qp->tells && (run->op == VB_OP_WRITE || run->op == VB_OP_READ_REQUEST))
		qp->env->queue.remote_done(qp, run->op, 0, false);
	p->owed |= VB_OWED_ACK;
	p->syndrome = f->syndrome;
	p->nak_psn = psn;
	if (qp->state == IBV_QPS_ERR) /* answers owed before another error are still being sent */
		return;
	/*
	 * A READ response that fails later has nothing to do with the message that is arriving now.
	 */
	if (p->recv && run->op != VB_OP_READ_RESPONSE)
		vb_responder_recv_fail(qp, f->recv, reason);
	else
		qp->env->queue.event(qp, f->event);
	vb_responder_error(qp);
}

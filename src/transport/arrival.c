/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A run that arrives: whether it is for this queue pair, whether the state takes it, and which half
 * it is for.
 */
#include "transport/requester.h"
#include "transport/responder.h"
#include "transport/service.h"
#include "transport/tqp.h"

/* Why the queue pair cannot take this request, or VB_REASON_NONE. */
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

static void request(struct vb_tqp *qp, const struct vb_service_rules *rules,
		    const struct vb_run *run, const void *payload)
{
	enum vb_reason reason = unfit(qp, run);

	if (reason) {
		vb_responder_drop(qp, reason, run);
		return;
	}
	if (qp->state == IBV_QPS_RTR && !qp->resp.established) {
		qp->resp.established = true;
		if (rules->connected)
			qp->env->queue.event(qp, IBV_EVENT_COMM_EST);
	}
	rules->request(qp, run, payload);
}

static void answer(struct vb_tqp *qp, const struct vb_service_rules *rules,
		   const struct vb_run *run, const void *payload)
{
	if (!rules->answer)
		qp->env->queue.drop(qp, VB_REASON_DROP_TYPE, run);
	else if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
		qp->env->queue.drop(qp, VB_REASON_DROP_STATE, run);
	else
		rules->answer(qp, run, payload);
}

/* The acknowledgement that rides on a request; it was sent before the request. */
static void rider(struct vb_tqp *qp, const struct vb_service_rules *rules, const struct vb_run *run)
{
	struct vb_run ack;

	ack.service = run->service;
	ack.op = VB_OP_ACK;
	ack.flags = VB_RUN_FIRST | VB_RUN_LAST;
	ack.syndrome = VB_AETH_ACK;
	ack.segments = 1;
	ack.dest_qpn = run->dest_qpn;
	ack.src_qpn = run->src_qpn;
	ack.psn = run->ack_psn;
	ack.length = 0;
	answer(qp, rules, &ack, NULL);
}

void vb_tqp_receive(struct vb_tqp *qp, const struct vb_run *run, const void *payload)
{
	const struct vb_service_rules *rules = &vb_services[qp->service];

	if (run->service != qp->service) {
		vb_responder_drop(qp, VB_REASON_DROP_TYPE, run);
		return;
	}
	if (run->src_qpn && run->src_qpn != qp->dest_qpn && rules->connected &&
	    qp->state > IBV_QPS_INIT && qp->state < IBV_QPS_ERR) {
		vb_responder_drop(qp, VB_REASON_DROP_SOURCE, run);
		return;
	}
	if (run->flags & VB_RUN_ACKS)
		rider(qp, rules, run);
	if (vb_op_is_request(run->op))
		request(qp, rules, run, payload);
	else if (run->op < VB_OP_COUNT)
		answer(qp, rules, run, payload);
	else
		vb_responder_drop(qp, VB_REASON_DROP_MALFORMED, run);
}

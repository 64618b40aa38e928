/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Answers that the responder owes, as runs: READ and ATOMIC responses in PSN order, then the
 * acknowledgement.
 */
#include "transport/psn.h"
#include "transport/responder.h"
#include "transport/tqp.h"

#define LAST_ACKS 2u

static void fill(const struct vb_tqp *qp, struct vb_run *run, uint8_t op, uint32_t psn)
{
	run->service = qp->service;
	run->op = op;
	run->flags = VB_RUN_FIRST | VB_RUN_LAST;
	run->syndrome = VB_AETH_ACK;
	run->pkey = qp->pkey;
	run->segments = 1;
	run->dest_qpn = qp->dest_qpn;
	run->src_qpn = qp->qpn;
	run->psn = psn;
	run->length = 0;
	run->msn = qp->resp.msn;
}

/*
 * The memory is gone since the request was judged (IBA 9.7.4.1.3). A first answer then ends with a
 * NAK. A repeated answer is only left out: the requester may have had the first one long ago, and
 * the program may have freed the memory because of it.
 */
static void read_fails(struct vb_tqp *qp, struct vb_resource *res, struct vb_run *run,
		       enum vb_reason reason)
{
	run->rkey = res->rkey;
	run->va = res->va;
	run->dma_length = (uint32_t)res->length;
	if (res->repeated) {
		res->active = false;
		qp->env->queue.drop(qp, reason, run);
		vb_responder_owe_drop(qp, qp->dest_qpn, run->psn, reason);
		return;
	}
	qp->resp.res_serve = qp->resp.res_head;
	qp->resp.owed &= (uint8_t)~VB_OWED_RESOURCE;
	vb_responder_nak(qp, run, run->psn, reason);
}

/* Sends the next run of a READ response. True if it waits for the link. */
static bool read_piece(struct vb_tqp *qp, struct vb_resource *res)
{
	uint64_t offset = (uint64_t)res->next * qp->mtu;
	uint64_t rest = res->end == res->count ? res->length - offset
					       : (uint64_t)(res->end - res->next) * qp->mtu;
	uint32_t length = rest < qp->max_run_bytes ? (uint32_t)rest : qp->max_run_bytes;
	struct vb_run run;
	enum vb_reason reason;
	void *buffer;

	fill(qp, &run, VB_OP_READ_RESPONSE, vb_psn_add(res->psn, res->next));
	run.length = length;
	buffer = qp->env->link.reserve(qp, NULL, &run);
	if (!buffer)
		return true;
	if (length) {
		reason = qp->service == VB_SERVICE_XRC ? qp->env->queue.srq_enter(qp, res->srqn)
						       : VB_REASON_NONE;
		if (!reason)
			reason = qp->env->memory.remote_read(qp, res->rkey, res->va + offset,
							     buffer, length);
		if (reason) {
			read_fails(qp, res, &run, reason);
			return false;
		}
	}
	run.segments = (uint16_t)vb_psn_count(length, qp->mtu);
	if (res->next != res->begin)
		run.flags &= (uint8_t)~VB_RUN_FIRST;
	res->next += run.segments;
	if (res->next != res->end)
		run.flags &= (uint8_t)~VB_RUN_LAST;
	else
		res->active = false;
	qp->env->link.commit(qp, NULL, &run);
	return false;
}

static bool atomic_answer(struct vb_tqp *qp, struct vb_resource *res)
{
	struct vb_run run;

	fill(qp, &run, VB_OP_ATOMIC_ACK, res->psn);
	if (!qp->env->link.reserve(qp, NULL, &run))
		return true;
	run.original = res->original;
	res->active = false;
	qp->env->link.commit(qp, NULL, &run);
	return false;
}

static bool resources(struct vb_tqp *qp)
{
	struct vb_responder *p = &qp->resp;

	while (p->res_serve != p->res_head) {
		struct vb_resource *res = vb_resource_at(p, p->res_serve);

		if (!res->active)
			p->res_serve++;
		else if (res->op == VB_OP_COMPARE_SWAP || res->op == VB_OP_FETCH_ADD
				 ? atomic_answer(qp, res)
				 : read_piece(qp, res))
			return true;
	}
	p->owed &= (uint8_t)~VB_OWED_RESOURCE;
	return false;
}

/*
 * One acknowledgement covers all PSNs before it. A sequence or RNR NAK names the expected PSN (IBA
 * 9.7.5.2).
 */
static bool acknowledge(struct vb_tqp *qp)
{
	struct vb_responder *p = &qp->resp;
	struct vb_run run;
	uint32_t psn = p->epsn;

	if (p->syndrome == VB_AETH_ACK)
		psn = p->ack_psn;
	else if (VB_AETH_CLASS(p->syndrome) == 0x60 && p->syndrome != VB_AETH_NAK_SEQUENCE)
		psn = p->nak_psn;
	fill(qp, &run, VB_OP_ACK, psn);
	if (!qp->env->link.reserve(qp, NULL, &run))
		return true;
	run.syndrome = p->syndrome;
	if (p->syndrome == VB_AETH_ACK)
		run.msn = p->ack_msn;
	p->owed &= (uint8_t)~VB_OWED_ACK;
	qp->env->link.commit(qp, NULL, &run);
	return false;
}

static bool tell_drop(struct vb_tqp *qp)
{
	struct vb_responder *p = &qp->resp;
	struct vb_run run;

	fill(qp, &run, VB_OP_DROP, p->drop_psn);
	if (!qp->env->link.reserve(qp, NULL, &run))
		return true;
	run.dest_qpn = p->drop_qpn;
	run.syndrome = 0;
	run.imm = p->drop_reason;
	run.msn = p->epsn;
	p->owed &= (uint8_t)~VB_OWED_DROP;
	qp->env->link.commit(qp, NULL, &run);
	return false;
}

/*
 * A program may end as soon as it has what it waits for, and its queue pair ends with it. If the
 * queue pair's last acknowledgement is lost, the peer's last request fails although it was
 * executed. Therefore the acknowledgement is repeated, which is harmless.
 */
void vb_respond_last_acks(struct vb_tqp *qp)
{
	struct vb_responder *p = &qp->resp;

	for (uint32_t i = 0; i < LAST_ACKS && vb_service_reliable(qp->service) && p->ack_msn; i++) {
		p->syndrome = VB_AETH_ACK;
		if (acknowledge(qp))
			return;
	}
}

bool vb_respond(struct vb_tqp *qp)
{
	if (qp->resp.owed & VB_OWED_RESOURCE && resources(qp))
		return true;
	if (qp->resp.owed & VB_OWED_ACK && acknowledge(qp))
		return true;
	return qp->resp.owed & VB_OWED_DROP && tell_drop(qp);
}

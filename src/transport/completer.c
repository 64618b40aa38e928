/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Answers of the peer: acknowledgements, refusals, READ and ATOMIC responses, and their effect on
 * the send queue.
 */
#include "transport/psn.h"
#include "transport/requester.h"
#include "transport/tqp.h"

/* Whether the PSN was sent and is not yet acknowledged. */
static inline bool outstanding(const struct vb_requester *r, uint32_t psn)
{
	return vb_psn_diff(psn, r->una) >= 0 && vb_psn_diff(psn, r->max_psn) < 0;
}

static inline void progress(struct vb_tqp *qp)
{
	qp->req.progress = true;
	if (qp->req.trouble)
		vb_retry_forget(qp);
}

/*
 * Acknowledges the PSNs before `upto`. A READ or ATOMIC among them without an answer means that the
 * answer was lost.
 */
static bool acked(struct vb_tqp *qp, uint32_t upto)
{
	uint32_t before = qp->req.una;
	bool clear = vb_requester_acked(qp, upto);

	if (qp->req.una != before)
		progress(qp);
	if (!clear)
		vb_tqp_count(qp, VB_COUNT_IMPLIED_NAK);
	return clear;
}

static void bad_response(struct vb_tqp *qp, const struct vb_run *run)
{
	qp->env->queue.explain(qp, VB_REASON_BAD_RESPONSE, run);
	vb_requester_fail(qp, IBV_WC_BAD_RESP_ERR, VB_REASON_BAD_RESPONSE);
}

/* A NAK that ends the request (IBA 9.7.5.2.1). */
static void refused(struct vb_tqp *qp, const struct vb_run *run)
{
	enum ibv_wc_status status;
	enum vb_reason reason;

	switch (run->syndrome) {
	case VB_AETH_NAK_INVALID:
		status = IBV_WC_REM_INV_REQ_ERR;
		reason = VB_REASON_NAK_INVALID;
		break;
	case VB_AETH_NAK_ACCESS:
		status = IBV_WC_REM_ACCESS_ERR;
		reason = VB_REASON_NAK_ACCESS;
		break;
	case VB_AETH_NAK_OPERATION:
		status = IBV_WC_REM_OP_ERR;
		reason = VB_REASON_NAK_OPERATION;
		break;
	default: /* a reserved code */
		qp->env->queue.drop(qp, VB_REASON_DROP_MALFORMED, run);
		return;
	}
	vb_requester_fail(qp, status, reason);
}

/*
 * A repeated ACK is normal. An ACK of a PSN that was never sent is not. Nor is a NAK for a PSN that
 * was acknowledged, unless the NAK is old and late. A peer whose rq_psn is not the sq_psn here
 * sends both.
 */
static void ack_unexpected(struct vb_tqp *qp, const struct vb_run *run)
{
	struct vb_requester *r = &qp->req;
	bool nak = run->syndrome == VB_AETH_NAK_SEQUENCE;

	if (vb_psn_diff(run->psn, r->max_psn) >= 0) {
		qp->env->queue.drop(qp, VB_REASON_DROP_STALE, run);
		vb_retry_odd_psn(qp, nak ? run->psn : vb_psn_add(run->psn, 1));
	} else if (nak && (qp->link_reliable || r->una == r->first_psn)) {
		qp->env->queue.drop(qp, VB_REASON_DROP_STALE, run);
		vb_retry_odd_psn(qp, run->psn);
	}
}

static void ack(struct vb_tqp *qp, const struct vb_run *run)
{
	struct vb_requester *r = &qp->req;

	if (!outstanding(r, run->psn)) {
		ack_unexpected(qp, run);
		return;
	}
	if (VB_AETH_CLASS(run->syndrome) == (VB_AETH_ACK & 0x60)) {
		if (!acked(qp, vb_psn_add(run->psn, 1)))
			vb_retry_lost(qp, VB_REASON_RETRY_EXCEEDED);
		return;
	}
	/* A NAK acknowledges all PSNs before it. */
	if (!acked(qp, run->psn)) {
		vb_retry_lost(qp, VB_REASON_RETRY_EXCEEDED);
		return;
	}
	if (VB_AETH_CLASS(run->syndrome) == VB_AETH_RNR)
		vb_retry_not_ready(qp, VB_AETH_VALUE(run->syndrome));
	else if (run->syndrome == VB_AETH_NAK_SEQUENCE)
		vb_retry_lost(qp, VB_REASON_NAK_SEQUENCE);
	else if (VB_AETH_CLASS(run->syndrome) == 0x60)
		refused(qp, run);
	else
		qp->env->queue.drop(qp, VB_REASON_DROP_MALFORMED, run);
}

/*
 * The oldest entry, if a response of this kind and PSN belongs to it. Otherwise NULL: the fault has
 * been handled.
 */
static struct vb_send_wqe *answered(struct vb_tqp *qp, const struct vb_run *run, uint8_t kind)
{
	struct vb_requester *r = &qp->req;
	struct vb_send_wqe *w;
	uint8_t have;

	if (!outstanding(r, run->psn)) {
		qp->env->queue.drop(qp, VB_REASON_DROP_STALE, run);
		return NULL;
	}
	/* A response also acknowledges the SENDs and WRITEs before its request (IBA 9.7.5.1.2). */
	if (!acked(qp, run->psn)) {
		vb_retry_lost(qp, VB_REASON_RETRY_EXCEEDED);
		return NULL;
	}
	w = vb_tqp_wqe(qp, r->head);
	have = vb_operation(w->opcode)->kind;
	if (have != kind && !(kind == VB_REQUEST_READ && have == VB_REQUEST_CONFIRMED)) {
		bad_response(qp, run);
		return NULL;
	}
	return w;
}

static void read_response(struct vb_tqp *qp, const struct vb_run *in, const void *payload)
{
	struct vb_requester *r = &qp->req;
	struct vb_run run = *in;
	struct vb_send_wqe *w;
	uint32_t first;
	uint64_t whole;
	uint64_t offset;
	uint64_t want;
	enum vb_reason reason;
	int32_t old = vb_psn_diff(r->una, run.psn);

	/* A repeated response may begin with packets that were taken before. */
	if (old > 0 && old < run.segments && (uint64_t)old * qp->mtu < run.length) {
		run.psn = r->una;
		run.segments -= (uint16_t)old;
		run.length -= (uint32_t)old * qp->mtu;
		payload = (const char *)payload + (size_t)old * qp->mtu;
	}
	w = answered(qp, &run, VB_REQUEST_READ);
	if (!w)
		return;
	/* The bytes of an ATOMIC_WRITE are the request's: its response carries no data. */
	whole = w->opcode == IBV_WR_RDMA_READ ? w->length : 0;
	first = (run.psn - w->first_psn) & VB_PSN_MASK;
	offset = (uint64_t)first * qp->mtu;
	want = first + run.segments == w->num_psn ? whole - offset
						  : (uint64_t)run.segments * qp->mtu;
	if (first + run.segments > w->num_psn || run.length != want ||
	    vb_psn_diff(vb_psn_add(run.psn, run.segments), r->max_psn) > 0) {
		bad_response(qp, &run);
		return;
	}
	if (run.length) {
		reason = qp->env->memory.scatter_response(qp, w, offset, payload, run.length);
		if (reason) {
			vb_requester_fail(qp, IBV_WC_LOC_PROT_ERR, reason);
			return;
		}
	}
	r->una = vb_psn_add(run.psn, run.segments);
	progress(qp);
	vb_requester_acked(qp, r->una);
}

static void atomic_response(struct vb_tqp *qp, const struct vb_run *run)
{
	struct vb_requester *r = &qp->req;
	struct vb_send_wqe *w = answered(qp, run, VB_REQUEST_ATOMIC);
	enum vb_reason reason;

	if (!w)
		return;
	reason = qp->env->memory.scatter_response(qp, w, 0, &run->original, sizeof(run->original));
	if (reason) {
		vb_requester_fail(qp, IBV_WC_LOC_PROT_ERR, reason);
		return;
	}
	r->una = vb_psn_add(run->psn, 1);
	progress(qp);
	vb_requester_acked(qp, r->una);
}

/* The peer's reason for a drop, as a reason of this side. */
static enum vb_reason told(uint32_t reason)
{
	switch (reason) {
	case VB_REASON_DROP_STATE:
		return VB_REASON_PEER_NOT_READY;
	case VB_REASON_DROP_FAILED:
		return VB_REASON_PEER_FAILED;
	case VB_REASON_DROP_QPN:
		return VB_REASON_PEER_NO_QP;
	case VB_REASON_DROP_TYPE:
		return VB_REASON_PEER_TYPE;
	case VB_REASON_DROP_SOURCE:
		return VB_REASON_PEER_SOURCE;
	case VB_REASON_DROP_PKEY:
		return VB_REASON_PEER_PKEY;
	case VB_REASON_DROP_NOT_YET:
		return VB_REASON_PEER_NOT_YET;
	default: /* the program could do nothing with the details; the peer's log has them */
		return VB_REASON_RETRY_EXCEEDED;
	}
}

static void dropped(struct vb_tqp *qp, const struct vb_run *run)
{
	struct vb_requester *r = &qp->req;

	if (!outstanding(r, run->psn))
		return;
	if (run->imm == VB_REASON_DROP_LENT) {
		/* The receiver is ready: nothing is waited for, and no try is counted. */
		r->lend_pause = VB_LEND_PAUSE;
		if (!r->wait)
			vb_requester_go_back(qp);
		return;
	}
	if (run->imm == VB_REASON_DROP_PSN) {
		/*
		 * For another PSN than the oldest it only says that the oldest has not arrived yet.
		 */
		if (run->psn == r->una)
			vb_retry_odd_psn(qp, run->msn);
		return;
	}
	/*
	 * While only the oldest packet is sent, answers for others belong to an earlier
	 * transmission.
	 */
	if (!r->probing || run->psn == r->una)
		vb_retry_dropped(qp, told(run->imm));
}

void vb_completer_receive(struct vb_tqp *qp, const struct vb_run *run, const void *payload)
{
	switch (run->op) {
	case VB_OP_ACK:
		ack(qp, run);
		break;
	case VB_OP_READ_RESPONSE:
		read_response(qp, run, payload);
		break;
	case VB_OP_ATOMIC_ACK:
		atomic_response(qp, run);
		break;
	default: /* VB_OP_DROP */
		dropped(qp, run);
		break;
	}
}

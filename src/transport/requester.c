/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The requester: posted work is started in order, as far as it may be, and sent run by run. */
#include "transport/requester.h"

#include "transport/psn.h"
#include "transport/service.h"
#include "transport/tqp.h"

/*
 * Faults that are known without sending a packet, and of which the peer is not told (IBA 9.9.2.1).
 */
static enum ibv_wc_status judge(const struct vb_tqp *qp, const struct vb_send_wqe *w,
				const struct vb_operation *op, enum vb_reason *reason)
{
	if (!(op->senders & qp->sender)) {
		*reason = VB_REASON_OPCODE;
		return IBV_WC_LOC_QP_OP_ERR;
	}
	if (w->length < qp->least ||
	    w->length > (qp->service == VB_SERVICE_UD ? qp->mtu : VB_MESSAGE_MOST)) {
		*reason = VB_REASON_MESSAGE_LENGTH;
		return IBV_WC_LOC_LEN_ERR;
	}
	if (op->kind < VB_REQUEST_READ)
		return IBV_WC_SUCCESS;
	if (op->bytes && w->length != op->bytes) {
		*reason = VB_REASON_ATOMIC_LENGTH;
		return IBV_WC_LOC_LEN_ERR;
	}
	if (w->opcode == IBV_WR_FLUSH && w->flush_length > VB_MESSAGE_MOST) {
		*reason = VB_REASON_MESSAGE_LENGTH;
		return IBV_WC_LOC_LEN_ERR;
	}
	if (op->kind != VB_REQUEST_LOCAL && !qp->max_rd_atomic) {
		*reason = VB_REASON_RD_ATOMIC_ZERO;
		return IBV_WC_LOC_QP_OP_ERR;
	}
	return IBV_WC_SUCCESS;
}

/* An operation without packets: executed now, complete when every entry before it is. */
static enum vb_step start_local(struct vb_tqp *qp, struct vb_send_wqe *w)
{
	struct vb_requester *r = &qp->req;
	enum vb_reason reason;

	if (w->fence && r->cur != r->head)
		return VB_STEP_STOP;
	reason = w->opcode == IBV_WR_BIND_MW ? qp->env->memory.bind(qp, w)
					     : qp->env->memory.invalidate(qp, w->invalidate_key);
	if (reason)
		return vb_requester_refuse(qp, w, IBV_WC_MW_BIND_ERR, reason);
	w->first_psn = r->next_psn;
	w->num_psn = 0;
	r->cur = ++r->started;
	if (r->head + 1 == r->started)
		vb_requester_acked(qp, r->una);
	return VB_STEP_ON;
}

struct vb_send_wqe *vb_requester_alike(const struct vb_tqp *qp, uint32_t behind)
{
	const struct vb_requester *r = &qp->req;
	enum vb_reason reason;

	if (behind >= qp->sq_posted - r->head)
		return NULL;
	struct vb_send_wqe *w = vb_tqp_wqe(qp, r->head + behind);

	if (w->opcode != vb_tqp_wqe(qp, r->head)->opcode || w->error)
		return NULL;
	return judge(qp, w, vb_operation(w->opcode), &reason) == IBV_WC_SUCCESS ? w : NULL;
}

struct vb_send_wqe *vb_requester_lent(const struct vb_tqp *qp, uint32_t psn, uint32_t length,
				      uint64_t *offset)
{
	const struct vb_requester *r = &qp->req;

	if (vb_psn_diff(psn, r->una) < 0 || vb_psn_diff(psn, r->max_psn) >= 0)
		return NULL;
	for (uint32_t i = r->head; i != r->started; i++) {
		struct vb_send_wqe *w = vb_tqp_wqe(qp, i);
		uint32_t before = (psn - w->first_psn) & VB_PSN_MASK;

		if (before >= w->num_psn)
			continue;
		*offset = (uint64_t)before * qp->mtu;
		return vb_operation(w->opcode)->op == VB_OP_SEND && *offset <= w->length &&
				       length <= w->length - *offset
			       ? w
			       : NULL;
	}
	return NULL;
}

/*
 * Several entries were posted together: those that the link executes at once are complete. True if
 * any was. A completion may take the queue pair to ERR, which flushes the others.
 */
static bool start_list(struct vb_tqp *qp, struct vb_send_wqe *w)
{
	struct vb_requester *r = &qp->req;
	uint32_t done, left;

	if (!qp->env->link.direct_list || r->direct_more || qp->sq_posted - r->head < 2)
		return false;
	done = qp->env->link.direct_list(qp, w);
	for (left = done; left && r->head != qp->sq_posted; left--)
		vb_requester_done(qp, vb_tqp_wqe(qp, r->head));
	return done > 0;
}

/* Direct access is tried when nothing is in flight before the entry. False: send the entry. */
static bool start_direct(struct vb_tqp *qp, struct vb_send_wqe *w, enum vb_step *step)
{
	struct vb_requester *r = &qp->req;
	bool two_sided = (int32_t)(r->two_sided - r->head) > 0;

	*step = VB_STEP_STOP;
	if (!two_sided) /* kept close to `head`, so that the counters always compare */
		r->two_sided = r->head;
	if (r->cur != r->head)
		return qp->env->link.direct_waits && qp->env->link.direct_waits(qp, w, two_sided);
	if (start_list(qp, w)) {
		*step = VB_STEP_ON;
		return true;
	}
	switch (qp->env->link.direct(qp, w)) {
	case VB_DIRECT_MORE:
		r->direct_more = true;
		*step = VB_STEP_LINK;
		return true;
	case VB_DIRECT_DONE:
		r->direct_more = false;
		vb_requester_done(qp, w);
		*step = VB_STEP_ON;
		return true;
	default:
		r->direct_more = false;
		return false;
	}
}

/* Gives the entry at cur its PSNs, or finds out that it cannot or need not be sent. */
static enum vb_step start(struct vb_tqp *qp, struct vb_send_wqe *w)
{
	struct vb_requester *r = &qp->req;
	const struct vb_operation *op = vb_operation(w->opcode);
	enum vb_reason reason = VB_REASON_NONE;
	enum ibv_wc_status status = judge(qp, w, op, &reason);
	enum vb_step step;

	if (status)
		return vb_requester_refuse(qp, w, status, reason);
	if (r->dead && vb_service_reliable(qp->service))
		return vb_requester_refuse(qp, w, IBV_WC_RETRY_EXC_ERR, VB_REASON_PEER_DEAD);
	if (r->dead && qp->service == VB_SERVICE_UC) {
		vb_requester_done(qp, w);
		return VB_STEP_ON;
	}
	if (w->fence && r->rd_head != r->rd_tail) /* IBA 10.8.3.3 */
		return VB_STEP_STOP;
	if (op->kind == VB_REQUEST_LOCAL)
		return start_local(qp, w);
	if (op->direct && qp->env->link.direct && start_direct(qp, w, &step))
		return step;
	w->first_psn = r->next_psn;
	w->num_psn = w->length <= qp->mtu ? 1 : vb_psn_count(w->length, qp->mtu);
	/*
	 * A message of one run is checked while it is gathered. Of a longer one no run may be sent
	 * if the last would fail the check.
	 */
	if (op->kind == VB_REQUEST_DATA && w->length > qp->max_run_bytes && !w->is_inline) {
		reason = qp->env->memory.gather_check(qp, w);
		if (reason)
			return vb_requester_refuse(qp, w, IBV_WC_LOC_PROT_ERR, reason);
	}
	r->next_psn = vb_psn_add(r->next_psn, w->num_psn);
	r->started++;
	if (!op->direct)
		r->two_sided = r->started;
	return VB_STEP_ON;
}

static enum vb_step step(struct vb_tqp *qp)
{
	struct vb_requester *r = &qp->req;
	struct vb_send_wqe *w;

	if (r->cur == r->started &&
	    (r->cur == qp->sq_posted || (qp->state != IBV_QPS_RTS && !r->direct_more)))
		return VB_STEP_STOP;
	w = vb_tqp_wqe(qp, r->cur);
	if (w->error)
		return vb_requester_refuse(qp, w, w->error, w->reason);
	if (r->cur == r->started) {
		enum vb_step s = start(qp, w);

		if (s != VB_STEP_ON || r->cur == r->started)
			return s;
	}
	if (!w->num_psn) { /* executed when it was started: there is nothing to repeat */
		r->cur++;
		return VB_STEP_ON;
	}
	return vb_services[qp->service].emit(qp, w, vb_operation(w->opcode));
}

bool vb_requester_run(struct vb_tqp *qp)
{
	enum vb_step s;

	if (qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_SQE) {
		vb_requester_flush(qp, VB_REASON_FLUSHED);
		return false;
	}
	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
		return false;
	if (qp->req.wait)
		return false;
	do {
		s = step(qp);
	} while (s == VB_STEP_ON);
	return s == VB_STEP_LINK;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The requester's queue: starting entries in order, going back, completing, failing, flushing. */
#include "transport/requester.h"

#include "transport/psn.h"
#include "transport/tqp.h"

#define MAX_MESSAGE (1ull << 31) /* IBA 9.7.4.1.5 */

#define RC          (1u << VB_SERVICE_RC | 1u << VB_SERVICE_XRC) /* the same operations (IBA A14) */
#define UC          (1u << VB_SERVICE_UC)
#define UD          (1u << VB_SERVICE_UD)

/* ibv_post_send(3); SEND_WITH_INV is listed for UC there, but has no opcode on its wire (IBA 9.2). */
static const struct vb_request_op ops[] = {
	[IBV_WR_RDMA_WRITE] = {VB_REQUEST_DATA, VB_OP_WRITE, 0, RC | UC, true},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {VB_REQUEST_DATA, VB_OP_WRITE, VB_RUN_IMM, RC | UC, false},
	[IBV_WR_SEND] = {VB_REQUEST_DATA, VB_OP_SEND, 0, RC | UC | UD, false},
	[IBV_WR_SEND_WITH_IMM] = {VB_REQUEST_DATA, VB_OP_SEND, VB_RUN_IMM, RC | UC | UD, false},
	[IBV_WR_RDMA_READ] = {VB_REQUEST_READ, VB_OP_READ_REQUEST, 0, RC, true},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {VB_REQUEST_ATOMIC, VB_OP_COMPARE_SWAP, 0, RC, true},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {VB_REQUEST_ATOMIC, VB_OP_FETCH_ADD, 0, RC, true},
	[IBV_WR_LOCAL_INV] = {VB_REQUEST_LOCAL, 0, 0, RC | UC, false},
	[IBV_WR_BIND_MW] = {VB_REQUEST_LOCAL, 0, 0, RC | UC, false},
	[IBV_WR_SEND_WITH_INV] = {VB_REQUEST_DATA, VB_OP_SEND, VB_RUN_INV, RC, false},
	[IBV_WR_FLUSH] = {VB_REQUEST_CONFIRMED, VB_OP_FLUSH, 0, RC, true},
	[IBV_WR_ATOMIC_WRITE] = {VB_REQUEST_CONFIRMED, VB_OP_ATOMIC_WRITE, 0, RC, true},
};

const struct vb_request_op *vb_request_op(uint8_t opcode)
{
	static const struct vb_request_op none = {VB_REQUEST_NONE, 0, 0, 0, false};

	return opcode < sizeof(ops) / sizeof(ops[0]) ? &ops[opcode] : &none;
}

uint32_t *vb_requester_grow(struct vb_requester *r, uint32_t *rd_end, uint32_t slots)
{
	uint32_t *former = r->rd_end;

	for (uint8_t n = r->rd_head; n != r->rd_tail; n++)
		rd_end[n & (slots - 1)] = former[n & (r->rd_slots - 1)];
	r->rd_end = rd_end;
	r->rd_slots = (uint16_t)slots;
	return former;
}

void vb_requester_flush(struct vb_tqp *qp, enum vb_reason reason)
{
	struct vb_requester *r = &qp->req;

	r->direct_more = false;
	while (r->head != qp->sq_posted) {
		struct vb_send_wqe *w = vb_tqp_wqe(qp, r->head);

		r->cur = r->started = ++r->head;
		qp->env->send_done(qp, w, IBV_WC_WR_FLUSH_ERR, reason);
	}
	r->cur = r->started = r->head;
	r->psn = r->una = r->max_psn = r->next_psn;
	r->rd_head = r->rd_tail = 0;
}

void vb_requester_fail(struct vb_tqp *qp, enum ibv_wc_status status, enum vb_reason reason)
{
	struct vb_requester *r = &qp->req;
	struct vb_send_wqe *w = vb_tqp_wqe(qp, r->head);

	vb_retry_cancel(qp);
	/* IBA 10.3.1: an unreliable queue pair only stops sending. */
	qp->state = vb_service_reliable(qp->service) ? IBV_QPS_ERR : IBV_QPS_SQE;
	qp->failed = qp->state == IBV_QPS_ERR;
	r->head++;
	qp->env->send_done(qp, w, status, reason);
	if (qp->state == IBV_QPS_ERR)
		vb_responder_recv_fail(qp, IBV_WC_WR_FLUSH_ERR, VB_REASON_FLUSHED_LOCAL);
	qp->env->state_changed(qp);
	vb_requester_flush(qp, VB_REASON_FLUSHED_LOCAL);
}

enum vb_step vb_requester_refuse(struct vb_tqp *qp, struct vb_send_wqe *w,
				 enum ibv_wc_status status, enum vb_reason reason)
{
	w->error = (uint8_t)status;
	w->reason = (uint16_t)reason;
	if (qp->req.head == qp->req.cur)
		vb_requester_fail(qp, status, reason);
	return VB_STEP_STOP;
}

static inline bool has_response(uint8_t kind)
{
	return kind >= VB_REQUEST_READ && kind <= VB_REQUEST_CONFIRMED;
}

/* READ, ATOMIC and their like complete by their response alone, the rest by any later acknowledgement (IBA 9.7.5.1.2). */
bool vb_requester_acked(struct vb_tqp *qp, uint32_t upto)
{
	struct vb_requester *r = &qp->req;
	bool clear = true;

	while (r->head != r->started) {
		struct vb_send_wqe *w = vb_tqp_wqe(qp, r->head);
		uint32_t end = vb_psn_add(w->first_psn, w->num_psn);
		uint8_t kind = vb_request_op(w->opcode)->kind;

		if (has_response(kind) && r->una != end) {
			clear = vb_psn_diff(upto, r->una) <= 0;
			break;
		}
		if (vb_psn_diff(upto, end) < 0) {
			if (vb_psn_diff(upto, r->una) > 0)
				r->una = upto;
			break;
		}
		r->una = end;
		r->head++;
		qp->env->send_done(qp, w, IBV_WC_SUCCESS, VB_REASON_NONE);
	}
	while (r->rd_head != r->rd_tail &&
	       vb_psn_diff(r->una, r->rd_end[r->rd_head & (r->rd_slots - 1)]) >= 0)
		r->rd_head++;
	/* What was to be sent again has meanwhile been acknowledged. */
	if (vb_psn_diff(r->una, r->psn) > 0 || (int32_t)(r->head - r->cur) > 0) {
		r->cur = r->head;
		r->psn = r->una;
	}
	return clear;
}

void vb_requester_go_back(struct vb_tqp *qp)
{
	struct vb_requester *r = &qp->req;

	r->cur = r->head;
	r->psn = r->ack_asked = r->una;
	r->rd_head = r->rd_tail = 0;
}

/* Faults that are known without sending anything and are never told to the peer (IBA 9.9.2.1). */
static enum ibv_wc_status judge(const struct vb_tqp *qp, const struct vb_send_wqe *w,
				const struct vb_request_op *op, enum vb_reason *reason)
{
	if (!(op->services & (1u << qp->service))) {
		*reason = VB_REASON_OPCODE;
		return IBV_WC_LOC_QP_OP_ERR;
	}
	if (w->length < qp->least ||
	    w->length > (qp->service == VB_SERVICE_UD ? qp->mtu : MAX_MESSAGE)) {
		*reason = VB_REASON_MESSAGE_LENGTH;
		return IBV_WC_LOC_LEN_ERR;
	}
	if (op->kind < VB_REQUEST_READ)
		return IBV_WC_SUCCESS;
	if ((op->kind == VB_REQUEST_ATOMIC || w->opcode == IBV_WR_ATOMIC_WRITE) && w->length != 8) {
		*reason = VB_REASON_ATOMIC_LENGTH;
		return IBV_WC_LOC_LEN_ERR;
	}
	if (w->opcode == IBV_WR_FLUSH && w->compare_add > MAX_MESSAGE) {
		*reason = VB_REASON_MESSAGE_LENGTH;
		return IBV_WC_LOC_LEN_ERR;
	}
	if (op->kind != VB_REQUEST_LOCAL && !qp->max_rd_atomic) {
		*reason = VB_REASON_RD_ATOMIC_ZERO;
		return IBV_WC_LOC_QP_OP_ERR;
	}
	return IBV_WC_SUCCESS;
}

static void done_at_once(struct vb_tqp *qp, struct vb_send_wqe *w)
{
	struct vb_requester *r = &qp->req;

	r->cur = r->started = ++r->head;
	qp->env->send_done(qp, w, IBV_WC_SUCCESS, VB_REASON_NONE);
}

/* An operation without packets: done now, complete when everything before it is. */
static enum vb_step start_local(struct vb_tqp *qp, struct vb_send_wqe *w)
{
	struct vb_requester *r = &qp->req;
	enum vb_reason reason;

	if (w->fence && r->cur != r->head)
		return VB_STEP_STOP;
	reason = w->opcode == IBV_WR_BIND_MW ? qp->env->bind(qp, w)
					     : qp->env->invalidate(qp, w->imm);
	if (reason)
		return vb_requester_refuse(qp, w, IBV_WC_MW_BIND_ERR, reason);
	w->first_psn = r->next_psn;
	w->num_psn = 0;
	r->cur = ++r->started;
	if (r->head + 1 == r->started)
		vb_requester_acked(qp, r->una);
	return VB_STEP_ON;
}

/* Direct access is tried when nothing is in flight before the entry. False: send it. */
static bool start_direct(struct vb_tqp *qp, struct vb_send_wqe *w, enum vb_step *step)
{
	struct vb_requester *r = &qp->req;
	bool two_sided = (int32_t)(r->two_sided - r->head) > 0;

	*step = VB_STEP_STOP;
	if (!two_sided) /* kept near, so that it compares for ever */
		r->two_sided = r->head;
	if (r->cur != r->head)
		return qp->env->direct_waits && qp->env->direct_waits(qp, w, two_sided);
	switch (qp->env->direct(qp, w)) {
	case VB_DIRECT_MORE:
		r->direct_more = true;
		*step = VB_STEP_LINK;
		return true;
	case VB_DIRECT_DONE:
		r->direct_more = false;
		done_at_once(qp, w);
		*step = VB_STEP_ON;
		return true;
	default:
		r->direct_more = false;
		return false;
	}
}

/* Gives the entry at cur its PSNs, or finds out that it can't or need not be sent. */
static enum vb_step start(struct vb_tqp *qp, struct vb_send_wqe *w)
{
	struct vb_requester *r = &qp->req;
	const struct vb_request_op *op = vb_request_op(w->opcode);
	enum vb_reason reason = VB_REASON_NONE;
	enum ibv_wc_status status = judge(qp, w, op, &reason);
	enum vb_step step;

	if (status)
		return vb_requester_refuse(qp, w, status, reason);
	if (r->dead && vb_service_reliable(qp->service))
		return vb_requester_refuse(qp, w, IBV_WC_RETRY_EXC_ERR, VB_REASON_PEER_DEAD);
	if (r->dead && qp->service == VB_SERVICE_UC) {
		done_at_once(qp, w);
		return VB_STEP_ON;
	}
	if (w->fence && r->rd_head != r->rd_tail) /* IBA 10.8.3.3 */
		return VB_STEP_STOP;
	if (op->kind == VB_REQUEST_LOCAL)
		return start_local(qp, w);
	if (op->direct && qp->env->direct && start_direct(qp, w, &step))
		return step;
	w->first_psn = r->next_psn;
	w->num_psn = w->length <= qp->mtu ? 1 : vb_psn_count(w->length, qp->mtu);
	/* One run is checked while it is gathered; of several, nothing may be sent if the last one fails. */
	if (op->kind == VB_REQUEST_DATA && w->length > qp->max_run_bytes && !w->is_inline) {
		reason = qp->env->gather_check(qp, w);
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
	return vb_request_emit(qp, w);
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

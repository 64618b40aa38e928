/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The send queue: entries complete in order, are flushed, or are sent again. */
#include "transport/operation.h"
#include "transport/psn.h"
#include "transport/requester.h"
#include "transport/tqp.h"

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
		qp->env->queue.send_done(qp, w, IBV_WC_WR_FLUSH_ERR, reason);
	}
	r->cur = r->started = r->head;
	r->psn = r->una = r->max_psn = r->next_psn;
	r->rd_head = r->rd_tail = 0;
}

static inline bool has_response(uint8_t kind)
{
	return kind >= VB_REQUEST_READ && kind <= VB_REQUEST_CONFIRMED;
}

/*
 * READ, ATOMIC, ATOMIC_WRITE and FLUSH complete by their response alone; other requests complete by
 * any later acknowledgement (IBA 9.7.5.1.2).
 */
bool vb_requester_acked(struct vb_tqp *qp, uint32_t upto)
{
	struct vb_requester *r = &qp->req;
	bool clear = true;

	while (r->head != r->started) {
		struct vb_send_wqe *w = vb_tqp_wqe(qp, r->head);
		uint32_t end = vb_psn_add(w->first_psn, w->num_psn);
		uint8_t kind = vb_operation(w->opcode)->kind;

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
		qp->env->queue.send_done(qp, w, IBV_WC_SUCCESS, VB_REASON_NONE);
	}
	while (r->rd_head != r->rd_tail &&
	       vb_psn_diff(r->una, r->rd_end[r->rd_head & (r->rd_slots - 1)]) >= 0)
		r->rd_head++;
	/* The packets that were to be sent again have meanwhile been acknowledged. */
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

void vb_requester_done(struct vb_tqp *qp, struct vb_send_wqe *w)
{
	struct vb_requester *r = &qp->req;

	r->cur = r->started = ++r->head;
	qp->env->queue.send_done(qp, w, IBV_WC_SUCCESS, VB_REASON_NONE);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Requests as runs: the next part of a SEND or WRITE, READ requests, atomics, datagrams. */
#include "transport/psn.h"
#include "transport/requester.h"
#include "transport/tqp.h"

#define WINDOW_MOST (1u << 22) /* far below 2^23, within which PSNs compare (IBA 9.7.2) */

/*
 * After a pause one packet asks whether the peer is ready; the others follow when it is answered.
 */
static inline uint32_t window(const struct vb_tqp *qp)
{
	if (qp->req.probing)
		return 1;
	return qp->window_packets && qp->window_packets < WINDOW_MOST ? qp->window_packets
								      : WINDOW_MOST;
}

/* Responses of READs fill the receive buffer of this host, the others that of the peer. */
static inline uint32_t read_window(const struct vb_tqp *qp)
{
	if (qp->req.probing || !qp->read_window_packets)
		return window(qp);
	return qp->read_window_packets < WINDOW_MOST ? qp->read_window_packets : WINDOW_MOST;
}

static inline uint32_t in_flight(const struct vb_requester *r)
{
	return (uint32_t)vb_psn_diff(r->psn, r->una);
}

/* The fields that every request has. */
static inline void fill(const struct vb_tqp *qp, struct vb_run *run, uint8_t op, uint8_t flags)
{
	run->service = qp->service;
	run->op = op;
	run->flags = flags;
	run->syndrome = 0;
	run->pkey = qp->pkey;
	run->segments = 1;
	run->dest_qpn = qp->dest_qpn;
	run->src_qpn = qp->qpn;
	run->psn = qp->req.psn;
	run->srqn = vb_tqp_wqe(qp, qp->req.cur)->srqn;
	run->length = 0;
}

static inline void sent(struct vb_tqp *qp, struct vb_send_wqe *w, uint32_t packets)
{
	struct vb_requester *r = &qp->req;
	bool first = r->max_psn == r->una;

	r->psn = vb_psn_add(r->psn, packets);
	if (vb_psn_diff(r->psn, r->max_psn) > 0)
		r->max_psn = r->psn;
	if (r->psn == vb_psn_add(w->first_psn, w->num_psn))
		r->cur++;
	if (first)
		r->progress = true;
	if (!r->timer)
		vb_retry_arm(qp);
}

/*
 * A message without acknowledgement is complete when the link has its last packet (IBA 9.8.2,
 * 9.8.3).
 */
static inline void sent_unreliable(struct vb_tqp *qp, struct vb_send_wqe *w, uint32_t packets)
{
	struct vb_requester *r = &qp->req;

	r->psn = r->una = r->max_psn = vb_psn_add(r->psn, packets);
	if (r->psn != vb_psn_add(w->first_psn, w->num_psn))
		return;
	r->head = r->cur = r->started;
	qp->env->queue.send_done(qp, w, IBV_WC_SUCCESS, VB_REASON_NONE);
}

/*
 * Whether a run that ends at `psn` asks for an acknowledgement (IBA 9.7.5.1.7: the requester
 * chooses).
 */
static inline bool wants_ack(struct vb_requester *r, bool last, uint32_t psn, uint32_t limit)
{
	int32_t since = vb_psn_diff(psn, r->ack_asked);

	if (!last && since < (int32_t)(limit / 4) && (uint32_t)vb_psn_diff(psn, r->una) < limit)
		return false;
	r->ack_asked = psn;
	return true;
}

/*
 * A message that goes the other way takes the acknowledgement along: of two slots of a ring, one is
 * left.
 */
static inline void ack_mount(const struct vb_tqp *qp, struct vb_run *run)
{
	if (!qp->acks_ride || !vb_tqp_owes_ack_alone(qp))
		return;
	run->flags |= VB_RUN_ACKS;
	run->ack_psn = qp->resp.ack_psn;
}

/* The run has been handed to the link. */
static inline void ack_sent(struct vb_tqp *qp, const struct vb_run *run)
{
	if (run->flags & VB_RUN_ACKS)
		qp->resp.owed &= (uint8_t)~VB_OWED_ACK;
}

/*
 * Whether the receiver fetches the payload of this run. One that it could not fetch lately is sent,
 * and so are some after it.
 */
static bool lend(struct vb_tqp *qp, struct vb_send_wqe *w, uint64_t offset, struct vb_run *run)
{
	if (qp->req.lend_pause) {
		qp->req.lend_pause--;
		return false;
	}
	if (!qp->env->link.lend(qp, w, offset, run->length, &run->lent))
		return false;
	run->flags |= VB_RUN_LENT;
	return true;
}

/* The most bytes of the next run, of which `rest` are left. */
static inline uint32_t run_most(const struct vb_tqp *qp, const struct vb_operation *op,
				uint64_t rest)
{
	return qp->lends && op->op == VB_OP_SEND && rest >= VB_LEND_LEAST ? VB_LEND_MOST
									  : qp->max_run_bytes;
}

/* The length and, of a SEND, whether its payload is lent. */
static inline void run_measure(struct vb_tqp *qp, struct vb_send_wqe *w,
			       const struct vb_operation *op, uint64_t offset, uint32_t room,
			       struct vb_run *run)
{
	uint64_t rest = w->length - offset;
	uint32_t most = run_most(qp, op, rest);

	run->length = rest < most ? (uint32_t)rest : most;
	if ((uint64_t)room * qp->mtu < run->length)
		run->length = room * qp->mtu;
	if (most != qp->max_run_bytes &&
	    (run->length < VB_LEND_LEAST || !lend(qp, w, offset, run)) &&
	    run->length > qp->max_run_bytes)
		run->length = qp->max_run_bytes;
}

/* SEND and WRITE of the connected services. */
static enum vb_step emit_data(struct vb_tqp *qp, struct vb_send_wqe *w,
			      const struct vb_operation *op)
{
	struct vb_requester *r = &qp->req;
	uint32_t before = (r->psn - w->first_psn) & VB_PSN_MASK;
	uint64_t offset = (uint64_t)before * qp->mtu;
	uint32_t limit = window(qp);
	uint32_t flight = in_flight(r);
	struct vb_run run;
	enum vb_reason reason;
	uint32_t length;
	bool last;
	void *buffer;

	if (flight >= limit)
		return VB_STEP_STOP;
	fill(qp, &run, op->op, before ? 0 : VB_RUN_FIRST);
	run_measure(qp, w, op, offset, limit - flight, &run);
	length = run.length;
	last = length == w->length - offset;
	run.segments = length <= qp->mtu ? 1 : (uint16_t)vb_psn_count(length, qp->mtu);
	if (last) {
		run.flags |= VB_RUN_LAST | op->flags | (w->solicited ? VB_RUN_SOLICITED : 0);
		run.imm = w->imm;
	}
	ack_mount(qp, &run);
	buffer = qp->env->link.reserve(qp, NULL, &run);
	if (!buffer)
		return VB_STEP_LINK;
	if (length && !(run.flags & VB_RUN_LENT)) {
		reason = qp->env->memory.gather(qp, w, offset, buffer, length);
		if (reason)
			return vb_requester_refuse(qp, w, IBV_WC_LOC_PROT_ERR, reason);
	}
	if (op->op == VB_OP_WRITE && !before) {
		run.va = w->remote_addr;
		run.rkey = w->rkey;
		run.dma_length = (uint32_t)w->length;
	}
	if (qp->service == VB_SERVICE_UC) {
		qp->env->link.commit(qp, NULL, &run);
		sent_unreliable(qp, w, run.segments);
		return VB_STEP_ON;
	}
	if (wants_ack(r, last, vb_psn_add(r->psn, run.segments), limit))
		run.flags |= VB_RUN_ACK_REQ;
	qp->env->link.commit(qp, NULL, &run);
	ack_sent(qp, &run);
	sent(qp, w, run.segments);
	return VB_STEP_ON;
}

/*
 * The most packets that one READ request may ask for. Parts begin at multiples of it, also when
 * repeated.
 */
static uint32_t read_part(const struct vb_tqp *qp)
{
	uint32_t most = read_window(qp);

	if (qp->max_read_bytes && qp->max_read_bytes / qp->mtu < most)
		most = qp->max_read_bytes / qp->mtu;
	return most ? most : 1;
}

static bool rd_full(const struct vb_tqp *qp)
{
	return (uint8_t)(qp->req.rd_tail - qp->req.rd_head) >= qp->max_rd_atomic;
}

/* Called when a request was sent that a response answers. */
static void rd_sent(struct vb_requester *r)
{
	r->rd_end[r->rd_tail++ & (r->rd_slots - 1)] = r->psn;
}

static enum vb_step emit_read(struct vb_tqp *qp, struct vb_send_wqe *w)
{
	struct vb_requester *r = &qp->req;
	uint32_t before = (r->psn - w->first_psn) & VB_PSN_MASK;
	uint32_t part = read_part(qp);
	uint32_t packets = part - before % part;
	uint64_t offset = (uint64_t)before * qp->mtu;
	uint64_t length = (uint64_t)packets * qp->mtu;
	struct vb_run run;

	if (length >= w->length - offset) {
		length = w->length - offset;
		packets = w->num_psn - before;
	}
	if (rd_full(qp) || (in_flight(r) && in_flight(r) + packets > read_window(qp)))
		return VB_STEP_STOP;
	fill(qp, &run, VB_OP_READ_REQUEST, VB_RUN_FIRST | VB_RUN_LAST);
	if (!qp->env->link.reserve(qp, NULL, &run))
		return VB_STEP_LINK;
	run.va = w->remote_addr + offset;
	run.rkey = w->rkey;
	run.dma_length = (uint32_t)length;
	qp->env->link.commit(qp, NULL, &run);
	sent(qp, w, packets);
	rd_sent(r);
	return VB_STEP_ON;
}

static enum vb_step emit_atomic(struct vb_tqp *qp, struct vb_send_wqe *w,
				const struct vb_operation *op)
{
	struct vb_requester *r = &qp->req;
	struct vb_run run;

	if (rd_full(qp) || in_flight(r) >= window(qp))
		return VB_STEP_STOP;
	fill(qp, &run, op->op, VB_RUN_FIRST | VB_RUN_LAST);
	if (!qp->env->link.reserve(qp, NULL, &run))
		return VB_STEP_LINK;
	run.va = w->remote_addr;
	run.rkey = w->rkey;
	run.compare = op->op == VB_OP_COMPARE_SWAP ? w->compare_add : 0;
	run.swap_add = op->op == VB_OP_COMPARE_SWAP ? w->swap : w->compare_add;
	qp->env->link.commit(qp, NULL, &run);
	sent(qp, w, 1);
	rd_sent(r);
	return VB_STEP_ON;
}

/*
 * ATOMIC_WRITE and FLUSH count as READs (IBA A19): the responder keeps a resource for each until it
 * is answered.
 */
static enum vb_step emit_confirmed(struct vb_tqp *qp, struct vb_send_wqe *w,
				   const struct vb_operation *op)
{
	struct vb_requester *r = &qp->req;
	uint32_t length = (uint32_t)w->length;
	enum vb_reason reason;
	struct vb_run run;
	void *buffer;

	if (rd_full(qp) || in_flight(r) >= window(qp))
		return VB_STEP_STOP;
	fill(qp, &run, op->op, VB_RUN_FIRST | VB_RUN_LAST);
	run.length = length;
	buffer = qp->env->link.reserve(qp, NULL, &run);
	if (!buffer)
		return VB_STEP_LINK;
	if (length) {
		reason = qp->env->memory.gather(qp, w, 0, buffer, length);
		if (reason)
			return vb_requester_refuse(qp, w, IBV_WC_LOC_PROT_ERR, reason);
	}
	run.va = w->remote_addr;
	run.rkey = w->rkey;
	run.flush = (uint32_t)w->feth;
	run.dma_length = op->op == VB_OP_FLUSH ? (uint32_t)w->flush_length : length;
	qp->env->link.commit(qp, NULL, &run);
	sent(qp, w, 1);
	rd_sent(r);
	return VB_STEP_ON;
}

enum vb_step vb_request_datagram(struct vb_tqp *qp, struct vb_send_wqe *w,
				 const struct vb_operation *op)
{
	struct vb_run run;
	enum vb_reason reason;
	void *buffer;

	fill(qp, &run, op->op,
	     VB_RUN_FIRST | VB_RUN_LAST | op->flags | (w->solicited ? VB_RUN_SOLICITED : 0));
	run.length = (uint32_t)w->length;
	buffer = qp->env->link.reserve(qp, w, &run);
	if (!buffer)
		return VB_STEP_LINK;
	if (w->length) {
		reason = qp->env->memory.gather(qp, w, 0, buffer, (uint32_t)w->length);
		if (reason)
			return vb_requester_refuse(qp, w, IBV_WC_LOC_PROT_ERR, reason);
	}
	run.dest_qpn = w->remote_qpn & VB_QPN_MASK;
	run.imm = w->imm;
	/* IBA 10.2.5: a Q_Key with the high bit set means the queue pair's own. */
	run.qkey = w->remote_qkey & 0x80000000u ? qp->qkey : w->remote_qkey;
	run.path = w->path;
	qp->env->link.commit(qp, w, &run);
	sent_unreliable(qp, w, 1);
	return VB_STEP_ON;
}

enum vb_step vb_request_connected(struct vb_tqp *qp, struct vb_send_wqe *w,
				  const struct vb_operation *op)
{
	switch (op->kind) {
	case VB_REQUEST_READ:
		return emit_read(qp, w);
	case VB_REQUEST_ATOMIC:
		return emit_atomic(qp, w, op);
	case VB_REQUEST_CONFIRMED:
		return emit_confirmed(qp, w, op);
	default:
		return emit_data(qp, w, op);
	}
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* RC requests: order of PSNs, SEND and WRITE, refusals. */
#include "transport/psn.h"
#include "transport/responder.h"
#include "transport/tqp.h"

static void owe_ack(struct vb_responder *p)
{
	p->owed |= VB_OWED_ACK;
	p->syndrome = VB_AETH_ACK;
}

/*
 * The request was not executed; the requester is to send again from this PSN. Later PSNs cause no
 * further NAK.
 */
static void owe_nak(struct vb_responder *p, uint8_t syndrome)
{
	p->owed |= VB_OWED_ACK;
	p->syndrome = syndrome;
	p->nak_sent = true;
}

/* The request was executed. */
static inline void advance(struct vb_responder *p, const struct vb_run *run)
{
	vb_responder_executed(p, run->segments);
	if (run->flags & VB_RUN_LAST) {
		p->message = VB_OP_COUNT;
		p->msn = (p->msn + 1) & VB_PSN_MASK;
	} else {
		p->message = run->op;
	}
	p->ack_psn = vb_psn_add(p->epsn, VB_PSN_MASK);
	p->ack_msn = p->msn;
	if (run->flags & VB_RUN_ACK_REQ)
		owe_ack(p);
}

/*
 * The window's key is invalidated before the completion that tells so. A wrong key: error here, no
 * answer to the peer (IBA 9.9.6, class J).
 */
static bool invalidate(struct vb_tqp *qp, const struct vb_run *run)
{
	enum vb_reason reason = qp->env->memory.invalidate(qp, run->imm);

	if (!reason)
		return true;
	qp->env->queue.explain(qp, VB_REASON_INVALIDATE, run);
	vb_responder_recv_fail(qp, IBV_WC_MW_BIND_ERR, reason);
	/*
	 * On a reliable link the peer must be told. An ACK that is owed for earlier messages is
	 * still sent.
	 */
	vb_responder_owe_drop(qp, run->src_qpn, run->psn, VB_REASON_INVALIDATE);
	vb_responder_error(qp);
	return false;
}

/* The receive for a message: the next one posted, unless the beginning of the message decides. */
static struct vb_recv_wqe *receive_for(struct vb_tqp *qp, const struct vb_run *run,
				       const void *payload)
{
	if (!qp->env->queue.recv_match || !(run->flags & VB_RUN_FIRST) || qp->resp.recv)
		return vb_responder_recv(qp);
	qp->resp.recv = qp->env->queue.recv_match(qp, run, payload);
	return qp->resp.recv;
}

/*
 * A payload that was not sent cannot be fetched: the sender is to send it. What comes meanwhile is
 * no sign of a loss.
 */
static void ask_for_payload(struct vb_tqp *qp, const struct vb_run *run)
{
	vb_responder_owe_drop(qp, run->src_qpn, run->psn, VB_REASON_DROP_LENT);
	qp->resp.nak_sent = true;
}

/* Fetches a payload that was not sent. False: not now. */
static bool fetch(struct vb_tqp *qp, const struct vb_run *run, struct vb_recv_wqe *recv,
		  const void *payload)
{
	struct vb_responder *p = &qp->resp;
	enum vb_reason reason = VB_REASON_NONE;

	switch (qp->env->link.fetch(qp, recv, p->done, run, (uintptr_t)payload, &reason)) {
	case VB_FETCH_DONE:
		return true;
	case VB_FETCH_LATER:
		return false;
	case VB_FETCH_FAILED:
		vb_responder_nak(qp, run, run->psn, reason);
		return false;
	default:
		ask_for_payload(qp, run);
		return false;
	}
}

/* Whether the payload has come, or is in the sender's memory where it can be fetched. */
static bool has_payload(const struct vb_tqp *qp, const struct vb_run *run)
{
	return !(run->flags & VB_RUN_LENT) || (qp->env->link.fetch && !qp->env->queue.recv_match);
}

static void send(struct vb_tqp *qp, const struct vb_run *run, const void *payload)
{
	struct vb_responder *p = &qp->resp;
	struct vb_recv_wqe *recv;
	enum vb_reason reason;

	if (!has_payload(qp, run)) {
		ask_for_payload(qp, run);
		return;
	}
	recv = receive_for(qp, run, payload);
	if (!recv) {
		qp->env->queue.explain(qp, VB_REASON_NO_RECEIVE, run);
		owe_nak(p, VB_AETH_RNR | (qp->min_rnr_timer & 31));
		return;
	}
	if (run->flags & VB_RUN_FIRST)
		p->done = 0;
	if (run->length > recv->length - p->done) {
		vb_responder_nak(qp, run, run->psn, VB_REASON_RECV_TOO_SMALL);
		return;
	}
	if (run->flags & VB_RUN_LENT) {
		if (!fetch(qp, run, recv, payload))
			return;
		p->done += run->length;
	} else if (run->length) {
		reason = qp->env->queue.recv_scatter(qp, recv, p->done, payload, run->length);
		if (reason) {
			vb_responder_nak(qp, run, run->psn, reason);
			return;
		}
		p->done += run->length;
	}
	if (run->flags & VB_RUN_LAST) {
		if (run->flags & VB_RUN_INV && !invalidate(qp, run))
			return;
		advance(p, run);
		vb_responder_recv_done(qp, run, IBV_WC_RECV, (uint32_t)p->done);
		return;
	}
	advance(p, run);
}

/*
 * The RETH is judged before a byte is written (IBA 9.7.4.1.3). A message of no bytes needs no key.
 */
static enum vb_reason judge_reth(struct vb_tqp *qp, const struct vb_run *run)
{
	if (!(qp->access & IBV_ACCESS_REMOTE_WRITE))
		return VB_REASON_QP_ACCESS;
	if (run->dma_length > VB_MESSAGE_MOST)
		return VB_REASON_RETH_LENGTH;
	if (!run->dma_length)
		return VB_REASON_NONE;
	return qp->env->memory.remote_check(qp, run->rkey, run->va, run->dma_length,
					    IBV_ACCESS_REMOTE_WRITE);
}

static enum vb_reason write_data(struct vb_tqp *qp, const struct vb_run *run, const void *payload)
{
	struct vb_responder *p = &qp->resp;
	uint64_t rest = p->length - p->done;

	if (run->flags & VB_RUN_LAST ? run->length != rest : run->length >= rest)
		return VB_REASON_RETH_LENGTH;
	if (!run->length)
		return VB_REASON_NONE;
	return qp->env->memory.remote_write(qp, p->rkey, p->va + p->done, payload, run->length);
}

static void write_run(struct vb_tqp *qp, const struct vb_run *run, const void *payload)
{
	struct vb_responder *p = &qp->resp;
	enum vb_reason reason = VB_REASON_NONE;

	if (run->flags & VB_RUN_FIRST) {
		reason = judge_reth(qp, run);
		p->rkey = run->rkey;
		p->va = run->va;
		p->length = run->dma_length;
		p->done = 0;
	}
	if (!reason && run->flags & VB_RUN_INV)
		reason = VB_REASON_OPCODE_SEQUENCE;
	/* The immediate needs a receive. Without one, no part of this run is executed yet. */
	if (run->flags & VB_RUN_IMM && !vb_responder_recv(qp) && !reason) {
		qp->env->queue.explain(qp, VB_REASON_NO_RECEIVE, run);
		owe_nak(p, VB_AETH_RNR | (qp->min_rnr_timer & 31));
		return;
	}
	if (!reason)
		reason = write_data(qp, run, payload);
	if (reason) {
		vb_responder_nak(qp, run, run->psn, reason);
		return;
	}
	p->done += run->length;
	advance(p, run);
	if (qp->tells && run->flags & VB_RUN_LAST)
		qp->env->queue.remote_done(qp, run->op, p->length, true);
	if (run->flags & VB_RUN_IMM)
		vb_responder_recv_done(qp, run, IBV_WC_RECV_RDMA_WITH_IMM, (uint32_t)p->length);
}

/*
 * Enters the queue that gives receives, keys and completions. All packets of a message must name
 * the same one (IBA A14.4.2).
 */
static enum vb_reason enter_srq(struct vb_tqp *qp, const struct vb_run *run, bool begins)
{
	if (!begins && run->srqn != qp->resp.srqn)
		return VB_REASON_OPCODE_SEQUENCE;
	qp->resp.srqn = run->srqn;
	return qp->env->queue.srq_enter(qp, run->srqn);
}

static void execute(struct vb_tqp *qp, const struct vb_run *run, const void *payload)
{
	struct vb_responder *p = &qp->resp;
	bool begins = run->flags & VB_RUN_FIRST || run->op > VB_OP_WRITE;

	/*
	 * IBA 9.7.4.1.1: a message begins when none is under way, and goes on with its own kind of
	 * packets.
	 */
	if (begins ? p->message != VB_OP_COUNT : p->message != run->op) {
		vb_responder_nak(qp, run, run->psn, VB_REASON_OPCODE_SEQUENCE);
		return;
	}
	if (qp->service == VB_SERVICE_XRC) {
		enum vb_reason reason = enter_srq(qp, run, begins);

		if (reason) {
			vb_responder_nak(qp, run, run->psn, reason);
			return;
		}
	}
	if (run->op > VB_OP_WRITE) {
		vb_responder_rd_atomic(qp, run, payload);
		return;
	}
	if (!vb_responder_lengths_fit(qp, run)) {
		vb_responder_nak(qp, run, run->psn, VB_REASON_PACKET_LENGTH);
		return;
	}
	if (run->op == VB_OP_SEND)
		send(qp, run, payload);
	else
		write_run(qp, run, payload);
}

/*
 * A SEND or WRITE that was executed before is acknowledged again; other requests are answered again
 * (IBA 9.7.5.1.3).
 */
static void repeated(struct vb_tqp *qp, const struct vb_run *run, const void *payload)
{
	struct vb_responder *p = &qp->resp;
	uint32_t old = (p->epsn - run->psn) & VB_PSN_MASK;
	struct vb_run rest;

	vb_tqp_count(qp, VB_COUNT_DUPLICATE);
	if (run->op > VB_OP_WRITE) {
		vb_responder_rd_atomic_again(qp, run);
		return;
	}
	if (old >= run->segments || (uint64_t)old * qp->mtu >= run->length) {
		/* A NAK that is still to be sent says more than an ACK. */
		if (!(p->owed & VB_OWED_ACK))
			owe_ack(p);
		return;
	}
	/* The first time the packets were cut into runs differently: the end of this run is new. */
	rest = *run;
	rest.psn = p->epsn;
	rest.segments = (uint16_t)(run->segments - old);
	rest.length -= old * qp->mtu;
	rest.flags &= (uint8_t)~VB_RUN_FIRST;
	execute(qp, &rest, (const char *)payload + (size_t)old * qp->mtu);
}

/*
 * A packet before this one is missing. On a reliable link the sender goes back to the missing
 * packet as soon as it has the NAK. A sender that goes back and again begins too late never sent
 * the expected packet.
 */
static void early(struct vb_tqp *qp, const struct vb_run *run)
{
	struct vb_responder *p = &qp->resp;

	if (p->ahead && vb_psn_diff(run->psn, p->ahead_psn) <= 0 && qp->link_reliable) {
		vb_responder_drop(qp, VB_REASON_DROP_PSN, run);
		return;
	}
	qp->env->queue.drop(qp, VB_REASON_DROP_STALE, run);
	vb_tqp_count(qp, VB_COUNT_OUT_OF_SEQUENCE);
	p->ahead = true;
	p->ahead_psn = run->psn;
	if (!p->nak_sent) /* IBA 9.7.5.2.6: one NAK until the missing packet has come */
		owe_nak(p, VB_AETH_NAK_SEQUENCE);
}

/*
 * The request was never executed. On a lossy link, where packets may be late, it counts as repeated
 * all the same (IBA 9.7.4.1.2: half of all PSNs do). On a reliable link an acknowledgement would
 * tell a program of data that never came.
 */
static void behind(struct vb_tqp *qp, const struct vb_run *run)
{
	vb_responder_drop(qp, VB_REASON_DROP_PSN, run);
}

void vb_responder_rc(struct vb_tqp *qp, const struct vb_run *run, const void *payload)
{
	struct vb_responder *p = &qp->resp;
	int32_t ahead = vb_psn_diff(run->psn, p->epsn);

	if (!ahead)
		execute(qp, run, payload);
	else if (ahead > 0)
		early(qp, run);
	else if (qp->link_reliable && (uint32_t)-ahead > p->executed)
		behind(qp, run);
	else
		repeated(qp, run, payload);
}

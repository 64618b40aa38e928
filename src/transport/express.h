/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The short way of a message of one packet that takes a receive, a SEND or an RDMA WRITE with
 * immediate, between two RC queue pairs in their ordinary state, over a link that loses nothing. Most
 * messages between two processes of a host are such ones.
 *
 * It does what requester.c, request.c and responder_rc.c do in that case, and decides nothing of its
 * own: whatever is out of the ordinary (a fault, a repetition, a window, an answer other than an
 * acknowledgement) is left to them, with nothing changed. A link that has the short way calls these
 * functions, under the owner's lock as all others (tqp.h).
 */
#ifndef VB_TRANSPORT_EXPRESS_H
#define VB_TRANSPORT_EXPRESS_H

#include "transport/operation.h"
#include "transport/psn.h"
#include "transport/tqp.h"

#define VB_EXPRESS_IN_FLIGHT (1u << 22) /* packets; as the window of request.c */

/* The flags that a packet on the short way may have, beside FIRST and LAST, which it has. */
#define VB_EXPRESS_FLAGS     (VB_RUN_IMM | VB_RUN_SOLICITED | VB_RUN_ACK_REQ | VB_RUN_ACKS)

/* All that was posted before has been sent, and nothing else than a new request is to be sent. */
static inline bool vb_express_sends(const struct vb_tqp *qp)
{
	const struct vb_requester *r = &qp->req;

	return qp->state == IBV_QPS_RTS && qp->acks_ride && r->cur == r->started &&
	       !(r->wait | r->dead | r->probing | r->direct_more) && r->psn == r->next_psn &&
	       (qp->resp.owed == 0 || vb_tqp_owes_ack_alone(qp)) &&
	       ((r->psn - r->una) & VB_PSN_MASK) < VB_EXPRESS_IN_FLIGHT;
}

/* Whether the next entry, an `op` that vb_express_sends() allows to be sent, can take the short way. */
static inline bool vb_express_takes(const struct vb_tqp *qp, const struct vb_send_wqe *w,
				    const struct vb_operation *op)
{
	return op->kind == VB_REQUEST_DATA && (op->op == VB_OP_SEND || op->flags & VB_RUN_IMM) &&
	       !(w->error | w->fence) && w->length <= qp->mtu;
}

/* The flags of the entry's packet; with VB_RUN_ACKS an acknowledgement is mounted. */
static inline uint8_t vb_express_flags(const struct vb_tqp *qp, const struct vb_send_wqe *w,
				       const struct vb_operation *op)
{
	return (uint8_t)(VB_RUN_FIRST | VB_RUN_LAST | VB_RUN_ACK_REQ | op->flags |
			 (w->solicited ? VB_RUN_SOLICITED : 0) | (qp->resp.owed ? VB_RUN_ACKS : 0));
}

/* The link has the entry's packet. */
static inline void vb_express_sent(struct vb_tqp *qp, struct vb_send_wqe *w)
{
	struct vb_requester *r = &qp->req;

	w->first_psn = r->psn;
	w->num_psn = 1;
	if (r->max_psn == r->una)
		r->progress = true;
	r->psn = r->next_psn = r->max_psn = r->ack_asked = vb_psn_add(r->psn, 1);
	r->cur = r->two_sided = ++r->started;
	qp->resp.owed = 0;
	if (!r->timer)
		vb_retry_arm(qp);
}

/*
 * Whether the next packet of the message stream, which takes a receive, can take the short way: its
 * header is compared with what is expected.
 */
static inline bool vb_express_receives(const struct vb_tqp *qp, uint32_t src_qpn, uint32_t psn,
				       uint16_t pkey)
{
	const struct vb_responder *p = &qp->resp;

	return (qp->state == IBV_QPS_RTS || (qp->state == IBV_QPS_RTR && p->established)) &&
	       qp->acks_ride && src_qpn == qp->dest_qpn && psn == p->epsn &&
	       p->message == VB_OP_COUNT && !p->recv && pkey == qp->pkey && (pkey & 0x8000);
}

/* Whether the acknowledgement is an ordinary one: of a packet in flight, without a response to wait for. */
static inline bool vb_express_acks(const struct vb_tqp *qp, uint32_t psn)
{
	const struct vb_requester *r = &qp->req;

	return (qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD) && r->rd_head == r->rd_tail &&
	       !r->trouble && vb_psn_diff(psn, r->una) >= 0 && vb_psn_diff(psn, r->max_psn) < 0;
}

static inline void vb_express_acked(struct vb_tqp *qp, uint32_t psn)
{
	vb_requester_acked(qp, vb_psn_add(psn, 1));
	qp->req.progress = true;
}

/* Whether a WRITE can take it, too, if its key grants the access. */
static inline bool vb_express_writes(const struct vb_tqp *qp)
{
	return qp->access & IBV_ACCESS_REMOTE_WRITE && !qp->tells;
}

/* The WRITE's bytes lie in the memory that its header names; vb_express_received() follows. */
static inline void vb_express_written(struct vb_tqp *qp, uint64_t va, uint32_t rkey,
				      uint32_t length)
{
	struct vb_responder *p = &qp->resp;

	p->va = va;
	p->rkey = rkey;
	p->length = length;
}

/* The packet was executed: the message's `length` bytes lie in the receive, or in memory. */
static inline void vb_express_received(struct vb_tqp *qp, uint32_t length)
{
	struct vb_responder *p = &qp->resp;

	p->done = length;
	p->ack_psn = p->epsn;
	vb_responder_executed(p, 1);
	p->ack_msn = p->msn = (p->msn + 1) & VB_PSN_MASK;
	p->owed |= VB_OWED_ACK;
	p->syndrome = VB_AETH_ACK;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The short way of small messages out of a ring (transport/express.h): from the slot to the posted
 * receive, or to the memory that a WRITE names. Whatever it declines goes the way of all runs
 * (receive.c), which also explains what is wrong.
 */
#include <string.h>

#include "base/copy_small.h"
#include "engine/count.h"
#include "engine/settle.h"
#include "engine/srq.h"
#include "host/peer.h"
#include "host/slot_send.h"
#include "local/link.h"
#include "qp/env.h"
#include "transport/express.h"

/* The queue pair of the channel that the slot is for, if it can take the message this way. */
static inline struct vb_qp *receiver(struct vb_engine *e, struct vb_channel *c,
				     const struct vb_slot_send *head)
{
	struct vb_qp *qp = c->qps;

	if (!qp || qp->t.qpn != head->dest_qpn)
		qp = vb_qp_lookup(e, head->dest_qpn);
	if (!qp || qp->channel != c || !qp->kind->plain || vb_peer_is_watched(c->peer) ||
	    !vb_express_receives(&qp->t, head->src_qpn, head->psn, head->pkey) ||
	    head->length > qp->t.mtu || (head->op == VB_OP_WRITE && !vb_express_writes(&qp->t)))
		return NULL;
	if (head->flags & VB_RUN_ACKS && !vb_express_acks(&qp->t, head->ack_psn))
		return NULL;
	return qp;
}

/* The receive that was taken gets the bytes. False: it is too small, or its memory is not usable. */
static inline bool receive_fill(struct vb_qp *qp, struct vb_recv_wqe *wqe, const void *payload,
				uint32_t length)
{
	struct vb_mem mem = vb_env_memory(qp);
	void *to;

	if (length > wqe->length)
		return false;
	if (!length)
		return true;
	if (qp->recv_srq)
		mem.pd = qp->recv_srq->pd_id;
	to = vb_mem_whole_part(&mem, vb_recv_wqe_sge(wqe), wqe->num_sge, 0, length,
			       IBV_ACCESS_LOCAL_WRITE);
	if (!to)
		return false;
	if (length <= VB_COPY_SMALL)
		vb_copy_small(to, payload, length);
	else
		memcpy(to, payload, length);
	return true;
}

/*
 * A WRITE's bytes go into the memory that its header names. A message of no bytes needs no key. False:
 * the key does not grant that in the ordinary way, or the memory is gone.
 */
static inline bool memory_fill(struct vb_qp *qp, const struct vb_slot_send *head,
			       const void *payload)
{
	if (head->length &&
	    !vb_env_remote_write_region(qp, head->rkey, head->va, payload, head->length))
		return false;
	vb_express_written(&qp->t, head->va, head->rkey, head->length);
	return true;
}

static inline void arrival_count(struct vb_engine *e, const struct vb_slot_send *head)
{
	e->paths.short_received++;
	vb_count_arrived_packet(e, head->flags & VB_RUN_ACKS ? 2 : 1, head->length);
	if (head->op == VB_OP_WRITE && e->port)
		e->port->rx_write_requests++;
}

bool vb_local_express_receive(struct vb_engine *e, struct vb_channel *c, const struct vb_slot *slot)
{
	struct vb_slot_send head;

	if (!vb_slot_send_get(slot, &head))
		return false;
	struct vb_qp *qp = receiver(e, c, &head);
	bool writes = head.op == VB_OP_WRITE;
	const void *payload = vb_slot_send_holds(&head) ? slot->data + vb_slot_send_at(&head)
							: vb_ring_bulk(&c->rx, slot, head.length);

	if (!qp || !payload)
		return false;
	struct vb_recv_wqe *wqe = vb_env_recv_take(&qp->t);

	if (!wqe)
		return false;
	if (writes ? !memory_fill(qp, &head, payload)
		   : !receive_fill(qp, wqe, payload, head.length)) {
		qp->t.resp.recv = wqe; /* the long way uses it, too */
		return false;
	}
	if (head.flags & VB_RUN_ACKS)
		vb_express_acked(&qp->t, head.ack_psn);
	vb_express_received(&qp->t, head.length);
	qp->heard = true;
	qp->silent = false;
	arrival_count(e, &head);
	struct vb_recv_done done = {
		.wqe = wqe,
		.status = IBV_WC_SUCCESS,
		.opcode = writes ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
		.byte_len = head.length,
		.wc_flags = head.flags & VB_RUN_IMM ? IBV_WC_WITH_IMM : 0,
		.imm = head.imm,
		.src_qp = head.src_qpn,
		.solicited = head.flags & VB_RUN_SOLICITED,
	};

	vb_env_recv_done_more(&qp->t, &done, NULL);
	if (qp->overrun)
		vb_qp_touched(qp);
	else
		vb_engine_make_runnable(e, qp);
	return true;
}

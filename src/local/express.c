/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The short way of small messages into a ring (transport/express.h): from the posted entry to the slot.
 * Whatever it declines goes the way of all runs (link.c), which also explains what is wrong.
 */
#include <string.h>

#include "base/copy_small.h"
#include "engine/count.h"
#include "engine/reply.h"
#include "engine/schedule.h"
#include "host/slot_send.h"
#include "local/link.h"
#include "qp/env.h"
#include "transport/express.h"

/* The bytes of the entry. NULL: they must be gathered, or may not be used. */
static inline const void *entry_payload(const struct vb_qp *qp, struct vb_send_wqe *w)
{
	if (w->is_inline)
		return vb_send_wqe_inline(w);
	struct vb_mem mem = vb_env_memory(qp);

	return vb_mem_whole_part(&mem, vb_send_wqe_sge(w), w->num_sge, 0, w->length, 0);
}

/* A payload that does not fit into the slot. Returns the slot's data, or NULL: there is no room. */
static __attribute__((noinline)) uint8_t *bulk_open(struct vb_channel *c, const void *payload,
						    uint32_t length)
{
	void *bulk = NULL;

	if (!vb_ring_reserve(&c->tx, length, &bulk) || !bulk)
		return NULL;
	memcpy(bulk, payload, length);
	return vb_ring_open_reserved(&c->tx);
}

static inline bool slot_send(struct vb_channel *c, const struct vb_slot_send *head,
			     const void *payload)
{
	bool holds = vb_slot_send_holds(head);
	uint8_t *data = holds ? vb_ring_open(&c->tx) : bulk_open(c, payload, head->length);

	if (!data)
		return false;
	vb_slot_send_put(data, head);
	if (holds) {
		vb_copy_small(data + vb_slot_send_at(head), payload, head->length);
		vb_ring_close(&c->tx);
	} else {
		vb_ring_close_reserved(&c->tx);
	}
	return true;
}

/* The next entry of the send queue goes into a slot. False: not this way, or not now. */
static inline bool entry_send(struct vb_qp *qp, struct vb_channel *c, struct vb_send_wqe *w)
{
	struct vb_tqp *t = &qp->t;
	const struct vb_operation *op = vb_operation(w->opcode);
	const void *payload = NULL;

	if (!vb_express_sends(t) || !vb_express_takes(t, w, op))
		return false;
	if (w->length && !(payload = entry_payload(qp, w)))
		return false;
	struct vb_slot_send head = {
		.dest_qpn = t->dest_qpn,
		.src_qpn = t->qpn,
		.psn = t->req.psn,
		.ack_psn = t->resp.owed ? t->resp.ack_psn : 0,
		.length = (uint32_t)w->length,
		.imm = w->imm,
		.pkey = t->pkey,
		.flags = vb_express_flags(t, w, op),
		.op = op->op,
		.rkey = w->rkey,
		.va = w->remote_addr,
	};

	if (!slot_send(c, &head, payload))
		return false;
	vb_local_count(qp->engine, c->loop, head.length);
	qp->engine->paths.short_sent++;
	vb_count_sent_packet(qp->engine, head.flags & VB_RUN_ACKS ? 2 : 1, head.length);
	vb_express_sent(t, w);
	return true;
}

/* The next entry, and perhaps some behind it. False: not this way, or not now. */
static inline bool entry_do(struct vb_qp *qp, struct vb_channel *c, bool *sent)
{
	struct vb_send_wqe *w = vb_tqp_wqe(&qp->t, qp->t.req.cur);

	switch (w->opcode) {
	case IBV_WR_RDMA_WRITE:
		return vb_local_store(qp);
	case IBV_WR_RDMA_READ:
		return vb_local_load(qp);
	default:
		if (!entry_send(qp, c, w))
			return false;
		*sent = true;
		return true;
	}
}

bool vb_local_express(struct vb_qp *qp)
{
	struct vb_channel *c = qp->channel;
	bool sent = false;

	vb_lock_assert_held(&qp->engine->lock);
	if (!c || atomic_load_explicit(&c->dead, memory_order_relaxed) || !qp->kind->plain ||
	    qp->pace.kbps || qp->awaits)
		return false;
	vb_reply_posted(qp);
	while (qp->t.req.cur != qp->t.sq_posted && entry_do(qp, c, &sent))
		continue;
	if (sent) {
		qp->psn_moved = true;
		vb_channel_wake(c);
	}
	if (qp->t.req.cur != qp->t.sq_posted || qp->overrun)
		return false;
	if (!qp->t.resp.owed)
		vb_engine_unneeded(qp->engine, qp);
	return true;
}

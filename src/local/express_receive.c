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

#define BATCH_BYTES 8192u /* the first message of a batch is not held up by more than these */

/* Consecutive messages of one queue pair, whose completions are made together. */
struct batch {
	struct vb_engine *e;
	struct vb_channel *c;
	struct vb_qp *qp;
	struct vb_slot_words words; /* the latest message, */
	struct vb_slot_send head;   /* and what it says */
	uint32_t count, packets, bytes, writes;
	bool more;     /* the batch is ended by a message that can begin another one, */
	bool declined; /* or by one that does not take the short way */
	struct vb_recv_done done[VB_RECV_DONE_MOST];
};

/* The queue pair of the channel that the message is for, if messages to it can take the short way. */
static inline struct vb_qp *receiver(struct vb_engine *e, struct vb_channel *c, uint32_t qpn)
{
	struct vb_qp *qp = c->qps;

	if (!qp || qp->t.qpn != qpn)
		qp = vb_qp_lookup(e, qpn);
	if (!qp || qp->channel != c || !qp->kind->plain || vb_peer_is_watched(c->peer))
		return NULL;
	return qp;
}

static inline bool takes(const struct vb_qp *qp, const struct vb_slot_send *head)
{
	const struct vb_tqp *t = &qp->t;

	return vb_express_receives(t, head->src_qpn, head->psn, head->pkey) &&
	       head->length <= t->mtu && (head->op != VB_OP_WRITE || vb_express_writes(t)) &&
	       (!(head->flags & VB_RUN_ACKS) || vb_express_acks(t, head->ack_psn));
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

/* The next receive takes the message. NULL: there is none, or it cannot. */
static inline struct vb_recv_wqe *message_fill(struct vb_qp *qp, const struct vb_slot_send *head,
					       const void *payload)
{
	struct vb_recv_wqe *wqe = vb_env_recv_take(&qp->t);

	if (!wqe)
		return NULL;
	if (head->op == VB_OP_WRITE ? memory_fill(qp, head, payload)
				    : receive_fill(qp, wqe, payload, head->length))
		return wqe;
	qp->t.resp.recv = wqe; /* the long way uses it, too */
	return NULL;
}

static inline void batch_add(struct batch *b, const struct vb_slot_send *head,
			     const struct vb_recv_wqe *wqe)
{
	bool writes = head->op == VB_OP_WRITE;

	b->done[b->count++] = (struct vb_recv_done){
		.wqe = wqe,
		.status = IBV_WC_SUCCESS,
		.opcode = writes ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
		.byte_len = head->length,
		.wc_flags = head->flags & VB_RUN_IMM ? IBV_WC_WITH_IMM : 0,
		.imm = head->imm,
		.src_qp = head->src_qpn,
		.solicited = head->flags & VB_RUN_SOLICITED,
	};
	b->packets += head->flags & VB_RUN_ACKS ? 2 : 1;
	b->bytes += head->length;
	b->writes += writes;
}

/* Whether the slot's message, which becomes the latest one, is of this batch. */
static inline bool batch_reads(struct batch *b, const struct vb_slot *slot)
{
	struct vb_slot_words words = vb_slot_send_words(slot), before = b->words;

	b->words = words;
	if (b->count) {
		vb_ring_ahead(&b->c->rx);
		if (vb_slot_send_follow(&before, &words, &b->head))
			return b->head.length <= b->qp->t.mtu;
	}
	if (!vb_slot_send_get(slot, &words, &b->head))
		return false;
	if (b->count)
		b->more = b->qp->t.qpn != b->head.dest_qpn;
	else
		b->qp = receiver(b->e, b->c, b->head.dest_qpn);
	return b->qp && !b->more && takes(b->qp, &b->head);
}

/* The slot's message. False: it is not of this batch. */
static inline bool slot_take(struct batch *b, const struct vb_slot *slot)
{
	struct vb_channel *c = b->c;
	const struct vb_slot_send *head = &b->head;

	if (!batch_reads(b, slot))
		return false;
	struct vb_qp *qp = b->qp;
	const void *payload = vb_slot_send_holds(head)
				      ? slot->data + vb_slot_send_at(head)
				      : vb_ring_next_bulk(&c->rx, slot, head->length);
	const struct vb_recv_wqe *wqe = payload ? message_fill(qp, head, payload) : NULL;

	if (!wqe)
		return false;
	if (head->flags & VB_RUN_ACKS)
		vb_express_acked(&qp->t, head->ack_psn);
	vb_express_received(&qp->t, head->length);
	vb_ring_pop(&c->rx);
	batch_add(b, head, wqe);
	return true;
}

/* The next slot. False: there is none, or it is not of this batch. */
static inline bool batch_take(struct batch *b)
{
	const struct vb_slot *slot = vb_ring_next(&b->c->rx);

	if (!slot)
		return false;
	if (slot_take(b, slot))
		return true;
	b->declined = !b->more;
	return false;
}

static inline void batch_end(struct batch *b)
{
	struct vb_engine *e = b->e;
	struct vb_qp *qp = b->qp;

	qp->heard = true;
	qp->silent = false;
	e->paths.short_received += b->count;
	vb_count_arrived_packet(e, b->packets, b->bytes);
	if (b->writes && e->port)
		e->port->rx_write_requests += b->writes;
	vb_env_recv_done_many(&qp->t, b->done, b->count);
	if (qp->overrun)
		vb_qp_touched(qp);
	else
		vb_engine_make_runnable(e, qp);
}

uint32_t vb_local_express_receive(struct vb_engine *e, struct vb_channel *c, uint32_t most,
				  bool *declined)
{
	struct batch b;
	uint32_t n = 0;

	b.e = e;
	b.c = c;
	b.declined = false;
	do {
		uint32_t room = most - n < VB_RECV_DONE_MOST ? most - n : VB_RECV_DONE_MOST;

		b.count = b.packets = b.bytes = b.writes = 0;
		b.more = false;
		while (b.count < room && b.bytes < BATCH_BYTES && batch_take(&b))
			continue;
		if (!b.count)
			break;
		batch_end(&b);
		n += b.count;
		b.more |= b.count == room || b.bytes >= BATCH_BYTES;
	} while (b.more && n < most);
	*declined = b.declined;
	return n;
}

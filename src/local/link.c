/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The links within a host: which channel a run takes, room in its ring, and what happens while
 * there is none.
 */
#include "local/link.h"

#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "engine/count.h"
#include "engine/engine_channel.h"
#include "engine/reply.h"
#include "process/limits.h"
#include "host/slot.h"

/*
 * The longest time that a datagram waits; delivery is not promised. It waits for contact, which is
 * made once and takes as long as the other process's thread takes to be scheduled. And it waits for
 * room, while the receiver takes nothing out of the ring. Each wait happens once: later datagrams
 * to a receiver that stands still are dropped at once, until it moves.
 */
#define DATAGRAM_CONTACT_NS 2000000000ull
#define DATAGRAM_ROOM_NS    500000000ull

/*
 * Why a request cannot be sent now, if waiting for contact alone does not help. The reason decides
 * how long the protocol tries (vb_retry_in_vain).
 */
static enum vb_reason absence(enum vb_contact why)
{
	switch (why) {
	case VB_CONTACT_ABSENT:
		return VB_REASON_PEER_NO_QP;
	case VB_CONTACT_REFUSED:
		return VB_REASON_PEER_USER;
	case VB_CONTACT_NO_MEMORY:
		return VB_REASON_NO_MEMORY;
	case VB_CONTACT_SHORT_HERE:
		return VB_REASON_DESCRIPTORS_SHORT;
	case VB_CONTACT_SHORT_THERE:
		return VB_REASON_PEER_SHORT;
	case VB_CONTACT_DEAD: /* XRC: its receiver may continue in another process */
		return VB_REASON_PEER_DEAD;
	default:
		return VB_REASON_NONE;
	}
}

static struct vb_channel *channel_find(struct vb_qp *qp, uint32_t to, bool memory,
				       enum vb_contact *why)
{
	struct vb_engine *e = qp->engine;

	qp->await_qpn = to;
	qp->await_seen = vb_channel_news(e->node, to);
	return vb_channel_find_since(e->node, e->index, to, qp->connected_at, memory, why);
}

/*
 * The channel to the peer of a connected queue pair. NULL: there is none yet, or none any more
 * (flags for vb_qp_settle() are set).
 */
static struct vb_channel *connected_channel(struct vb_qp *qp)
{
	enum vb_contact why;

	if (qp->channel) {
		if (!atomic_load_explicit(&qp->channel->dead, memory_order_relaxed))
			return qp->channel;
		return NULL; /* channel_down or peer_dead will follow */
	}
	struct vb_channel *c = channel_find(qp, qp->t.dest_qpn, vb_qp_wants_memory(qp), &why);

	if (c)
		vb_local_set_channel(qp, c);
	else if (why == VB_CONTACT_PENDING)
		qp->contact_pending = true;
	else if (why == VB_CONTACT_DEAD && !qp->t.sends_only)
		qp->peer_lost = true;
	else
		qp->unreachable = (uint16_t)absence(why);
	return c;
}

/*
 * Contact is made in RTR, so that the first message need not wait for it, and so that one-sided
 * requests work even if the peer is stopped before the first message.
 */
static bool seek(struct vb_qp *qp)
{
	enum vb_contact why = VB_CONTACT_ABSENT;
	struct vb_channel *c = qp->channel;

	if (!c)
		c = channel_find(qp, qp->t.dest_qpn, vb_qp_wants_memory(qp), &why);
	if (c)
		vb_local_set_channel(qp, c);
	qp->seeking = !c;
	if (!c && why == VB_CONTACT_PENDING)
		qp->contact_pending = true;
	/*
	 * Otherwise no process has the number. A process that takes it makes contact with this one,
	 * and a new channel makes the queue pair ask again.
	 */
	return false;
}

/* The channel to the destination of a datagram. *why_not: the result of the search. */
static struct vb_channel *datagram_channel(struct vb_qp *qp, const struct vb_send_wqe *wqe,
					   uint32_t slot, enum vb_contact *why_not)
{
	*why_not = VB_CONTACT_ABSENT;
	if (qp->datagrams->channel[slot] && qp->datagrams->qpn[slot] == wqe->remote_qpn &&
	    !atomic_load_explicit(&qp->datagrams->channel[slot]->dead, memory_order_relaxed))
		return qp->datagrams->channel[slot];
	struct vb_channel *c = NULL;

	if (wqe->peer_hint == VB_HINT_LOCAL)
		c = channel_find(qp, wqe->remote_qpn, false, why_not);
	if (c) {
		qp->datagrams->channel[slot] = c;
		qp->datagrams->qpn[slot] = wqe->remote_qpn;
	}
	return c;
}

/* The datagram is dropped: its payload is written to memory that is not read. */
static void *discard(struct vb_qp *qp, const char *why)
{
	qp->datagrams->wait_since = 0;
	qp->reserved_channel = NULL;
	qp->datagrams->discard_why = why;
	if (!qp->datagrams->discard)
		qp->datagrams->discard = malloc(VB_MTU_MOST);
	return qp->datagrams->discard;
}

/*
 * Where the payload is sent from: the slot itself, if it fits, else behind the path of a datagram.
 */
static void *ring_reserve(struct vb_qp *qp, struct vb_channel *c, const struct vb_run *run)
{
	uint32_t path = run->service == VB_SERVICE_UD ? VB_SLOT_PATH_BYTES : 0;
	bool fits = !path && vb_slot_fits_inline(run);
	void *bulk = NULL;
	struct vb_slot *slot = vb_ring_reserve(&c->tx, fits ? 0 : run->length + path, &bulk);

	if (!slot)
		return NULL;
	qp->reserved_channel = c;
	if (fits)
		return vb_slot_payload(slot, run);
	qp->reserved_bulk = bulk;
	return (char *)bulk + path;
}

/* The ring is full. True if the receiver has taken something out of it lately. */
static bool receiver_moves(struct vb_channel *c, uint64_t now)
{
	if (!c->full_since || c->full_at != c->tx.known_consumed) {
		c->full_since = now;
		c->full_at = c->tx.known_consumed;
	}
	return now - c->full_since <= DATAGRAM_ROOM_NS;
}

/*
 * Contact is being made. False: this queue pair has waited long enough for that process, now or
 * before.
 */
static bool contact_may_come(struct vb_qp *qp, uint32_t qpn, uint32_t slot, uint64_t now)
{
	if (qp->datagrams->slow[slot] == qpn)
		return false;
	if (!qp->datagrams->wait_since)
		qp->datagrams->wait_since = now;
	if (now - qp->datagrams->wait_since <= DATAGRAM_CONTACT_NS)
		return true;
	qp->datagrams->slow[slot] = qpn;
	return false;
}

static bool datagrams_make(struct vb_qp *qp)
{
	struct vb_local_datagrams *d = calloc(1, sizeof(*d));
	struct vb_engine *e = qp->engine;

	qp->datagrams = d;
	if (!d)
		return false;
	d->qp = qp;
	d->next = e->datagrams;
	if (d->next)
		d->next->prev = d;
	e->datagrams = d;
	return true;
}

static void *datagram_reserve(struct vb_qp *qp, const struct vb_send_wqe *wqe,
			      const struct vb_run *run)
{
	uint32_t slot = (wqe->remote_qpn ^ (wqe->remote_qpn >> 10)) % VB_DATAGRAM_PLACES;
	enum vb_contact why;
	struct vb_channel *c;

	if (!qp->datagrams && !datagrams_make(qp))
		return NULL;
	c = datagram_channel(qp, wqe, slot, &why);

	if (!c && why == VB_CONTACT_PENDING) {
		qp->contact_pending = contact_may_come(qp, wqe->remote_qpn, slot, vb_clock_ns());
		if (qp->contact_pending)
			return NULL;
		return discard(qp, "its process does not answer");
	}
	/* Waiting for room starts now, however long contact took. */
	qp->datagrams->wait_since = 0;
	qp->datagrams->slow[slot] = 0;
	if (!c)
		return discard(qp, "nobody there");
	void *room = ring_reserve(qp, c, run);

	if (room) {
		c->full_since = 0;
		return room;
	}
	return receiver_moves(c, vb_clock_ns()) ? NULL : discard(qp, "its process takes nothing");
}

static void *reserve(struct vb_qp *qp, const struct vb_send_wqe *wqe, const struct vb_run *run)
{
	if (qp->t.service == VB_SERVICE_UD)
		return datagram_reserve(qp, wqe, run);
	struct vb_channel *c = connected_channel(qp);

	return c ? ring_reserve(qp, c, run) : NULL;
}

/* The acknowledgement that has waited rides on the reply: nothing is different about sending it. */
static bool posted(struct vb_qp *qp, bool *more)
{
	(void)more;
	(void)vb_reply_posted(qp);
	return false;
}

static void commit(struct vb_qp *qp, const struct vb_run *run)
{
	struct vb_channel *c = qp->reserved_channel;

	if (!c) {
		vb_count_fault(qp->engine, VB_REASON_DROP_UNREACHABLE);
		vb_note(VB_REASON_DROP_UNREACHABLE, "qp 0x%x: datagram for qp 0x%x: %s", qp->t.qpn,
			run->dest_qpn,
			qp->datagrams ? qp->datagrams->discard_why : "its channel is gone");
		return;
	}
	vb_slot_encode(vb_ring_reserved(&c->tx), run);
	if (run->service == VB_SERVICE_UD)
		memcpy(qp->reserved_bulk, &run->path, sizeof(run->path));
	vb_ring_push(&c->tx);
	vb_engine_pushed(qp->engine, c);
	vb_local_count(qp->engine, c->loop, run->length);
	vb_count_sent(qp->engine, run);
}

static void release(struct vb_qp *qp)
{
	vb_local_near_free(qp);
	if (!qp->datagrams)
		return;
	if (qp->datagrams->prev)
		qp->datagrams->prev->next = qp->datagrams->next;
	else
		qp->engine->datagrams = qp->datagrams->next;
	if (qp->datagrams->next)
		qp->datagrams->next->prev = qp->datagrams->prev;
	free(qp->datagrams->discard);
	free(qp->datagrams);
	qp->datagrams = NULL;
}

/* The last link of the list: it takes destinations that no other link reaches. */
const struct vb_link vb_shm_link = {
	.name = "shm",
	.lossless = true,
	.acks_ride = true,
	.always = true,
	.seek = seek,
	.release = release,
	.reserve = reserve,
	.commit = commit,
	.posted = posted,
	.defer = vb_reply_defer,
	.express = vb_local_express,
	.direct = vb_local_direct,
	.direct_list = vb_local_direct_list,
	.direct_waits = vb_local_direct_waits,
	.lend = vb_local_lend,
	.fetch = vb_local_fetch,
	.halt = vb_local_halt,
	.drain = vb_local_drain,
	.lost = vb_local_lost,
};

/* An engine has one list of channels of both links, which the drain of shm serves. */
const struct vb_link vb_loop_link = {
	.name = "loop",
	.lossless = true,
	.acks_ride = true,
	.seek = seek,
	.reserve = reserve,
	.commit = commit,
	.posted = posted,
	.defer = vb_reply_defer,
	.express = vb_local_express,
	.direct = vb_local_direct,
	.direct_list = vb_local_direct_list,
	.direct_waits = vb_local_direct_waits,
};

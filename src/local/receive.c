/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runs that arrive through rings are decoded, matched with their queue pair, and handed to the
 * protocol. Requests for queue pairs that do not exist are answered, so that their senders know.
 */
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "device/gid.h"
#include "engine/count.h"
#include "engine/engine.h"
#include "engine/engine_channel.h"
#include "engine/hook.h"
#include "engine/reply.h"
#include "engine/settle.h"
#include "host/peer.h"
#include "host/slot.h"
#include "local/link.h"
#include "qp/qp.h"

#define BATCH      64u
#define DROPS_OWED 64u

/* VB_OP_DROP answers that found the ring full. One for each sender is enough. */
struct drops_owed {
	uint32_t count;
	struct vb_run run[DROPS_OWED];
};

static bool drop_send(struct vb_engine *e, struct vb_channel *c, const struct vb_run *answer)
{
	struct vb_slot *slot = vb_ring_reserve(&c->tx, 0, NULL);

	if (!slot)
		return false;
	vb_slot_encode(slot, answer);
	vb_ring_push(&c->tx);
	vb_engine_pushed(e, c);
	return true;
}

static void drops_retry(struct vb_engine *e, struct vb_channel *c)
{
	struct drops_owed *owed = c->user;

	while (owed->count && drop_send(e, c, &owed->run[owed->count - 1]))
		owed->count--;
}

static void drop_owe(struct vb_channel *c, const struct vb_run *answer)
{
	struct drops_owed *owed = c->user;

	if (!owed)
		owed = c->user = calloc(1, sizeof(*owed));
	if (!owed)
		return;
	for (uint32_t i = 0; i < owed->count; i++) {
		if (owed->run[i].dest_qpn == answer->dest_qpn)
			return;
	}
	if (owed->count < DROPS_OWED)
		owed->run[owed->count++] = *answer;
}

/*
 * Sends VB_OP_DROP on the channel that the request came by; the sender need not be the peer of a
 * queue pair.
 */
static void drop_answer(struct vb_engine *e, struct vb_channel *c, uint8_t service,
			uint32_t from_qpn, uint32_t to_qpn, uint32_t psn, enum vb_reason reason,
			uint32_t expected)
{
	struct vb_run answer;

	memset(&answer, 0, sizeof(answer));
	answer.service = service;
	answer.op = VB_OP_DROP;
	answer.segments = 1;
	answer.dest_qpn = to_qpn;
	answer.src_qpn = from_qpn;
	answer.psn = psn;
	answer.imm = reason;
	answer.msn = expected;
	/*
	 * Another process may be late. Within this process, the program itself must have connected
	 * the queue pair.
	 */
	if (c->loop && reason == VB_REASON_DROP_NOT_YET)
		answer.imm = VB_REASON_DROP_STATE;
	if (!drop_send(e, c, &answer))
		drop_owe(c, &answer);
}

/* Refuses a request for a queue pair that this engine does not serve. */
static void run_refuse(struct vb_engine *e, struct vb_channel *c, const struct vb_run *run)
{
	vb_count_arrived(e, run);
	vb_count_fault(e, VB_REASON_DROP_QPN);
	vb_note(VB_REASON_DROP_QPN, "run for qp 0x%x from qp 0x%x: no such queue pair",
		run->dest_qpn, run->src_qpn);
	if (!vb_service_reliable(run->service) || run->op == VB_OP_ACK || run->op == VB_OP_DROP ||
	    run->op == VB_OP_READ_RESPONSE || run->op == VB_OP_ATOMIC_ACK)
		return;
	drop_answer(e, c, run->service, run->dest_qpn, run->src_qpn, run->psn, VB_REASON_DROP_QPN,
		    0);
}

/*
 * Packets go to any process that has the port, so these may come from any source. The port is the
 * user's, or is shared with users that agree. Of these, none can have got a packet of this host by
 * the wire: such a packet would say that it comes from a process of which its sender is not one.
 */
static bool may_pass_on(const struct vb_peer *peer, const struct vb_run *run)
{
	union ibv_gid source;

	if (!vb_peer_is_stranger(peer))
		return true;
	memcpy(source.raw, run->path.sgid, sizeof(source.raw));
	return vb_peer_agrees(peer) && !vb_gid_is_local(&source);
}

/*
 * A run of a peer must name one of the peer's own queue pairs as its source. A peer that could do
 * as much as this process itself is believed: it may hand over what other processes sent. True: the
 * slot needs nothing more.
 */
static bool source_is_forged(struct vb_engine *e, struct vb_channel *c, const struct vb_slot *slot,
			     const struct vb_run *run)
{
	bool foreign = vb_slot_is_from_wire(slot) || vb_slot_is_handed(slot);

	if (foreign ? vb_slot_is_from_wire(slot) && may_pass_on(c->peer, run)
		    : vb_peer_speaks_for(c->peer, run->src_qpn))
		return false;
	vb_note(VB_REASON_DROP_FORGED, "process %u sent as qp 0x%x to qp 0x%x: not its own",
		vb_peer_pid(c->peer), run->src_qpn, run->dest_qpn);
	if (foreign)
		return true;
	vb_peer_doubt(c->peer);
	if (vb_service_reliable(run->service) && vb_op_is_request(run->op))
		drop_answer(e, c, run->service, run->dest_qpn, run->src_qpn, run->psn,
			    VB_REASON_DROP_NOT_YET, 0);
	return true;
}

/*
 * A slot that another process hands over belongs to a room above; the engine's hooks find out
 * which.
 */
static void handed(struct vb_engine *e, const struct vb_run *run, const void *payload)
{
	for (struct vb_engine_hook *h = e->hooks; h; h = h->next) {
		if (h->handed)
			h->handed(h, run, payload);
	}
}

enum slot {
	SLOT_NONSENSE,
	SLOT_TAKEN,
	SLOT_FETCHED, /* and its payload took a system call or two */
	SLOT_LATER,   /* it is to be looked at again, and nothing behind it before */
};

/* A lent payload is the address of bytes in another process, which only lend.c knows how to use. */
static enum slot lent_receive(struct vb_engine *e, struct vb_channel *c, struct vb_qp *qp,
			      struct vb_run *run, const void *payload)
{
	bool again = c->lending.later;

	c->lending.later = false;
	if (!qp || !qp->kind->plain || qp->channel != c) {
		run_refuse(e, c, run);
		return SLOT_TAKEN;
	}
	if (again) { /* the rest of it was counted and heard */
		run->flags &= (uint8_t)~VB_RUN_ACKS;
		qp->kind->receive(qp, run, payload);
		vb_qp_touched(qp);
	} else {
		vb_qp_arrived(qp, run, payload);
	}
	return c->lending.later ? SLOT_LATER : SLOT_FETCHED;
}

/* The slot is a copy. */
static enum slot slot_receive(struct vb_engine *e, struct vb_channel *c, const struct vb_slot *slot)
{
	enum slot result = SLOT_TAKEN;
	struct vb_run run;
	const uint8_t *payload;
	uint32_t bulk_bytes;

	if (!vb_slot_decode(slot, &run, &payload, &bulk_bytes))
		return SLOT_NONSENSE;
	if (bulk_bytes) {
		payload = vb_ring_bulk(&c->rx, slot->bulk, bulk_bytes);
		if (!payload)
			return SLOT_NONSENSE;
		if (bulk_bytes != run.length) {
			memcpy(&run.path, payload, sizeof(run.path));
			payload += VB_SLOT_PATH_BYTES;
		}
	}
	if (vb_peer_is_watched(c->peer) && source_is_forged(e, c, slot, &run))
		return SLOT_TAKEN;
	if (vb_slot_is_from_wire(slot)) {
		vb_links_passed(e, &run, payload);
		return SLOT_TAKEN;
	}
	if (vb_slot_is_handed(slot)) {
		handed(e, &run, payload);
		return SLOT_TAKEN;
	}
	struct vb_qp *qp = vb_qp_lookup(e, run.dest_qpn);

	if (!qp && !(run.flags & VB_RUN_LENT)) {
		if (!vb_engine_hooks_take(e, &run, payload, false))
			run_refuse(e, c, &run);
		return SLOT_TAKEN;
	}
	/*
	 * The passive side answers on the channel that it was addressed on, and makes no contact of
	 * its own. But the process that answers an XRC sender may be another one than the process
	 * that takes its requests.
	 */
	if (qp && !qp->channel && !qp->t.sends_only && qp->t.service != VB_SERVICE_UD &&
	    run.src_qpn == qp->t.dest_qpn) {
		vb_local_set_channel(qp, c);
		if (vb_qp_wants_memory(qp))
			vb_peer_want_memory(c->peer);
	}
	if (qp && qp->t.acks_ride)
		vb_reply_heard(qp, &run);
	if (run.flags & VB_RUN_LENT)
		result = lent_receive(e, c, qp, &run, payload);
	else
		vb_qp_arrived(qp, &run, payload);
	if (qp && qp->t.resp.owed & VB_OWED_DROP) {
		qp->t.resp.owed &= (uint8_t)~VB_OWED_DROP;
		drop_answer(e, c, run.service, qp->t.qpn, qp->t.resp.drop_qpn, qp->t.resp.drop_psn,
			    qp->t.resp.drop_reason, qp->t.resp.epsn);
	}
	return result;
}

static void channel_reject(struct vb_channel *c, const char *why)
{
	vb_peer_reject(c->peer, why);
	atomic_store(&c->dead, true);
	c->unread = true;
}

static uint32_t channel_serve(struct vb_engine *e, struct vb_channel *c)
{
	enum slot result = SLOT_TAKEN;
	struct vb_slot slot;
	bool declined;
	uint32_t n = 0;

	/*
	 * A program that polls gets a long message at once, not after those behind it. The turns have a
	 * bound, because a peer could show a slot and withdraw it.
	 */
	for (uint32_t turn = 0; turn < BATCH && n < BATCH && result == SLOT_TAKEN; turn++) {
		n += vb_local_express_receive(e, c, BATCH - n, &declined);
		if (n == BATCH || !vb_ring_next(&c->rx))
			break;
		if (!declined) /* it has come since */
			continue;
		if (!vb_ring_peek(&c->rx, &slot))
			break;
		if (n++)
			vb_ring_ahead(&c->rx);
		result = slot_receive(e, c, &slot);
		if (result == SLOT_NONSENSE)
			channel_reject(c, "a ring slot holds impossible values");
		else if (result != SLOT_LATER)
			vb_ring_pop(&c->rx);
	}
	if (n == BATCH)
		return n;
	vb_ring_tell(&c->rx);
	if (c->rx.corrupt || c->tx.corrupt)
		channel_reject(c, "a ring's sequence or count is impossible");
	return n;
}

static inline bool channel_look(void *engine, struct vb_channel *c)
{
	struct vb_engine *e = engine;
	bool worked;

	if (c->unread)
		return false;
	/* An offer stands beside the ring, in which nothing need have come. */
	worked = c->lending.lends && vb_local_help(e, c);
	if (!vb_ring_stirs(&c->rx) && !c->user && !c->tx.corrupt)
		return worked;
	worked |= channel_serve(e, c) > 0;
	if (c->user)
		drops_retry(e, c);
	return worked;
}

bool vb_local_drain(struct vb_engine *e, bool polled)
{
	return vb_channel_list_serve(&e->channels, !polled, channel_look, e);
}

/* No datagram goes there any more. */
static void datagrams_lose_channel(struct vb_qp *qp, const struct vb_channel *channel)
{
	for (uint32_t i = 0; i < VB_DATAGRAM_PLACES; i++) {
		if (qp->datagrams->channel[i] == channel)
			qp->datagrams->channel[i] = NULL;
	}
	if (qp->reserved_channel == channel)
		qp->reserved_channel = NULL;
}

/*
 * The queue pair loses its link. A dead peer ends its requests. When only the peer's engine was
 * closed, the peer's queue pair is gone: the requester retries and gives up.
 */
static void qp_lose_channel(struct vb_qp *qp, const struct vb_channel *channel, bool peer_dead)
{
	if (qp->reserved_channel == channel)
		qp->reserved_channel = NULL;
	vb_engine_set_channel(qp, NULL);
	qp->peer_qp = NULL;
	/* An XRC receiver may continue in another process. */
	if (peer_dead && !qp->t.sends_only)
		vb_tqp_peer_dead(&qp->t);
	else
		vb_tqp_unreachable(&qp->t, VB_REASON_PEER_NOT_READY);
	vb_qp_touched(qp);
}

void vb_local_lost(struct vb_engine *e, struct vb_channel *channel, bool peer_dead)
{
	for (struct vb_local_datagrams *d = e->datagrams; d; d = d->next)
		datagrams_lose_channel(d->qp, channel);
	while (channel->qps)
		qp_lose_channel(channel->qps, channel, peer_dead);
	free(channel->user);
}

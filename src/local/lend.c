/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Long SENDs between processes: the payload is lent instead of being copied into the ring and out of
 * it. The slot says where it lies in the sender's memory. The receiver copies it from there to the
 * posted receive, and completes the message when all of it is there. Until the acknowledgement the
 * request is not complete, so the memory is the sender's program's to leave alone.
 *
 * Both sides copy a half. Before the receiver fetches the second half, it offers the first one: it
 * says where its bytes go (struct vb_ring_offer). A sender that polls meanwhile claims it and stores
 * the bytes. A receiver that has fetched its half withdraws the offer, and takes the first half itself
 * where it was not claimed. Offer and claim are each stored by one side, fenced, and then compared
 * with the other's, as marks are (host/mark.c): the sender stores only while the offer still stands.
 * It stores under a mark and a guard, as a WRITE does (direct.c), so what holds for revocation holds
 * here: neither deregistering the receive's memory nor taking the queue pair out of service leaves
 * bytes that come later.
 *
 * A receiver whose payload is not complete lets the slot lie in the ring and looks again at the next
 * poll. No engine waits for the other process.
 *
 * What the receiver has fetched counts only if the sender's queue pair and key are then still as they
 * were when the payload was lent. A request that was flushed is complete, and its memory may hold
 * something else by then.
 */
#include <stddef.h>

#include "base/pause.h"
#include "engine/engines.h"
#include "engine/srq.h"
#include "host/arena.h"
#include "host/guard.h"
#include "host/peer.h"
#include "local/link.h"
#include "memory/memory.h"
#include "qp/env.h"
#include "qp/qp.h"
#include "transport/psn.h"

/* How often the receiver looks for the end of the sender's copy before it lets the program poll. */
#define LOOKS       128u
/* After so many offers in vain only some are made: two calls take longer than one. */
#define ALONE_MOST  4u
#define ALONE_TRIES 16u
#define PAGE        4096u
/* Looks in vain between two questions whether the sender stands still. */
#define LATES       256u

bool vb_local_lend(struct vb_qp *qp, struct vb_send_wqe *wqe, uint64_t offset, uint32_t length,
		   struct vb_lent *lent)
{
	struct vb_mem mem = vb_env_memory(qp);
	const struct ibv_sge *sge = vb_send_wqe_sge(wqe);
	struct vb_channel *c = qp->channel;
	const void *at;

	/* Who has the peer's memory is one of those to whom the peer has this process's. */
	if (!c || c->loop || wqe->is_inline || wqe->owner || qp->pace.kbps ||
	    !vb_guard_possible() || !vb_peer_reachable(c->peer))
		return false;
	at = vb_mem_whole_part(&mem, sge, wqe->num_sge, offset, length, 0);
	if (!at)
		return false;
	const struct vb_key *k = &mem.keys->key[vb_key_slot(sge->lkey)];

	*lent = (struct vb_lent){
		.addr = (uintptr_t)at,
		.key = sge->lkey,
		.key_generation = __atomic_load_n(&k->generation, __ATOMIC_RELAXED),
		.qp_generation = __atomic_load_n(&qp->pub->generation, __ATOMIC_RELAXED),
	};
	c->lending.lends = true;
	return true;
}

/* A fetch: where from, and where to. */
struct fetch {
	struct vb_qp *qp;
	struct vb_channel *c;
	const struct vb_run *run;
	uint64_t from;
	struct vb_guard guard; /* the sender's queue pair and key are as they were */
	struct iovec iov[VB_PEER_IOV];
	int count;
	/* The first bytes, which are offered; 0: none. The memory is one piece, of this key. */
	uint32_t front;
	uint32_t key;
};

/* The published words of the sender by which the payload is seen to be there still. */
static bool source_find(struct fetch *f)
{
	const struct vb_lent *lent = &f->run->lent;
	struct vb_qp *qp = f->qp;
	const struct vb_key *k;

	if (!vb_guard_possible() || !vb_peer_alive(f->c->peer) || !vb_peer_reachable(f->c->peer))
		return false;
	if (!qp->peer_qp)
		qp->peer_qp = vb_peer_qp(f->c->peer, qp->t.dest_qpn);
	k = vb_peer_key(f->c->peer, lent->key);
	if (!qp->peer_qp || !k)
		return false;
	vb_guard_init(&f->guard);
	f->guard.first = &qp->peer_qp->generation;
	f->guard.first_is = lent->qp_generation;
	f->guard.second = &k->generation;
	f->guard.second_is = lent->key_generation;
	return true;
}

/* To be called when the bytes are here: they are those that were lent. */
static bool source_stands(const struct fetch *f)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(f->guard.first, __ATOMIC_ACQUIRE) == f->guard.first_is &&
	       __atomic_load_n(f->guard.second, __ATOMIC_ACQUIRE) == f->guard.second_is;
}

/* The vectors of the receive. False: the payload is to be sent, or *reason says what is wrong. */
static bool place_find(struct fetch *f, struct vb_recv_wqe *recv, uint64_t offset,
		       enum vb_reason *reason)
{
	struct vb_mem mem = vb_env_memory(f->qp);
	struct vb_mem_cursor cursor = {&mem,   vb_recv_wqe_sge(recv), recv->num_sge,         0,
				       offset, f->run->length,        IBV_ACCESS_LOCAL_WRITE};
	struct vb_mem_vectors v = {.iov = f->iov, .max = VB_PEER_IOV};

	if (f->qp->recv_srq)
		mem.pd = f->qp->recv_srq->pd_id;
	if (!vb_mem_is_ours(&mem, cursor.sge, cursor.num_sge))
		return false;
	*reason = vb_mem_next(&cursor, &v);
	if (*reason != VB_REASON_NONE || v.bytes != f->run->length || v.paged || v.null)
		return false;
	f->count = v.count;
	f->key = recv->num_sge == 1 ? cursor.sge->lkey : 0;
	return true;
}

static int copy(struct fetch *f, uint32_t at, uint32_t length)
{
	struct iovec iov[VB_PEER_IOV] = {f->iov[0]};

	for (int i = 1; i < f->count; i++)
		iov[i] = f->iov[i];
	if (f->key) {
		iov[0].iov_base = (char *)iov[0].iov_base + at;
		iov[0].iov_len = length;
	}
	return vb_peer_read(f->c->peer, f->from + at, iov, f->count, length, &f->guard);
}

/*
 * Whether the sender is likely to take the offer up. The progress thread makes none: it drives an
 * engine only when something has arrived.
 */
static bool worth_offering(const struct vb_engine *e, struct vb_lending *l)
{
	l->fetches++;
	return !__atomic_load_n(&e->pub->asleep, __ATOMIC_RELAXED) &&
	       (l->alone < ALONE_MOST || l->fetches % ALONE_TRIES == 0);
}

/* The fields are changed only while no offer stands. */
static void offer(struct fetch *f)
{
	struct vb_lending *l = &f->c->lending;
	struct vb_ring_offer *o = &f->c->own_half->offer;
	const struct vb_keyring *keys = vb_node_keyring(f->qp->engine->node);

	f->front = f->run->length / 2 & ~(PAGE - 1);
	o->src_qpn = f->qp->t.dest_qpn;
	o->psn = f->run->psn;
	o->dest_qpn = f->qp->t.qpn;
	o->addr = (uintptr_t)f->iov[0].iov_base;
	o->length = f->front;
	o->key = f->key;
	o->key_generation =
		__atomic_load_n(&keys->key[vb_key_slot(f->key)].generation, __ATOMIC_RELAXED);
	o->qp_generation = __atomic_load_n(&f->qp->pub->generation, __ATOMIC_RELAXED);
	if (!++l->offers)
		l->offers = 1;
	__atomic_store_n(&o->number, l->offers, __ATOMIC_RELEASE);
	f->qp->engine->paths.lent_offered++;
}

static void withdraw(struct vb_channel *c)
{
	__atomic_store_n(&c->own_half->offer.number, 0, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static bool is_waited_for(const struct fetch *f)
{
	const struct vb_lending *l = &f->c->lending;

	return l->waits.number && l->waits.qpn == f->qp->t.qpn && l->waits.psn == f->run->psn &&
	       l->waits.qp_generation == __atomic_load_n(&f->qp->pub->generation, __ATOMIC_RELAXED);
}

static void wait_for(const struct fetch *f, uint32_t number)
{
	struct vb_lending *l = &f->c->lending;

	l->waits.number = number;
	l->waits.qpn = f->qp->t.qpn;
	l->waits.psn = f->run->psn;
	l->waits.qp_generation = __atomic_load_n(&f->qp->pub->generation, __ATOMIC_RELAXED);
}

enum helper { HELPER_ABSENT, HELPER_WORKS, HELPER_DONE };

/* What the sender says of the offer, which was withdrawn. */
static enum helper helper_ask(const struct vb_channel *c, uint32_t number)
{
	const struct vb_ring_help *h = &c->peer_half->help;

	for (uint32_t i = 0; i < LOOKS; i++) {
		if (__atomic_load_n(&h->done, __ATOMIC_ACQUIRE) == number)
			return HELPER_DONE;
		if (__atomic_load_n(&h->claimed, __ATOMIC_ACQUIRE) != number)
			return HELPER_ABSENT;
		vb_pause();
	}
	return HELPER_WORKS;
}

/*
 * A sender that was stopped after its claim does not store any more, once what its guard compares has
 * changed (host/guard.h): this side takes the bytes itself.
 */
static bool helper_lost(struct fetch *f)
{
	struct vb_lending *l = &f->c->lending;

	if (++l->lates % LATES || !vb_peer_stands_still(f->c->peer))
		return false;
	vb_qp_publish(f->qp);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return vb_peer_stands_still(f->c->peer);
}

/* The first bytes: the sender's work, or this side's after all. */
static enum vb_fetch front_settle(struct fetch *f, uint32_t number)
{
	struct vb_lending *l = &f->c->lending;

	enum helper helper = helper_ask(f->c, number);

	if (helper == HELPER_WORKS && helper_lost(f))
		helper = HELPER_ABSENT;
	switch (helper) {
	case HELPER_WORKS:
		wait_for(f, number);
		l->later = true;
		return VB_FETCH_LATER;
	case HELPER_DONE:
		l->alone = 0;
		f->qp->engine->paths.lent_taken++;
		return VB_FETCH_DONE;
	default:
		l->alone++;
		return copy(f, 0, f->front) ? VB_FETCH_DECLINED : VB_FETCH_DONE;
	}
}

static enum vb_fetch fetch(struct fetch *f)
{
	struct vb_lending *l = &f->c->lending;

	if (is_waited_for(f)) {
		uint32_t number = l->waits.number;

		f->front = f->run->length / 2 & ~(PAGE - 1);
		l->waits.number = 0;
		return front_settle(f, number);
	}
	l->waits.number = 0;
	if (f->key && f->count == 1 && worth_offering(f->qp->engine, l))
		offer(f);
	int err = copy(f, f->front, f->run->length - f->front);

	if (!f->front)
		return err ? VB_FETCH_DECLINED : VB_FETCH_DONE;
	withdraw(f->c);
	enum vb_fetch result = front_settle(f, l->offers);

	return err && result == VB_FETCH_DONE ? VB_FETCH_DECLINED : result;
}

enum vb_fetch vb_local_fetch(struct vb_qp *qp, struct vb_recv_wqe *recv, uint64_t offset,
			     const struct vb_run *run, uint64_t from, enum vb_reason *reason)
{
	struct fetch f = {.qp = qp, .c = qp->channel, .run = run, .from = from};
	enum vb_fetch result;

	*reason = VB_REASON_NONE;
	if (!f.c || f.c->loop || !source_find(&f))
		return VB_FETCH_DECLINED;
	if (!place_find(&f, recv, offset, reason))
		return *reason ? VB_FETCH_FAILED : VB_FETCH_DECLINED;
	result = fetch(&f);
	return result == VB_FETCH_DONE && !source_stands(&f) ? VB_FETCH_DECLINED : result;
}

void vb_local_halt(struct vb_qp *qp)
{
	struct vb_channel *c = qp->channel;

	if (!c || !c->lending.waits.number || c->lending.waits.qpn != qp->t.qpn)
		return;
	c->lending.waits.number = 0;
	/* Its entry was published anew: a sender that has not begun to store does not begin. */
	vb_mark_await(qp->engine->node, qp->t.qpn, 0);
}

/* Copies the offer, which may change at any time; `number` is seen to stand after the claim. */
static struct vb_ring_offer offer_read(const struct vb_ring_offer *o)
{
	return (struct vb_ring_offer){
		.src_qpn = __atomic_load_n(&o->src_qpn, __ATOMIC_RELAXED),
		.psn = __atomic_load_n(&o->psn, __ATOMIC_RELAXED) & VB_PSN_MASK,
		.dest_qpn = __atomic_load_n(&o->dest_qpn, __ATOMIC_RELAXED),
		.addr = __atomic_load_n(&o->addr, __ATOMIC_RELAXED),
		.length = __atomic_load_n(&o->length, __ATOMIC_RELAXED),
		.key = __atomic_load_n(&o->key, __ATOMIC_RELAXED),
		.key_generation = __atomic_load_n(&o->key_generation, __ATOMIC_RELAXED),
		.qp_generation = __atomic_load_n(&o->qp_generation, __ATOMIC_RELAXED),
	};
}

/* The bytes of the request in flight that the offer is for. NULL: it is for none. */
static void *offered_bytes(struct vb_engine *e, struct vb_channel *c, const struct vb_ring_offer *o,
			   struct vb_qp **sender)
{
	struct vb_qp *qp = vb_qp_lookup(e, o->src_qpn);
	struct vb_send_wqe *w;
	uint64_t offset;

	if (!qp || qp->channel != c || qp->t.dest_qpn != o->dest_qpn || !qp->t.lends ||
	    !o->length || (qp->t.state != IBV_QPS_RTS && qp->t.state != IBV_QPS_SQD))
		return NULL;
	w = vb_requester_lent(&qp->t, o->psn, o->length, &offset);
	if (!w || w->is_inline)
		return NULL;
	struct vb_mem mem = vb_env_memory(qp);

	*sender = qp;
	return vb_mem_whole_part(&mem, vb_send_wqe_sge(w), w->num_sge, offset, o->length, 0);
}

/* Under the claim and the mark. */
static bool offered_store(struct vb_channel *c, struct vb_qp *qp, const struct vb_ring_offer *o,
			  uint32_t number, void *bytes)
{
	const struct vb_key *k = vb_peer_key(c->peer, o->key);
	const struct vb_page_qp *entry = vb_peer_qp(c->peer, qp->t.dest_qpn);
	struct iovec iov = {bytes, o->length};
	struct vb_guard guard;

	if (!k || !entry ||
	    __atomic_load_n(&c->peer_half->offer.number, __ATOMIC_ACQUIRE) != number)
		return false;
	vb_guard_init(&guard);
	guard.first = &entry->generation;
	guard.first_is = o->qp_generation;
	guard.second = &k->generation;
	guard.second_is = o->key_generation;
	return !vb_peer_write(c->peer, o->addr, &iov, 1, o->length, false, &guard);
}

bool vb_local_help(struct vb_engine *e, struct vb_channel *c)
{
	const struct vb_ring_offer *offered = &c->peer_half->offer;
	struct vb_ring_help *help = &c->own_half->help;
	uint32_t number = __atomic_load_n(&offered->number, __ATOMIC_ACQUIRE);
	struct vb_ring_offer o;
	struct vb_qp *qp;
	void *bytes;

	if (!number || number == c->lending.helped)
		return false;
	c->lending.helped = number;
	o = offer_read(offered);
	if (!vb_guard_possible() || !vb_peer_reachable(c->peer))
		return false;
	bytes = offered_bytes(e, c, &o, &qp);
	if (!bytes)
		return false;
	if (!vb_mark_is_listed(e->node, e->index))
		vb_engines_watch(e); /* so that it is left out again */
	__atomic_store_n(&help->claimed, number, __ATOMIC_RELEASE);
	vb_mark_set(e->node, e->index, c->peer, qp->t.dest_qpn, o.key); /* fences */
	bool stored = offered_store(c, qp, &o, number, bytes);

	vb_mark_clear(e->node, e->index);
	__atomic_store_n(stored ? &help->done : &help->claimed, stored ? number : 0,
			 __ATOMIC_RELEASE);
	return stored;
}

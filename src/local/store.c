/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The short way of small WRITEs into memory of a peer: a judgement of the target (target.c) is kept, and
 * serves until something that was judged changes. Memory that is mapped here is stored to; a single word
 * into other memory is one write(2) to it.
 *
 * What was judged is guarded by the generations of the peer's queue pair and key, which the guard
 * compares at each store (host/guard.h). While they stand, judging again would give the same. A list
 * of WRITEs with one key is stored under one mark. Whatever is not stored here goes the way of a single
 * request (direct.c), which also explains what is wrong.
 *
 * Words are stored in ascending order, so the last aligned word of each WRITE is stored last.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/count.h"
#include "engine/engines.h"
#include "host/arena.h"
#include "host/peer.h"
#include "local/link.h"
#include "local/target.h"
#include "memory/memory.h"
#include "qp/env.h"
#include "qp/qp.h"
#include "transport/express.h"

/* Longer ones are better copied by a string instruction. */
#define STORE_MOST 256u

/*
 * A judgement: the range [start, start + length) of this key lies at `addr` in the peer's address space
 * and, if it is mapped here, at `at` in this process.
 */
struct vb_local_near {
	uint32_t rkey; /* 0: none */
	struct vb_guard guard;
	uint64_t start, length;
	uint64_t addr;
	char *at; /* NULL: not mapped */
};

static inline bool near_covers(const struct vb_local_near *near, const struct vb_send_wqe *w)
{
	return near->rkey == w->rkey && w->remote_addr - near->start < near->length &&
	       w->length <= near->length - (w->remote_addr - near->start);
}

/*
 * How much of the region lies in one window of the arena, around the request's address; all of it, if the
 * request's memory is not in the arena. Words of the range are words of the memory, too.
 */
static bool near_place(struct vb_local_near *near, struct vb_target *target,
		       const struct vb_send_wqe *w)
{
	uint64_t before = w->remote_addr - target->key.start;
	uint64_t behind = target->key.length - before;
	size_t room = 0;
	char *at;

	if ((target->addr - w->remote_addr) & 7)
		return false;
	near->addr = target->addr - before;
	near->start = target->key.start;
	near->length = target->key.length;
	near->at = NULL;
	if (!vb_arena_holds(target->peer, target->addr, w->length))
		return vb_peer_reachable(target->peer);
	at = vb_arena_window(target->peer, target->addr, w->length, &room);
	if (!at || room < w->length)
		return false;
	if (before > VB_ARENA_WINDOW - room)
		before = VB_ARENA_WINDOW - room;
	if (behind > room)
		behind = room;
	near->start = w->remote_addr - before;
	near->length = before + behind;
	near->addr = target->addr - before;
	near->at = at - before;
	/* The arena may end within the window. */
	return vb_arena_holds(target->peer, near->addr, near->length);
}

/* Judges, and keeps the judgement. True: the mark is set. */
static bool near_judge(struct vb_qp *qp, struct vb_local_near *near, const struct vb_send_wqe *w)
{
	uint32_t queue = vb_target_queue(IBV_WR_RDMA_WRITE);
	struct vb_target target;

	near->rkey = 0;
	if (!vb_target_contact(qp, &target) || !vb_target_qp_allows(qp, target.qp, queue))
		return false;
	if (vb_target_enter(qp, &target, w->rkey, queue) && vb_target_key(&target, w->rkey) &&
	    target.key.kind == VB_KEY_REGION &&
	    vb_target_range(&target, w->remote_addr, w->length, IBV_ACCESS_REMOTE_WRITE) &&
	    near_place(near, &target, w)) {
		near->rkey = w->rkey;
		vb_guard_copy(&near->guard, &target.guard);
		return true;
	}
	vb_target_leave(qp);
	return false;
}

/* The first request, or one that the judgement does not cover. */
static bool store_judge(struct vb_qp *qp, const struct vb_send_wqe *w)
{
	struct vb_peer *peer = qp->channel->peer;

	if (vb_peer_is_self(peer))
		return false;
	if (!qp->near)
		qp->near = calloc(1, sizeof(*qp->near));
	return qp->near && near_judge(qp, qp->near, w);
}

/* Sets the mark for the entry's target. False: it is not stored here. */
static inline bool store_begin(struct vb_qp *qp, const struct vb_send_wqe *w)
{
	struct vb_peer *peer = qp->channel->peer;
	struct vb_engine *e = qp->engine;

	if (!qp->near || !near_covers(qp->near, w))
		return store_judge(qp, w);
	if (!vb_peer_alive(peer))
		return false;
	if (!vb_mark_is_listed(e->node, e->index))
		vb_engines_watch(e); /* so that it is left out again */
	vb_mark_set(e->node, e->index, peer, qp->t.dest_qpn, w->rkey);
	return true;
}

static inline bool is_short(const struct vb_send_wqe *w)
{
	return w->opcode == IBV_WR_RDMA_WRITE && !w->error && !w->fence && !w->owner &&
	       w->length - 8 <= STORE_MOST - 8 && !((w->length | w->remote_addr) & 7);
}

/*
 * Of memory that is not mapped only a single word is stored here, and of a list nothing: that is one system
 * call as well (direct_list.c).
 */
static inline bool suits(const struct vb_tqp *t, const struct vb_local_near *near,
			 const struct vb_send_wqe *w)
{
	return near->at || (w->length == sizeof(uint64_t) && t->sq_posted - t->req.cur == 1);
}

static inline const void *source(struct vb_qp *qp, struct vb_send_wqe *w)
{
	if (w->is_inline)
		return vb_send_wqe_inline(w);
	struct vb_mem mem = vb_env_memory(qp);

	return vb_mem_whole_part(&mem, vb_send_wqe_sge(w), w->num_sge, 0, w->length, 0);
}

static inline int store(struct vb_peer *peer, const struct vb_local_near *near,
			const struct vb_send_wqe *w, const void *from)
{
	uint64_t offset = w->remote_addr - near->start;
	uint64_t word;
	char *to;

	if (!near->at)
		return vb_peer_write_word(peer, near->addr + offset, from, &near->guard);
	to = near->at + offset;
	if (w->length != sizeof(word))
		return vb_guard_move(&near->guard, to, from, w->length);
	memcpy(&word, from, sizeof(word));
	return vb_guard_store(&near->guard, (uint64_t *)(void *)to, word);
}

static inline void stored(struct vb_qp *qp, struct vb_send_wqe *w)
{
	struct vb_engine *e = qp->engine;

	e->paths.direct_requests++;
	e->paths.direct_bytes += w->length;
	if (e->port)
		vb_count_direct(e, VB_OP_WRITE, qp->t.mtu, w->length);
	qp->t.req.two_sided = qp->t.req.head; /* kept close to it */
	vb_requester_done(&qp->t, w);
}

bool vb_local_store(struct vb_qp *qp)
{
	struct vb_tqp *t = &qp->t;
	struct vb_send_wqe *w = vb_tqp_wqe(t, t->req.cur);
	uint32_t first = t->req.cur;
	const void *from;

	/* As direct access: nothing is in flight before it. */
	if (!is_short(w) || t->req.cur != t->req.head || !vb_express_sends(t) ||
	    !store_begin(qp, w))
		return false;
	/* What was written before is seen before. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	do {
		from = suits(t, qp->near, w) ? source(qp, w) : NULL;
		if (!from || store(qp->channel->peer, qp->near, w, from))
			break;
		stored(qp, w);
		w = vb_tqp_wqe(t, t->req.cur);
	} while (t->req.cur != t->sq_posted && !qp->overrun && is_short(w) &&
		 near_covers(qp->near, w));
	vb_target_leave(qp);
	return t->req.cur != first;
}

void vb_local_near_forget(struct vb_qp *qp)
{
	if (qp->near)
		qp->near->rkey = 0;
}

void vb_local_near_free(struct vb_qp *qp)
{
	free(qp->near);
	qp->near = NULL;
}

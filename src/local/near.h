/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The short ways of small WRITEs (store.c) and READs (load.c) of a peer's memory: a judgement of the target
 * (target.h) is kept, and serves until something that was judged changes.
 *
 * What was judged is guarded by the generations of the peer's queue pair and key, which the guard compares at each
 * access (host/guard.h). While they stand, judging again would give the same. Whatever does not take a short way goes
 * that of a single request (direct.c), which also explains what is wrong.
 */
#ifndef VB_LOCAL_NEAR_H
#define VB_LOCAL_NEAR_H

#include "engine/count.h"
#include "engine/engines.h"
#include "host/peer.h"
#include "local/link.h"
#include "local/target.h"
#include "transport/express.h"

/* Bytes. Longer ones take so long that judging them does not count. */
#define VB_NEAR_MOST  65536u
/*
 * Up to so many are moved by words, one after another. Each longer one has a mark of its own: who
 * revokes waits for it.
 */
#define VB_NEAR_WORDS 256u

/*
 * A judgement: the range [start, start + length) of this key lies at `addr` in the peer's address space and, if it is
 * mapped here, at `at` in this process.
 */
struct vb_local_near {
	uint32_t rkey;   /* 0: none */
	uint32_t access; /* what may be done there */
	struct vb_guard guard;
	uint64_t start, length;
	uint64_t addr;
	char *at; /* NULL: not mapped */
};

/* The judgement of the queue pair holds for the entry, which needs `access`. */
static inline bool vb_near_covers(const struct vb_local_near *near, const struct vb_send_wqe *w,
				  uint32_t access)
{
	return near->rkey == w->rkey && near->access & access &&
	       w->remote_addr - near->start < near->length &&
	       w->length <= near->length - (w->remote_addr - near->start);
}

/* As direct access: nothing is in flight before the next entry, and nothing else is to be done first. */
static inline bool vb_near_is_next(const struct vb_tqp *t)
{
	return t->req.cur == t->req.head && vb_express_sends(t);
}

/* The entry goes under the mark that is set. */
static inline bool vb_near_follows(const struct vb_qp *qp, const struct vb_send_wqe *w,
				   uint32_t access)
{
	return qp->t.req.cur != qp->t.sq_posted && !qp->overrun && w->length <= VB_NEAR_WORDS &&
	       vb_near_covers(qp->near, w, access);
}

/*
 * Of memory that is not mapped, a list is left to direct_list.c, for which it is one system call.
 */
static inline bool vb_near_is_alone(const struct vb_tqp *t)
{
	return t->sq_posted - t->req.cur == 1;
}

/* Judges the target of the entry, and keeps that. True: its mark is set. */
bool vb_near_judge(struct vb_qp *qp, const struct vb_send_wqe *w, uint32_t access);

/*
 * Sets the mark for the entry's target. False: it takes no short way. True: to be followed by vb_target_leave().
 */
static inline bool vb_near_enter(struct vb_qp *qp, const struct vb_send_wqe *w, uint32_t access)
{
	struct vb_peer *peer = qp->channel->peer;
	struct vb_engine *e = qp->engine;

	if (!qp->near || !vb_near_covers(qp->near, w, access))
		return vb_near_judge(qp, w, access);
	if (!vb_peer_alive(peer))
		return false;
	if (!vb_mark_is_listed(e->node, e->index))
		vb_engines_watch(e); /* so that it is left out again */
	vb_mark_set(e->node, e->index, peer, qp->t.dest_qpn, w->rkey);
	return true;
}

/* The entry was executed, under the mark. */
static inline void vb_near_done(struct vb_qp *qp, struct vb_send_wqe *w, uint8_t op)
{
	struct vb_engine *e = qp->engine;

	e->paths.direct_requests++;
	e->paths.direct_bytes += w->length;
	if (e->port)
		vb_count_direct(e, op, qp->t.mtu, w->length);
	qp->t.req.two_sided = qp->t.req.head; /* kept close to it */
	vb_requester_done(&qp->t, w);
}

#endif

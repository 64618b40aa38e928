/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The short way of small READs of a peer's memory (near.h): loads from memory that is mapped here, where a
 * list of READs with one key is done under one mark; from other memory one by one system call.
 */
#include "local/near.h"
#include "memory/memory.h"
#include "qp/env.h"

/* A READ without a resource for it is refused elsewhere. */
static inline bool is_short(const struct vb_tqp *t, const struct vb_send_wqe *w)
{
	return w->opcode == IBV_WR_RDMA_READ && !w->error && !w->fence && !w->owner &&
	       w->length - 1 < VB_NEAR_MOST && t->max_rd_atomic;
}

/* Where the bytes go, if that is one piece. */
static inline void *place(struct vb_qp *qp, struct vb_send_wqe *w)
{
	struct vb_mem mem = vb_env_memory(qp);

	return vb_mem_whole_part(&mem, vb_send_wqe_sge(w), w->num_sge, 0, w->length,
				 IBV_ACCESS_LOCAL_WRITE);
}

static inline int load(struct vb_peer *peer, const struct vb_local_near *near,
		       const struct vb_send_wqe *w, void *to)
{
	uint64_t offset = w->remote_addr - near->start;
	struct iovec iov = {to, w->length};

	if (near->at)
		return vb_guard_move(&near->guard, to, near->at + offset, w->length);
	return w->length <= VB_NEAR_WORDS
		       ? vb_peer_read_piece(peer, near->addr + offset, to, w->length, &near->guard)
		       : vb_peer_read(peer, near->addr + offset, &iov, 1, w->length, &near->guard);
}

bool vb_local_load(struct vb_qp *qp)
{
	struct vb_tqp *t = &qp->t;
	struct vb_send_wqe *w = vb_tqp_wqe(t, t->req.cur);
	uint32_t first = t->req.cur;
	void *to;

	/* The mark fences: what was written before is there before this is read. */
	if (!is_short(t, w) || !vb_near_is_next(t) || !vb_near_enter(qp, w, IBV_ACCESS_REMOTE_READ))
		return false;
	do {
		to = qp->near->at || vb_near_is_alone(t) ? place(qp, w) : NULL;
		if (!to)
			break;
		if (load(qp->channel->peer, qp->near, w, to)) {
			vb_local_near_forget(qp);
			break;
		}
		/* What is read later is not older. */
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		vb_near_done(qp, w, VB_OP_READ_REQUEST);
		w = vb_tqp_wqe(t, t->req.cur);
	} while (vb_near_follows(qp, w, IBV_ACCESS_REMOTE_READ) && is_short(t, w));
	vb_target_leave(qp);
	return t->req.cur != first;
}

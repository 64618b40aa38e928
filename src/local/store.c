/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The short way of small WRITEs into memory of a peer (near.h). Memory that is mapped here is stored to, a
 * list of WRITEs with one key under one mark. Into other memory goes one by one system call.
 *
 * The last aligned word of each WRITE is stored last.
 */
#include <errno.h>
#include <string.h>

#include "local/near.h"
#include "memory/memory.h"
#include "qp/env.h"

static inline bool is_short(const struct vb_send_wqe *w)
{
	return w->opcode == IBV_WR_RDMA_WRITE && !w->error && !w->fence && !w->owner &&
	       w->length - 8 <= VB_NEAR_MOST - 8 && !((w->length | w->remote_addr) & 7);
}

static inline const void *source(struct vb_qp *qp, struct vb_send_wqe *w)
{
	if (w->is_inline)
		return vb_send_wqe_inline(w);
	struct vb_mem mem = vb_env_memory(qp);

	return vb_mem_whole_part(&mem, vb_send_wqe_sge(w), w->num_sge, 0, w->length, 0);
}

/* A string instruction stores in any order; the last word follows it. */
static int store_string(const struct vb_local_near *near, char *to, const char *from, size_t length)
{
	size_t head = length - sizeof(uint64_t);
	uint64_t last;

	if (vb_guard_move(&near->guard, to, from, head))
		return -ESTALE;
	memcpy(&last, from + head, sizeof(last));
	return vb_guard_store(&near->guard, (uint64_t *)(void *)(to + head), last);
}

static int write_out(struct vb_peer *peer, const struct vb_local_near *near, uint64_t addr,
		     const void *from, size_t length)
{
	struct iovec iov = {(void *)(uintptr_t)from, length};

	return length == sizeof(uint64_t)
		       ? vb_peer_write_word(peer, addr, from, &near->guard)
		       : vb_peer_write(peer, addr, &iov, 1, length, true, &near->guard);
}

static inline int store(struct vb_peer *peer, const struct vb_local_near *near,
			const struct vb_send_wqe *w, const void *from)
{
	uint64_t offset = w->remote_addr - near->start;
	uint64_t word;
	char *to;

	if (!near->at)
		return write_out(peer, near, near->addr + offset, from, w->length);
	to = near->at + offset;
	if (w->length > VB_NEAR_WORDS)
		return store_string(near, to, from, w->length);
	if (w->length != sizeof(word))
		return vb_guard_move(&near->guard, to, from, w->length);
	memcpy(&word, from, sizeof(word));
	return vb_guard_store(&near->guard, (uint64_t *)(void *)to, word);
}

bool vb_local_store(struct vb_qp *qp)
{
	struct vb_tqp *t = &qp->t;
	struct vb_send_wqe *w = vb_tqp_wqe(t, t->req.cur);
	uint32_t first = t->req.cur;
	const void *from;

	if (!is_short(w) || !vb_near_is_next(t) || !vb_near_enter(qp, w, IBV_ACCESS_REMOTE_WRITE))
		return false;
	/* What was written before is seen before. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	do {
		from = qp->near->at || vb_near_is_alone(t) ? source(qp, w) : NULL;
		if (!from)
			break;
		if (store(qp->channel->peer, qp->near, w, from)) {
			vb_local_near_forget(qp);
			break;
		}
		vb_near_done(qp, w, VB_OP_WRITE);
		w = vb_tqp_wqe(t, t->req.cur);
	} while (vb_near_follows(qp, w, IBV_ACCESS_REMOTE_WRITE) && is_short(w));
	vb_target_leave(qp);
	return t->req.cur != first;
}

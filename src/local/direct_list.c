/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A list of short WRITEs or READs to memory of another process, executed by one system call. What
 * holds for one request (direct.c) holds for each: the same checks under the same mark, in order.
 * The list ends before the first entry that needs more than that; the entry then takes the way of a
 * single request, which also judges what is wrong with it.
 */
#include "host/arena.h"
#include "host/peer.h"
#include "local/link.h"
#include "local/target.h"
#include "memory/memory.h"
#include "qp/env.h"
#include "qp/qp.h"
#include "transport/requester.h"

/* A longer request gains nothing from company. */
#define LIST_LENGTH 4096u

static bool is_short(const struct vb_send_wqe *w)
{
	return !w->owner && w->length > 0 && w->length <= LIST_LENGTH;
}

/* The local memory of an entry, if it is one piece that cannot be gone. */
static void *local_piece(struct vb_qp *qp, struct vb_send_wqe *w)
{
	struct vb_mem mem = vb_env_memory(qp);
	uint32_t need = w->opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_LOCAL_WRITE : 0;
	struct vb_mem_cursor c = {&mem, vb_send_wqe_sge(w), w->num_sge, 0, 0, w->length, need};
	struct iovec iov;
	struct vb_mem_vectors v = {.iov = &iov, .max = 1};

	if (w->is_inline)
		return vb_send_wqe_inline(w);
	if (!vb_target_one_mark(qp, w) || vb_mem_next(&c, &v) != VB_REASON_NONE ||
	    v.bytes != w->length || v.paged || v.null)
		return NULL;
	return iov.iov_base;
}

static bool move_fill(struct vb_qp *qp, struct vb_target *target, struct vb_send_wqe *w,
		      struct vb_move *move)
{
	if (!is_short(w) || w->rkey != target->key.key ||
	    !vb_target_range(target, w->remote_addr, w->length, vb_target_access(w->opcode)) ||
	    vb_arena_holds(target->peer, target->addr, w->length))
		return false;
	move->local = local_piece(qp, w);
	move->addr = target->addr;
	move->length = (uint32_t)w->length;
	return move->local;
}

/* Under the mark. The entries that are done count. */
static uint32_t list_move(struct vb_qp *qp, struct vb_target *target, struct vb_send_wqe *w)
{
	struct vb_move moves[VB_PEER_MOVES];
	bool write = w->opcode == IBV_WR_RDMA_WRITE;
	uint32_t count = 0, done;

	while (w && count < VB_PEER_MOVES && move_fill(qp, target, w, &moves[count]))
		w = vb_requester_alike(&qp->t, ++count);
	if (count < 2)
		return 0;
	done = vb_peer_move_list(target->peer, moves, count, write, &target->guard);
	for (uint32_t i = 0; i < done; i++)
		vb_direct_count(qp, vb_requester_alike(&qp->t, i));
	return done;
}

uint32_t vb_local_direct_list(struct vb_qp *qp, struct vb_send_wqe *first)
{
	struct vb_target target;
	uint32_t queue = vb_target_queue(first->opcode);
	uint32_t done = 0;

	if (first->opcode != IBV_WR_RDMA_WRITE && first->opcode != IBV_WR_RDMA_READ)
		return 0;
	if (!is_short(first) || !vb_target_contact(qp, &target) ||
	    !vb_peer_moves_lists(target.peer) || !vb_peer_reachable(target.peer) ||
	    !vb_target_qp_allows(qp, target.qp, queue))
		return 0;
	if (vb_target_enter(qp, &target, first->rkey, queue) && vb_target_key(&target, first->rkey))
		done = list_move(qp, &target, first);
	vb_target_leave(qp);
	return done;
}

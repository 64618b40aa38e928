/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Judges a target for the short ways, and keeps the judgement (near.h). */
#include "local/near.h"

#include <stdlib.h>

#include "host/arena.h"

/*
 * How much of the region lies in one window of the arena, around the request's address; all of it, if the
 * request's memory is not in the arena. Words of the range are words of the memory, too.
 */
static bool place(struct vb_local_near *near, struct vb_target *target, const struct vb_send_wqe *w)
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

/* Whether the queue pair and the key, as they were copied, grant what the operation needs. */
static bool grants(const struct vb_qp *qp, struct vb_target *target, const struct vb_send_wqe *w,
		   uint8_t opcode)
{
	return vb_target_qp_allows(qp, target->qp, vb_target_queue(opcode)) &&
	       vb_target_range(target, w->remote_addr, w->length, vb_target_access(opcode));
}

/* Both operations are judged, since a program may use them in turn. True: the mark is set. */
static bool judge(struct vb_qp *qp, struct vb_local_near *near, const struct vb_send_wqe *w,
		  uint32_t access)
{
	static const uint8_t opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
	struct vb_target target;

	near->rkey = near->access = 0;
	if (!vb_target_contact(qp, &target) ||
	    !vb_target_qp_allows(qp, target.qp, vb_target_queue(w->opcode)))
		return false;
	if (vb_target_enter(qp, &target, w->rkey, vb_target_queue(w->opcode)) &&
	    vb_target_key(&target, w->rkey) && target.key.kind == VB_KEY_REGION) {
		for (size_t i = 0; i < sizeof(opcodes); i++) {
			if (grants(qp, &target, w, opcodes[i]))
				near->access |= vb_target_access(opcodes[i]);
		}
	}
	/* Either grant has found the address. */
	if (near->access & access && place(near, &target, w)) {
		near->rkey = w->rkey;
		vb_guard_copy(&near->guard, &target.guard);
		return true;
	}
	vb_target_leave(qp);
	return false;
}

bool vb_near_judge(struct vb_qp *qp, const struct vb_send_wqe *w, uint32_t access)
{
	if (vb_peer_is_self(qp->channel->peer))
		return false;
	if (!qp->near)
		qp->near = calloc(1, sizeof(*qp->near));
	return qp->near && judge(qp, qp->near, w, access);
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

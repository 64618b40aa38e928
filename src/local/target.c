/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Judges the target of a one-sided request by what the peer publishes, and marks it. */
#include "local/target.h"

#include <string.h>

#include "engine/engines.h"
#include "host/channel.h"
#include "host/peer.h"
#include "local/link.h"
#include "memory/memory.h"
#include "qp/env.h"
#include "qp/qp.h"

uint32_t vb_target_access(uint8_t opcode)
{
	switch (opcode) {
	case IBV_WR_FLUSH:
		return IBV_ACCESS_FLUSH_GLOBAL;
	case IBV_WR_ATOMIC_WRITE:
	case IBV_WR_RDMA_WRITE:
		return IBV_ACCESS_REMOTE_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_ACCESS_REMOTE_READ;
	default:
		return IBV_ACCESS_REMOTE_ATOMIC;
	}
}

/* All operations but WRITE need a queue pair that serves requests with an answer. */
uint32_t vb_target_queue(uint8_t opcode)
{
	return vb_target_access(opcode) | (opcode == IBV_WR_RDMA_WRITE ? 0 : VB_PAGE_ANSWERS);
}

/*
 * Direct access takes no PSN. But an initiator whose PSN would not be accepted through the ring is
 * declined here as well. UC begins at any PSN.
 */
static inline bool psn_fits(const struct vb_qp *qp, const struct vb_page_qp *entry)
{
	return __atomic_load_n(&entry->first_psn, __ATOMIC_RELAXED) == qp->t.req.first_psn ||
	       qp->t.service == VB_SERVICE_UC;
}

/* What the peer publishes is copied by single loads. */
bool vb_target_qp_allows(const struct vb_qp *qp, const struct vb_page_qp *entry, uint32_t need)
{
	if (!__atomic_load_n(&entry->direct, __ATOMIC_ACQUIRE))
		return false;
	return __atomic_load_n(&entry->qpn, __ATOMIC_RELAXED) == qp->t.dest_qpn &&
	       __atomic_load_n(&entry->dest_qpn, __ATOMIC_RELAXED) == qp->t.qpn &&
	       __atomic_load_n(&entry->service, __ATOMIC_RELAXED) == qp->t.service &&
	       psn_fits(qp, entry) &&
	       (__atomic_load_n(&entry->access, __ATOMIC_RELAXED) & need) == need;
}

bool vb_target_qp_opens(const struct vb_qp *qp, const struct vb_page_qp *entry)
{
	return __atomic_load_n(&entry->qpn, __ATOMIC_RELAXED) == qp->t.dest_qpn &&
	       __atomic_load_n(&entry->access, __ATOMIC_ACQUIRE) & VB_PAGE_OPENS;
}

bool vb_target_one_mark(const struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	struct vb_mem mem = vb_env_memory(qp);

	return wqe->is_inline ||
	       vb_mem_is_ours(&mem, vb_send_wqe_sge((struct vb_send_wqe *)(uintptr_t)wqe),
			      wqe->num_sge);
}

bool vb_target_contact(struct vb_qp *qp, struct vb_target *target)
{
	enum vb_contact why;

	if (qp->pace.kbps) /* a queue pair with a rate limit sends on the path that is paced */
		return false;
	if (!qp->channel) {
		struct vb_channel *c = vb_channel_find_since(qp->engine->node, qp->engine->index,
							     qp->t.dest_qpn, qp->connected_at, true,
							     &why);

		if (c)
			vb_local_set_channel(qp, c);
	}
	if (!qp->channel || atomic_load_explicit(&qp->channel->dead, memory_order_relaxed))
		return false;
	target->peer = qp->channel->peer;
	/*
	 * Within one process the responder is reached at once, and guards its copies against memory
	 * that is gone.
	 */
	if (vb_peer_is_self(target->peer) || !vb_guard_possible() || !vb_peer_alive(target->peer) ||
	    !(vb_peer_reachable(target->peer) || vb_peer_shares(target->peer)))
		return false;
	if (!qp->peer_qp)
		qp->peer_qp = vb_peer_qp(target->peer, qp->t.dest_qpn);
	target->qp = qp->peer_qp;
	return target->qp != NULL;
}

bool vb_target_enter(struct vb_qp *qp, struct vb_target *target, uint32_t rkey, uint32_t queue)
{
	if (!vb_mark_is_listed(qp->engine->node, qp->engine->index))
		vb_engines_watch(qp->engine); /* so that it is left out again */
	vb_mark_set(qp->engine->node, qp->engine->index, target->peer, qp->t.dest_qpn, rkey);
	vb_guard_init(&target->guard);
	target->guard.first = &target->qp->generation;
	target->guard.first_is = __atomic_load_n(&target->qp->generation, __ATOMIC_ACQUIRE);
	return vb_target_qp_allows(qp, target->qp, queue);
}

void vb_target_leave(struct vb_qp *qp)
{
	vb_mark_clear(qp->engine->node, qp->engine->index);
}

bool vb_target_key(struct vb_target *target, uint32_t rkey)
{
	const struct vb_key *entry = vb_peer_key(target->peer, rkey);

	if (!entry)
		return false;
	target->guard.second = &entry->generation;
	target->guard.second_is = __atomic_load_n(&entry->generation, __ATOMIC_ACQUIRE);
	/*
	 * The key is read before and after the copy of the entry: a region that is changed keeps
	 * its key, but not while it changes.
	 */
	if (__atomic_load_n(&entry->key, __ATOMIC_ACQUIRE) != rkey)
		return false;
	memcpy(&target->key, entry, sizeof(target->key));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&entry->key, __ATOMIC_RELAXED) != rkey ||
	    target->key.kind == VB_KEY_NULL)
		return false;
	target->key.key = rkey;
	return true;
}

bool vb_target_range(struct vb_target *target, uint64_t va, uint64_t length, uint32_t need)
{
	uint32_t pd = __atomic_load_n(&target->qp->pd, __ATOMIC_RELAXED);
	uint32_t qpn = __atomic_load_n(&target->qp->qpn, __ATOMIC_RELAXED);

	return vb_access_check(&target->key, target->key.key, pd, qpn, va, length, need,
			       VB_ACCESS_REMOTE, &target->addr) == VB_REASON_NONE;
}

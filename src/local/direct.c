/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One-sided requests that the initiator itself executes: WRITE, READ and atomics finish although
 * the target's threads are busy or stopped.
 *
 * Complete or decline: either the whole request is executed, or nothing of the protocol's state was
 * touched and the request goes to the responder, which alone judges errors and raises events. A
 * mark in this process's page tells the target what is about to be touched. It is set before the
 * last check and cleared after the copy, and the target waits for it when it revokes. The
 * generations of what was checked guard the copy itself (host/guard.h): if this thread stood still
 * in between, the copy does not happen.
 */
#include <string.h>

#include "base/reason.h"
#include "engine/count.h"
#include "qp/env.h"
#include "memory/memory.h"
#include "qp/qp.h"
#include "host/arena.h"
#include "host/channel.h"
#include "host/guard.h"
#include "host/peer.h"
#include "local/link.h"

#define DIRECT_WORTH_WAITING 32768u /* bytes */
/* The most that one call copies. The rest goes on from poll or from the progress thread. */
#define DIRECT_CHUNK         (256u * 1024u)

struct target {
	struct vb_peer *peer;
	const struct vb_page_qp *qp;
	uint64_t addr; /* in the peer's address space */
	bool shared;   /* other processes, which the peer does not know, may have mapped it */
	struct vb_guard guard;
};

static uint32_t access_needed(uint8_t opcode)
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

/*
 * What the peer's queue pair must allow. All operations but WRITE need that it serves requests with
 * an answer.
 */
static uint32_t queue_needed(uint8_t opcode)
{
	return access_needed(opcode) | (opcode == IBV_WR_RDMA_WRITE ? 0 : VB_PAGE_ANSWERS);
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

/*
 * Whether the peer's queue pair may be bypassed for this request. What it publishes is copied by
 * single loads.
 */
static bool qp_allows(const struct vb_qp *qp, const struct vb_page_qp *entry, uint32_t need)
{
	if (!__atomic_load_n(&entry->direct, __ATOMIC_ACQUIRE))
		return false;
	return __atomic_load_n(&entry->qpn, __ATOMIC_RELAXED) == qp->t.dest_qpn &&
	       __atomic_load_n(&entry->dest_qpn, __ATOMIC_RELAXED) == qp->t.qpn &&
	       __atomic_load_n(&entry->service, __ATOMIC_RELAXED) == qp->t.service &&
	       psn_fits(qp, entry) &&
	       (__atomic_load_n(&entry->access, __ATOMIC_RELAXED) & need) == need;
}

static bool key_allows(struct target *target, const struct vb_send_wqe *wqe, uint32_t need,
		       uint64_t length)
{
	const struct vb_key *entry = vb_peer_key(target->peer, wqe->rkey);
	struct vb_key copy;

	if (!entry)
		return false;
	target->guard.second = &entry->generation;
	target->guard.second_is = __atomic_load_n(&entry->generation, __ATOMIC_ACQUIRE);
	/*
	 * The key is read before and after the copy of the entry: a region that is changed keeps
	 * its key, but not while it changes.
	 */
	if (__atomic_load_n(&entry->key, __ATOMIC_ACQUIRE) != wqe->rkey)
		return false;
	memcpy(&copy, entry, sizeof(copy));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&entry->key, __ATOMIC_RELAXED) != wqe->rkey || copy.kind == VB_KEY_NULL)
		return false;
	copy.key = wqe->rkey;
	target->shared = copy.shared;
	uint32_t pd = __atomic_load_n(&target->qp->pd, __ATOMIC_RELAXED);
	uint32_t qpn = __atomic_load_n(&target->qp->qpn, __ATOMIC_RELAXED);

	return vb_access_check(&copy, wqe->rkey, pd, qpn, wqe->remote_addr, length, need,
			       VB_ACCESS_REMOTE, &target->addr) == VB_REASON_NONE;
}

/*
 * An engine has one mark. A request that would need two, for its target and for an imported region
 * of this side, is declined.
 */
static bool needs_one_mark(const struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	struct vb_send_wqe *w = (struct vb_send_wqe *)(uintptr_t)wqe;
	struct vb_mem mem = vb_env_memory(qp);

	return w->is_inline || vb_mem_is_ours(&mem, vb_send_wqe_sge(w), w->num_sge);
}

/*
 * The next `length` bytes of the local side as vectors. False: a local key is wrong; the responder
 * path reports that.
 */
static bool local_vectors(struct vb_qp *qp, struct vb_send_wqe *wqe, uint64_t length,
			  struct vb_mem_vectors *v)
{
	struct vb_mem mem = vb_env_memory(qp);
	uint32_t need = wqe->opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_LOCAL_WRITE : 0;
	struct vb_mem_cursor c = {&mem, vb_send_wqe_sge(wqe), wqe->num_sge, 0, wqe->done, length,
				  need};

	if (wqe->is_inline) {
		v->iov[0].iov_base = (char *)vb_send_wqe_inline(wqe) + wqe->done;
		v->iov[0].iov_len = length;
		v->count = 1;
		v->bytes = length;
		v->paged = v->null = 0;
		return true;
	}
	return vb_mem_next(&c, v) == VB_REASON_NONE && v->bytes > 0;
}

/*
 * Whether the local vectors can be copied here. Those of the null region have no address. The
 * kernel's copy fails on on-demand memory that the program has unmapped; only if the memory is one
 * piece, and the target is not mapped here, is nothing copied then.
 */
static bool copyable(const struct target *target, const struct vb_mem_vectors *v, uint64_t length)
{
	if (v->null)
		return false;
	return !v->paged || (v->count == 1 && !vb_arena_holds(target->peer, target->addr, length));
}

static int copy_chunk(const struct target *target, struct vb_send_wqe *wqe, struct iovec *iov,
		      int count, uint64_t length)
{
	uint64_t addr = target->addr + wqe->done;

	if (wqe->opcode == IBV_WR_RDMA_READ)
		return vb_peer_read(target->peer, addr, iov, count, length, &target->guard);
	/* Only the last word of a request is promised to be stored last. */
	return vb_peer_write(target->peer, addr, iov, count, length,
			     wqe->done + length == wqe->length, &target->guard);
}

static enum vb_direct direct_copy(struct vb_qp *qp, struct vb_send_wqe *wqe,
				  const struct target *target)
{
	struct iovec iov[VB_PEER_IOV];
	struct vb_mem_vectors v = {.iov = iov, .max = VB_PEER_IOV - 2};
	uint64_t length = wqe->length - wqe->done;

	if (length > DIRECT_CHUNK)
		length = DIRECT_CHUNK;
	if (!local_vectors(qp, wqe, length, &v) || !copyable(target, &v, wqe->length) ||
	    copy_chunk(target, wqe, iov, v.count, v.bytes) != 0) {
		wqe->done = 0;
		return VB_DIRECT_DECLINED;
	}
	wqe->done += v.bytes;
	return wqe->done == wqe->length ? VB_DIRECT_DONE : VB_DIRECT_MORE;
}

static enum vb_direct direct_atomic(struct vb_qp *qp, struct vb_send_wqe *wqe,
				    const struct target *target)
{
	struct vb_mem mem = vb_env_memory(qp);
	uint64_t original;

	/*
	 * Judged before the remote word changes. On the responder path it is judged after, as
	 * adapters do.
	 */
	if (vb_mem_check_list(&mem, vb_send_wqe_sge(wqe), wqe->num_sge, IBV_ACCESS_LOCAL_WRITE) !=
		    VB_REASON_NONE ||
	    !vb_mem_is_plain(&mem, vb_send_wqe_sge(wqe), wqe->num_sge))
		return VB_DIRECT_DECLINED;
	/*
	 * Only a process that has mapped the word can change it atomically against the others that
	 * have.
	 */
	if (target->shared && !vb_arena_holds(target->peer, target->addr, sizeof(original)))
		return VB_DIRECT_DECLINED;
	bool cas = wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
	struct vb_atomic op = {cas, cas ? wqe->swap : wqe->compare_add, wqe->compare_add};

	if (vb_peer_atomic(target->peer, target->addr, &op, &original, &target->guard))
		return VB_DIRECT_DECLINED;
	vb_mem_scatter(&mem, vb_send_wqe_sge(wqe), wqe->num_sge, 0, &original, sizeof(original));
	return VB_DIRECT_DONE;
}

/* Memory that this processor wrote is visible to all. Only the target can make it persistent. */
static bool flush_plausible(const struct vb_send_wqe *wqe)
{
	return wqe->flush_length && wqe->feth == VB_FETH(IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
}

/* In turn with remote atomics: the store does not come between the halves of one. */
static enum vb_direct direct_atomic_write(struct vb_qp *qp, struct vb_send_wqe *wqe,
					  const struct target *target)
{
	struct vb_mem mem = vb_env_memory(qp);
	uint64_t value;

	if (wqe->is_inline)
		memcpy(&value, vb_send_wqe_inline(wqe), sizeof(value));
	else if (vb_mem_gather(&mem, vb_send_wqe_sge(wqe), wqe->num_sge, 0, &value, sizeof(value)))
		return VB_DIRECT_DECLINED;
	return vb_peer_atomic_write(target->peer, target->addr, value, &target->guard)
		       ? VB_DIRECT_DECLINED
		       : VB_DIRECT_DONE;
}

static enum vb_direct direct_request(struct vb_qp *qp, struct vb_send_wqe *wqe,
				     const struct target *target)
{
	switch (wqe->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
		return direct_copy(qp, wqe, target);
	case IBV_WR_ATOMIC_WRITE:
		return direct_atomic_write(qp, wqe, target);
	case IBV_WR_FLUSH:
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		return VB_DIRECT_DONE;
	default:
		return direct_atomic(qp, wqe, target);
	}
}

static bool plausible(const struct vb_send_wqe *wqe)
{
	if (wqe->opcode == IBV_WR_FLUSH)
		return flush_plausible(wqe);
	/*
	 * Zero bytes and misaligned atomics have rules of their own, which the responder applies.
	 */
	if (wqe->opcode == IBV_WR_RDMA_WRITE || wqe->opcode == IBV_WR_RDMA_READ)
		return wqe->length > 0;
	return wqe->length == 8 && (wqe->remote_addr & 7) == 0;
}

static bool contact(struct vb_qp *qp, struct target *target)
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

/*
 * A stream of one-sided requests should not stay on the ring, where the target's processors serve
 * it, because of a first request that was sent before contact was made. And a large copy is worth a
 * round trip. A small WRITE behind a SEND is sent behind it.
 */
bool vb_local_direct_waits(struct vb_qp *qp, const struct vb_send_wqe *wqe, bool two_sided)
{
	struct target target;

	if (two_sided && wqe->length < DIRECT_WORTH_WAITING)
		return false;
	return plausible(wqe) && contact(qp, &target) && needs_one_mark(qp, wqe) &&
	       qp_allows(qp, target.qp, queue_needed(wqe->opcode));
}

enum vb_direct vb_local_direct(struct vb_qp *qp, struct vb_send_wqe *wqe)
{
	struct vb_engine *e = qp->engine;
	struct target target;
	uint32_t need = access_needed(wqe->opcode);
	uint32_t queue = queue_needed(wqe->opcode);
	enum vb_direct result = VB_DIRECT_DECLINED;

	if (!plausible(wqe) || !contact(qp, &target) || !qp_allows(qp, target.qp, queue) ||
	    !needs_one_mark(qp, wqe))
		goto declined;
	vb_mark_set(e->node, e->index, target.peer, qp->t.dest_qpn, wqe->rkey);
	vb_guard_init(&target.guard);
	target.guard.first = &target.qp->generation;
	target.guard.first_is = __atomic_load_n(&target.qp->generation, __ATOMIC_ACQUIRE);
	if (qp_allows(qp, target.qp, queue) &&
	    key_allows(&target, wqe, need,
		       wqe->opcode == IBV_WR_FLUSH ? wqe->flush_length : wqe->length))
		result = direct_request(qp, wqe, &target);
	vb_mark_clear(e->node, e->index);
	if (result == VB_DIRECT_DONE) {
		e->paths.direct_requests++;
		e->paths.direct_bytes += wqe->length;
		vb_count_direct(e, vb_operation(wqe->opcode)->op, qp->t.mtu, wqe->length);
	}
	if (result != VB_DIRECT_DECLINED)
		return result;
declined:
	wqe->done = 0;
	return VB_DIRECT_DECLINED;
}

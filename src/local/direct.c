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
#include "host/peer.h"
#include "local/link.h"
#include "local/target.h"

#define DIRECT_WORTH_WAITING 32768u /* bytes */
/* The most that one call copies. The rest goes on from poll or from the progress thread. */
#define DIRECT_CHUNK         (1024u * 1024u)

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
static bool copyable(const struct vb_target *target, const struct vb_mem_vectors *v,
		     uint64_t length)
{
	if (v->null)
		return false;
	return !v->paged || (v->count == 1 && !vb_arena_holds(target->peer, target->addr, length));
}

static int copy_chunk(const struct vb_target *target, struct vb_send_wqe *wqe, struct iovec *iov,
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
				  const struct vb_target *target)
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
				    const struct vb_target *target)
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
	if (target->key.shared && !vb_arena_holds(target->peer, target->addr, sizeof(original)))
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
					  const struct vb_target *target)
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
				     const struct vb_target *target)
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

void vb_direct_count(struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	struct vb_engine *e = qp->engine;

	e->paths.direct_requests++;
	e->paths.direct_bytes += wqe->length;
	vb_count_direct(e, vb_operation(wqe->opcode)->op, qp->t.mtu, wqe->length);
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

static bool memory_is_due(const struct vb_qp *qp)
{
	return qp->channel && !vb_peer_is_self(qp->channel->peer) && !qp->pace.kbps &&
	       vb_peer_memory_is_due(qp->channel->peer);
}

/*
 * The peer's memory is on its way, or its queue pair opens with the first packet. The progress thread
 * may take the memory meanwhile, so the question whether it is due comes first.
 */
static bool is_to_come(struct vb_qp *qp)
{
	bool had_channel = qp->channel, due = memory_is_due(qp);
	struct vb_target target;

	if (vb_target_contact(qp, &target))
		return vb_target_qp_opens(qp, target.qp);
	return due || (!had_channel && qp->channel && is_to_come(qp));
}

/*
 * A stream of one-sided requests should not stay on the ring, where the target's processors serve
 * it, because of a first request that was sent before contact was made. And a large copy is worth a
 * round trip, also where it is not certain that it can be direct after it: the requests of READs are
 * small, and hundreds of them would be in the ring. A small WRITE behind a SEND is sent behind it.
 */
bool vb_local_direct_waits(struct vb_qp *qp, const struct vb_send_wqe *wqe, bool two_sided)
{
	struct vb_target target;

	if (two_sided && wqe->length < DIRECT_WORTH_WAITING)
		return false;
	if (!plausible(wqe) || !vb_target_one_mark(qp, wqe))
		return false;
	if (wqe->length >= DIRECT_WORTH_WAITING && is_to_come(qp))
		return true;
	return vb_target_contact(qp, &target) &&
	       vb_target_qp_allows(qp, target.qp, vb_target_queue(wqe->opcode));
}

enum vb_direct vb_local_direct(struct vb_qp *qp, struct vb_send_wqe *wqe)
{
	struct vb_target target;
	uint32_t queue = vb_target_queue(wqe->opcode);
	uint64_t length = wqe->opcode == IBV_WR_FLUSH ? wqe->flush_length : wqe->length;
	enum vb_direct result = VB_DIRECT_DECLINED;

	if (plausible(wqe) && vb_target_contact(qp, &target) &&
	    vb_target_qp_allows(qp, target.qp, queue) && vb_target_one_mark(qp, wqe)) {
		if (vb_target_enter(qp, &target, wqe->rkey, queue) &&
		    vb_target_key(&target, wqe->rkey) &&
		    vb_target_range(&target, wqe->remote_addr, length,
				    vb_target_access(wqe->opcode)))
			result = direct_request(qp, wqe, &target);
		vb_target_leave(qp);
	}
	if (result == VB_DIRECT_DONE)
		vb_direct_count(qp, wqe);
	else if (result == VB_DIRECT_DECLINED)
		wqe->done = 0;
	return result;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * READ, ATOMIC, ATOMIC_WRITE and FLUSH at the responder: a new request takes a resource, a repeated
 * one finds its resource again.
 */
#include "transport/psn.h"
#include "transport/responder.h"
#include "transport/tqp.h"

#define ATOMIC_BYTES 8u

static inline struct vb_resource *resource(struct vb_tqp *qp, uint32_t number)
{
	return vb_resource_at(&qp->resp, number);
}

/*
 * A resource for one more request (IBA 9.7.4.1.7), or NULL if the promised number is unanswered. A
 * repeated answer that is not sent yet does not count: the requester has the first one, or it would
 * not ask for more.
 */
static struct vb_resource *take(struct vb_tqp *qp)
{
	struct vb_responder *p = &qp->resp;
	uint32_t most = qp->max_dest_rd_atomic;

	if (!most)
		return NULL;
	if (p->res_head - p->res_serve >= most) {
		const struct vb_resource *forgotten = resource(qp, p->res_head - most);

		if (forgotten->active && !forgotten->repeated)
			return NULL;
		p->res_serve = p->res_head - most + 1;
	}
	return resource(qp, p->res_head);
}

static enum vb_reason judge_read(struct vb_tqp *qp, const struct vb_run *run)
{
	if (!(qp->access & IBV_ACCESS_REMOTE_READ))
		return VB_REASON_QP_ACCESS;
	if (run->dma_length > VB_MESSAGE_MOST)
		return VB_REASON_RETH_LENGTH;
	if (!take(qp))
		return VB_REASON_RD_ATOMIC_EXCEEDED;
	if (!run->dma_length)
		return VB_REASON_NONE;
	return qp->env->memory.remote_check(qp, run->rkey, run->va, run->dma_length,
					    IBV_ACCESS_REMOTE_READ);
}

static enum vb_reason execute_atomic(struct vb_tqp *qp, const struct vb_run *run,
				     uint64_t *original)
{
	if (!(qp->access & IBV_ACCESS_REMOTE_ATOMIC))
		return VB_REASON_QP_ACCESS;
	if (run->va & 7) /* judged before the key */
		return VB_REASON_ATOMIC_ALIGN;
	if (!take(qp))
		return VB_REASON_RD_ATOMIC_EXCEEDED;
	return qp->env->memory.remote_atomic(qp, run->rkey, run->va, run->op == VB_OP_COMPARE_SWAP,
					     run->swap_add, run->compare, original);
}

static enum vb_reason execute_atomic_write(struct vb_tqp *qp, const struct vb_run *run,
					   const void *payload)
{
	if (!(qp->access & IBV_ACCESS_REMOTE_WRITE))
		return VB_REASON_QP_ACCESS;
	if (run->dma_length != ATOMIC_BYTES)
		return VB_REASON_RETH_LENGTH;
	if (run->va & 7)
		return VB_REASON_ATOMIC_ALIGN;
	if (!take(qp))
		return VB_REASON_RD_ATOMIC_EXCEEDED;
	return qp->env->memory.remote_atomic_write(qp, run->rkey, run->va, payload);
}

/* The rights of a queue pair and of a key have one bit for each placement type. */
static enum vb_reason execute_flush(struct vb_tqp *qp, const struct vb_run *run)
{
	uint32_t type = VB_FETH_TYPE(run->flush);
	uint32_t level = VB_FETH_LEVEL(run->flush);
	uint32_t need = (type & IBV_FLUSH_GLOBAL ? IBV_ACCESS_FLUSH_GLOBAL : 0) |
			(type & IBV_FLUSH_PERSISTENT ? IBV_ACCESS_FLUSH_PERSISTENT : 0);

	if (!type || type > (IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT) || level > IBV_FLUSH_MR)
		return VB_REASON_FLUSH_TYPE;
	if ((qp->access & need) != need)
		return VB_REASON_QP_ACCESS;
	if (run->dma_length > VB_MESSAGE_MOST)
		return VB_REASON_RETH_LENGTH;
	if (!take(qp))
		return VB_REASON_RD_ATOMIC_EXCEEDED;
	if (level == IBV_FLUSH_RANGE && !run->dma_length)
		return VB_REASON_NONE;
	return qp->env->memory.remote_flush(qp, run->rkey, run->va, run->dma_length, type,
					    level == IBV_FLUSH_MR);
}

static enum vb_reason execute(struct vb_tqp *qp, const struct vb_run *run, const void *payload,
			      uint64_t *original)
{
	uint32_t length = run->op == VB_OP_ATOMIC_WRITE ? ATOMIC_BYTES : 0;

	if (run->segments != 1 || run->length != length)
		return VB_REASON_PACKET_LENGTH;
	switch (run->op) {
	case VB_OP_READ_REQUEST:
		return judge_read(qp, run);
	case VB_OP_ATOMIC_WRITE:
		return execute_atomic_write(qp, run, payload);
	case VB_OP_FLUSH:
		return execute_flush(qp, run);
	default:
		return execute_atomic(qp, run, original);
	}
}

void vb_responder_rd_atomic(struct vb_tqp *qp, const struct vb_run *run, const void *payload)
{
	struct vb_responder *p = &qp->resp;
	struct vb_resource *res;
	uint64_t original = 0;
	bool reads = run->op == VB_OP_READ_REQUEST;
	enum vb_reason reason = execute(qp, run, payload, &original);

	if (reason) {
		vb_responder_nak(qp, run, run->psn, reason);
		return;
	}
	res = take(qp);
	res->psn = run->psn;
	res->count = reads ? vb_psn_count(run->dma_length, qp->mtu) : 1;
	res->begin = res->next = 0;
	res->end = res->count;
	res->rkey = run->rkey;
	res->srqn = run->srqn;
	res->va = run->va;
	res->length = reads ? run->dma_length : 0;
	res->original = original;
	res->op = run->op;
	res->active = true;
	res->repeated = false;
	p->res_head++;
	if (p->res_known < p->res_slots - 1)
		p->res_known++;
	vb_responder_executed(p, res->count);
	p->msn = (p->msn + 1) & VB_PSN_MASK;
	p->owed |= VB_OWED_RESOURCE;
	if (qp->tells && reads)
		qp->env->queue.remote_done(qp, run->op, run->dma_length, true);
}

/*
 * Whether this is the same request again, or (READ) the end of it. Other requests with an old PSN
 * are not answered.
 */
static bool same(const struct vb_tqp *qp, const struct vb_resource *res, const struct vb_run *run)
{
	uint32_t skipped = (run->psn - res->psn) & VB_PSN_MASK;
	uint64_t offset = (uint64_t)skipped * qp->mtu;

	if (res->op != run->op || res->rkey != run->rkey || skipped >= res->count ||
	    run->segments != 1)
		return false;
	if (run->op != VB_OP_READ_REQUEST)
		return res->va == run->va;
	return run->va == res->va + offset && offset + run->dma_length <= res->length &&
	       (run->dma_length || !res->length);
}

void vb_responder_rd_atomic_again(struct vb_tqp *qp, const struct vb_run *run)
{
	struct vb_responder *p = &qp->resp;
	uint32_t kept = p->res_known < qp->max_dest_rd_atomic ? p->res_known
							      : qp->max_dest_rd_atomic;

	for (uint32_t number = p->res_head; number != p->res_head - kept; number--) {
		struct vb_resource *res = resource(qp, number - 1);

		if (!same(qp, res, run))
			continue;
		if (run->op == VB_OP_READ_REQUEST) {
			res->begin = res->next = (run->psn - res->psn) & VB_PSN_MASK;
			res->end = res->begin + vb_psn_count(run->dma_length, qp->mtu);
		} else {
			res->begin = res->next = 0;
			res->end = 1;
		}
		res->active = true;
		res->repeated = true;
		if ((int32_t)(number - 1 - p->res_serve) < 0)
			p->res_serve = number - 1;
		p->owed |= VB_OWED_RESOURCE;
		return;
	}
	vb_responder_drop(qp, VB_REASON_DROP_STALE, run);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receive queues: posting (under the queue's own lock, so that it does not wait for the engine) and
 * flushing.
 */
#include "engine/recv_queue.h"

#include <errno.h>
#include <string.h>

#include "base/reason.h"
#include "engine/fastpath.h"
#include "engine/qp.h"

int vb_recv_queue_init(struct vb_recv_queue *rq, struct ibv_pd *pd, uint32_t max_wr,
		       uint32_t max_sge)
{
	int err;

	vb_lock_place(&rq->lock, VB_ORDER_RECEIVES);
	rq->max_wr = max_wr;
	rq->max_sge = max_sge;
	rq->size = 1;
	while (rq->size < max_wr)
		rq->size <<= 1;
	rq->stride = (uint32_t)(sizeof(struct vb_recv_wqe) +
				(max_sge ? max_sge : 1) * sizeof(struct ibv_sge));
	if (!max_wr)
		return 0;
	err = vb_queue_memory_alloc(&rq->memory, pd, (size_t)rq->size * rq->stride,
				    VERBATIM_RESOURCE_RECV_QUEUE);
	rq->mem = rq->memory.ptr;
	return err;
}

void vb_recv_queue_fini(struct vb_recv_queue *rq)
{
	vb_queue_memory_free(&rq->memory);
	rq->mem = NULL;
	vb_bias_forget(&rq->lock);
}

void vb_recv_queue_clear(struct vb_recv_queue *rq)
{
	vb_lock_take(&rq->lock);
	atomic_store(&rq->posted, 0);
	atomic_store(&rq->done, 0);
	rq->taken = 0;
	vb_lock_release(&rq->lock);
}

void vb_qp_flush_receives(struct vb_qp *qp)
{
	/* Shared receives stay for the other queue pairs. */
	while (qp->rq.taken != atomic_load_explicit(&qp->rq.posted, memory_order_acquire)) {
		struct vb_recv_wqe *wqe = vb_recv_queue_entry(&qp->rq, qp->rq.taken++);
		struct vb_recv_done done = {
			.wqe = wqe,
			.status = IBV_WC_WR_FLUSH_ERR,
			.reason = VB_REASON_FLUSHED,
			.opcode = IBV_WC_RECV,
		};
		qp->t.env->queue.recv_done(&qp->t, &done);
	}
}

struct vb_recv_wqe *vb_recv_queue_entry(const struct vb_recv_queue *rq, uint32_t index)
{
	return (struct vb_recv_wqe *)(void *)(rq->mem +
					      (size_t)(index & (rq->size - 1)) * rq->stride);
}

int vb_recv_queue_post(struct vb_recv_queue *rq, const struct ibv_recv_wr *wr, const char *call,
		       uint32_t number)
{
	uint32_t posted = atomic_load_explicit(&rq->posted, memory_order_relaxed);

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
		return -vb_refuse(EINVAL, VB_REASON_SGE_COUNT,
				  "%s: 0x%x: %d elements, the queue takes %u", call, number,
				  wr->num_sge, rq->max_sge);
	if (posted - atomic_load_explicit(&rq->done, memory_order_acquire) >= rq->max_wr)
		return -vb_refuse(ENOMEM, VB_REASON_QUEUE_FULL, "%s: 0x%x: %u receives are posted",
				  call, number, rq->max_wr);
	vb_recv_wqe_fill(vb_recv_queue_entry(rq, posted), wr);
	atomic_store_explicit(&rq->posted, posted + 1, memory_order_release);
	return 0;
}

static int post_state_check(const struct vb_qp *qp, struct ibv_recv_wr *wr,
			    struct ibv_recv_wr **bad_wr)
{
	if (qp->srq) {
		*bad_wr = wr;
		return -vb_refuse(EINVAL, VB_REASON_ARG, "post_recv: qp 0x%x receives from an srq",
				  qp->t.qpn);
	}
	if (atomic_load_explicit(&qp->state, memory_order_relaxed) == IBV_QPS_RESET) {
		*bad_wr = wr;
		return -vb_refuse(EINVAL, VB_REASON_QP_STATE, "post_recv: qp 0x%x is in RESET",
				  qp->t.qpn);
	}
	return 0;
}

int vb_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct vb_qp *qp = vb_qp_of(ibqp);
	int err = post_state_check(qp, wr, bad_wr);

	if (err)
		return err;
	vb_lock_take(&qp->rq.lock);
	for (; wr; wr = wr->next) {
		err = vb_recv_queue_post(&qp->rq, wr, "post_recv", qp->t.qpn);
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	vb_lock_release(&qp->rq.lock);
	/* Either this thread sees ERR here, or the change to ERR sees what was just posted. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&qp->state, memory_order_relaxed) == IBV_QPS_ERR) {
		vb_lock_take(&qp->engine->lock);
		if (qp->t.state == IBV_QPS_ERR)
			vb_qp_flush_receives(qp);
		vb_lock_release(&qp->engine->lock);
	}
	return err;
}

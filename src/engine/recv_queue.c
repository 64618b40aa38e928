/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Receive queues: their memory and entries. post_recv.c posts to the one of a queue pair. */
#include "engine/recv_queue.h"

#include <errno.h>
#include <string.h>

#include "base/reason.h"
#include "transport/wqe.h"

int vb_recv_queue_init(struct vb_recv_queue *rq, struct ibv_pd *pd, uint32_t max_wr,
		       uint32_t max_sge)
{
	int err;

	vb_lock_place(&rq->lock, VB_ORDER_RECEIVES);
	rq->max_wr = max_wr;
	rq->max_sge = max_sge;
	rq->size = 1;
	if (!max_wr)
		return 0;
	rq->max_sge = vb_recv_wqe_room(max_sge);
	rq->stride = vb_recv_wqe_stride(rq->max_sge);
	while (rq->size < max_wr)
		rq->size <<= 1;
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

int vb_recv_queue_refuse(const struct vb_recv_queue *rq, const struct ibv_recv_wr *wr,
			 const char *call, uint32_t number)
{
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
		return -vb_refuse(EINVAL, VB_REASON_SGE_COUNT,
				  "%s: 0x%x: %d elements, the queue takes %u", call, number,
				  wr->num_sge, rq->max_sge);
	return -vb_refuse(ENOMEM, VB_REASON_QUEUE_FULL, "%s: 0x%x: %u receives are posted", call,
			  number, rq->max_wr);
}

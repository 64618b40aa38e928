/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A queue pair's own receive queue. */
#ifndef VB_ENGINE_RECV_QUEUE_H
#define VB_ENGINE_RECV_QUEUE_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/lock.h"
#include "base/seldom.h"
#include "object/queue_memory.h"
#include "transport/wqe.h"

/*
 * The queue pair's own receive queue. Posting threads fill entries under `lock`; the engine takes
 * them without it.
 */
struct vb_recv_queue {
	struct vb_lock lock;
	char *mem;
	uint32_t stride;
	uint32_t size; /* power of two >= max_wr */
	uint32_t max_wr, max_sge;
	_Atomic uint32_t posted;
	uint32_t taken;                /* used by the engine */
	_Atomic uint32_t done;         /* entries that the program may use again */
	struct vb_queue_memory memory; /* memory of `mem` */
};

/*
 * max_wr 0: a queue that takes nothing. max_sge becomes what an entry has room for. The memory comes from the pd (object/queue_memory.h).
 * -ENOMEM.
 */
int vb_recv_queue_init(struct vb_recv_queue *rq, struct ibv_pd *pd, uint32_t max_wr,
		       uint32_t max_sge);
void vb_recv_queue_fini(struct vb_recv_queue *rq);
/* Under the engine's lock: forgets every posted receive. */
void vb_recv_queue_clear(struct vb_recv_queue *rq);

static inline struct vb_recv_wqe *vb_recv_queue_entry(const struct vb_recv_queue *rq,
						      uint32_t index)
{
	return (struct vb_recv_wqe *)(void *)(rq->mem +
					      (size_t)(index & (rq->size - 1)) * rq->stride);
}

/* Why the receive is not posted: too many elements, else no room. A positive errno. */
int vb_recv_queue_refuse(const struct vb_recv_queue *rq, const struct ibv_recv_wr *wr,
			 const char *call, uint32_t number);
/*
 * Posts one receive (under a lock of posting threads). 0 or a positive errno. `call` and `number`
 * appear in the reason.
 */
static inline int vb_recv_queue_post(struct vb_recv_queue *rq, const struct ibv_recv_wr *wr,
				     const char *call, uint32_t number)
{
	uint32_t posted = atomic_load_explicit(&rq->posted, memory_order_relaxed);

	if (VB_SELDOM((uint32_t)wr->num_sge > rq->max_sge ||
		      posted - atomic_load_explicit(&rq->done, memory_order_acquire) >= rq->max_wr))
		return vb_recv_queue_refuse(rq, wr, call, number);
	vb_recv_wqe_fill(vb_recv_queue_entry(rq, posted), wr);
	atomic_store_explicit(&rq->posted, posted + 1, memory_order_release);
	return 0;
}

#endif

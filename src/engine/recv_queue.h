/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A queue pair's own receive queue. */
#ifndef VB_ENGINE_RECV_QUEUE_H
#define VB_ENGINE_RECV_QUEUE_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/lock.h"
#include "object/queue_memory.h"

struct vb_recv_wqe;

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
 * max_wr 0: a queue that takes nothing. The memory comes from the pd (object/queue_memory.h).
 * -ENOMEM.
 */
int vb_recv_queue_init(struct vb_recv_queue *rq, struct ibv_pd *pd, uint32_t max_wr,
		       uint32_t max_sge);
void vb_recv_queue_fini(struct vb_recv_queue *rq);
/* Under the engine's lock: forgets every posted receive. */
void vb_recv_queue_clear(struct vb_recv_queue *rq);

struct vb_recv_wqe *vb_recv_queue_entry(const struct vb_recv_queue *rq, uint32_t index);
/*
 * Posts one receive (under a lock of posting threads). 0 or a positive errno. `call` and `number`
 * appear in the reason.
 */
int vb_recv_queue_post(struct vb_recv_queue *rq, const struct ibv_recv_wr *wr, const char *call,
		       uint32_t number);

#endif

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

/* The queue pair's own receive queue: posters fill entries under `lock`, the engine takes them without. */
struct vb_recv_queue {
	struct vb_lock lock;
	char *mem;
	uint32_t stride;
	uint32_t size; /* power of two >= max_wr */
	uint32_t max_wr, max_sge;
	_Atomic uint32_t posted;
	uint32_t taken;                /* engine's */
	_Atomic uint32_t done;         /* entries the program may post again */
	struct vb_queue_memory memory; /* of `mem` */
};

/* max_wr 0: a queue that takes nothing. The memory is of the pd (queue_memory.h). -ENOMEM. */
int vb_recv_queue_init(struct vb_recv_queue *rq, struct ibv_pd *pd, uint32_t max_wr,
		       uint32_t max_sge);
void vb_recv_queue_fini(struct vb_recv_queue *rq);
/* Forgets everything posted. Under the engine's lock. */
void vb_recv_queue_clear(struct vb_recv_queue *rq);

struct vb_recv_wqe *vb_recv_queue_entry(const struct vb_recv_queue *rq, uint32_t index);
/* One receive is posted (under a lock of posters): 0 or a positive errno. `call` and `number` name it in the reason. */
int vb_recv_queue_post(struct vb_recv_queue *rq, const struct ibv_recv_wr *wr, const char *call,
		       uint32_t number);

#endif

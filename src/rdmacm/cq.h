/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a queue pair of an id needs and the program did not bring: completion queues, XRC domains. */
#ifndef VB_RDMACM_CQ_H
#define VB_RDMACM_CQ_H

#include <infiniband/verbs.h>

struct vb_cma_id;

/*
 * Sets the queues of `attr`: the program's, those of the id, or new ones, which get a channel, and
 * the id as their context. -errno: what was made is ended again.
 */
int vb_cma_cq_make(struct vb_cma_id *id, struct ibv_qp_init_attr_ex *attr);

/* Ends the queues that were made for the id. */
void vb_cma_cq_end(struct vb_cma_id *id);
/* Ends the queue that was made for the id's shared receive queue. */
void vb_cma_cq_end_srq(struct vb_cma_id *id);

/* One queue with a channel. */
int vb_cma_cq_one(struct vb_cma_id *id, uint32_t size, struct ibv_comp_channel **channel,
		  struct ibv_cq **cq);

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The parts of the protocol's environment that have files of their own: requests of peers. */
#ifndef VB_QP_ENV_H
#define VB_QP_ENV_H

#include "memory/memory.h"
#include "qp/qp.h"
#include "transport/env.h"

struct vb_cqe_more;

/* The process's memory as the queue pair's own requests and receives see it. */
static inline struct vb_mem vb_env_memory(const struct vb_qp *qp)
{
	return (struct vb_mem){
		.keys = vb_node_keyring(qp->engine->node),
		.pd = qp->pd_id,
		.qpn = qp->t.qpn,
		.engine = qp->engine->index,
	};
}

/* env->recv_done, with what extended completion queues tell besides (may be NULL). */
void vb_env_recv_done(struct vb_tqp *t, const struct vb_recv_done *done,
		      const struct vb_cqe_more *more);

/* env_remote.c */
enum vb_reason vb_env_remote_check(struct vb_tqp *t, uint32_t rkey, uint64_t va, uint64_t length,
				   uint32_t need);
enum vb_reason vb_env_remote_write(struct vb_tqp *t, uint32_t rkey, uint64_t va, const void *src,
				   uint32_t length);
enum vb_reason vb_env_remote_read(struct vb_tqp *t, uint32_t rkey, uint64_t va, void *dst,
				  uint32_t length);
enum vb_reason vb_env_remote_atomic(struct vb_tqp *t, uint32_t rkey, uint64_t va, bool compare_swap,
				    uint64_t swap_add, uint64_t compare, uint64_t *original);
enum vb_reason vb_env_remote_atomic_write(struct vb_tqp *t, uint32_t rkey, uint64_t va,
					  const void *value);
enum vb_reason vb_env_remote_flush(struct vb_tqp *t, uint32_t rkey, uint64_t va, uint64_t length,
				   uint32_t type, bool whole);
void vb_env_remote_done(struct vb_tqp *t, uint8_t op, uint64_t bytes, bool ok);

#endif

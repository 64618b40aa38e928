/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion counters (ibv_create_comp_cntr(3)): successes and errors of operations of the queue
 * pairs that they are attached to.
 */
#ifndef VB_QP_COMP_CNTR_H
#define VB_QP_COMP_CNTR_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct vb_qp;

#define VB_COMP_CNTR_OPS                                                                      \
	(IBV_QP_ATTACH_COMP_CNTR_OP_SEND | IBV_QP_ATTACH_COMP_CNTR_OP_RECV |                  \
	 IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_READ | IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_READ | \
	 IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE | IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE)
#define VB_COMP_CNTR_REMOTE_OPS \
	(IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_READ | IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE)

int vb_comp_cntr_caps(struct ibv_context *ctx, struct ibv_comp_cntr_caps *caps);
int vb_comp_cntr_create(struct ibv_context *ctx, const struct ibv_comp_cntr_init_attr *attr,
			struct ibv_comp_cntr **cntr);
int vb_comp_cntr_destroy(struct ibv_comp_cntr *cntr);
/* Adds `value` to the count of successes or of errors, or, with `set`, replaces the count. */
int vb_comp_cntr_change(struct ibv_comp_cntr *cntr, bool errors, bool set, uint64_t value);
int vb_comp_cntr_read(struct ibv_comp_cntr *cntr, bool errors, uint64_t *value);
int vb_comp_cntr_attach(struct ibv_qp *qp, struct ibv_comp_cntr *cntr, uint32_t op_mask);

/* Called when the queue pair is destroyed. */
void vb_comp_cntr_release(struct vb_qp *qp);
/* One operation of the kind `op` (one bit) is finished. Only for queue pairs with counters. */
void vb_comp_cntr_count(struct vb_qp *qp, uint32_t op, uint64_t bytes, bool ok);
/* The bit for an opcode of the send queue; 0: not counted. */
uint32_t vb_comp_cntr_op(uint8_t wr_opcode);

struct vb_object_type;
extern const struct vb_object_type vb_comp_cntr_type;

#endif

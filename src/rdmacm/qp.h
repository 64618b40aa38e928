/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queue pairs of ids (qp.c), and the attributes that their states take (qp_attr.c). */
#ifndef VB_RDMACM_QP_H
#define VB_RDMACM_QP_H

#include <infiniband/verbs.h>

struct vb_cma_id;

/* As rdma_create_qp(3), with a negative errno. */
int vb_cma_qp_create(struct vb_cma_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr);

/*
 * Fills in what the state attr->qp_state takes by what the id knows, as rdma_init_qp_attr(3): the
 * negative errno.
 */
int vb_cma_qp_attr(struct vb_cma_id *id, struct ibv_qp_attr *attr, int *mask);

/* Brings id->qp into the state by these attributes. */
int vb_cma_qp_move(struct vb_cma_id *id, enum ibv_qp_state state);

/* Brings id->qp, if there is one, into the error state. */
void vb_cma_qp_error(struct vb_cma_id *id);

#endif

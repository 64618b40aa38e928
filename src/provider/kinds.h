/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The kinds of queue pairs and of shared receive queues. */
#ifndef VB_PROVIDER_KINDS_H
#define VB_PROVIDER_KINDS_H

#include <infiniband/verbs.h>

/*
 * The operations that create these (verbs/ops.h): the kind is chosen here, the rest belongs to its
 * room.
 */
int vb_kinds_create_qp(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr,
		       struct ibv_qp **qp);
int vb_kinds_create_srq(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr,
			struct ibv_srq **srq);

#endif

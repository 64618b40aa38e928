/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What ibv_create_qp_ex(3) accepts. */
#ifndef VB_QP_QP_CREATE_H
#define VB_QP_QP_CREATE_H

#include <infiniband/verbs.h>

#include "engine/kind.h"

/* 0, -EINVAL, -EOPNOTSUPP, -EPERM, -ENOENT; the reason is recorded. */
int vb_qp_create_check(struct ibv_context *ctx, const struct vb_qp_kind *kind,
		       const struct ibv_qp_init_attr_ex *attr);

#endif

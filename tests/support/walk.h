/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The way of a queue pair from RESET to RTS: which attributes each step takes for which type (ibv_modify_qp(3)). The values for
 * the whole way are in one struct ibv_qp_attr; what a type does not take is left out.
 */
#ifndef TESTS_SUPPORT_WALK_H
#define TESTS_SUPPORT_WALK_H

#include <infiniband/verbs.h>

/* The mask of the step that enters `to`, coming from the state before. */
int walk_mask(enum ibv_qp_type type, enum ibv_qp_state to);

/* One step. Returns ibv_modify_qp's answer. */
int walk_step(struct ibv_qp *qp, const struct ibv_qp_attr *attr, enum ibv_qp_state to);

/* From RESET, or from the state that entered INIT before, step by step to `to`: INIT, RTR, RTS, SQD, or ERR by way of INIT. */
int walk_to(struct ibv_qp *qp, const struct ibv_qp_attr *attr, enum ibv_qp_state to);

/* Towards queue pair `dest` of the same device, at the first address: values that suit most tests. */
struct ibv_qp_attr walk_within(struct ibv_context *ctx, uint32_t dest);

#endif

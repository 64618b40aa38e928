/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The states of a queue pair from RESET to RTS: which attributes each step takes for which type
 * (ibv_modify_qp(3)). One struct ibv_qp_attr holds the values of all steps; attributes that a type
 * does not take are left out.
 */
#ifndef TESTS_SUPPORT_QP_STATE_H
#define TESTS_SUPPORT_QP_STATE_H

#include <infiniband/verbs.h>

/* The mask of the step that enters `to` from the state before it. */
int qp_step_mask(enum ibv_qp_type type, enum ibv_qp_state to);

/* One step. Returns the answer of ibv_modify_qp(3). */
int qp_step(struct ibv_qp *qp, const struct ibv_qp_attr *attr, enum ibv_qp_state to);

/*
 * Steps from RESET, or from the state that entered INIT before, to `to`: INIT, RTR, RTS, SQD, or
 * ERR by way of INIT.
 */
int qp_bring_to(struct ibv_qp *qp, const struct ibv_qp_attr *attr, enum ibv_qp_state to);

/*
 * Values that suit most tests: towards queue pair `dest` of the same device, at the first address.
 */
struct ibv_qp_attr qp_attr_within(struct ibv_context *ctx, uint32_t dest);

/* From RESET to RTS, connected to itself; ends the test on failure. */
void qp_link_self(struct ibv_qp *qp);
/* One step that needs no other attribute (RESET, ERR, SQD, SQD to RTS); ends the test on failure. */
void qp_move(struct ibv_qp *qp, enum ibv_qp_state to);
/* The state that ibv_query_qp(3) gives. */
enum ibv_qp_state qp_state(struct ibv_qp *qp);

#endif

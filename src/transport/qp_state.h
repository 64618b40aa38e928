/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The queue pair state machine as a table: which transitions exist, and which attributes each needs
 * and takes (ibv_modify_qp(3), IBA 10.3.1).
 */
#ifndef VB_TRANSPORT_QP_STATE_H
#define VB_TRANSPORT_QP_STATE_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "base/reason.h"

/*
 * Whether a QP of `type` may go from `from` to `to` with exactly the attributes in `mask`
 * (IBV_QP_STATE may be set or not). Returns VB_REASON_NONE, QP_TRANSITION (no such transition),
 * QP_ATTR_MISSING or QP_ATTR_EXTRA; *bits gets the offending mask bits.
 */
enum vb_reason vb_qp_state_check(enum ibv_qp_type type, enum ibv_qp_state from,
				 enum ibv_qp_state to, int mask, int *bits);

/* "RTR", for log lines; "?" for a value that is no state. */
const char *vb_qp_state_name(enum ibv_qp_state state);

#endif

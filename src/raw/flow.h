/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Flow steering (ibv_create_flow(3)): the rules of this process, by device and priority, and which
 * of its queue pairs get a frame.
 *
 * Every raw packet queue pair with a rule reads all frames of its interface, and asks here whether
 * a frame is its own. Rules of other processes are not known, and no frame is taken from the
 * kernel's own network stack.
 */
#ifndef VB_RAW_FLOW_H
#define VB_RAW_FLOW_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/frame.h"

struct vb_qp;

int vb_flow_create(struct ibv_qp *qp, const struct ibv_flow_attr *attr, struct ibv_flow **flow);
int vb_flow_destroy(struct ibv_flow *flow);

/*
 * Whether the frame is for `qp`. Counts the frame for the rules that have counters. *tag gets the
 * tag of the rule that steered the frame, else 0.
 */
bool vb_flow_steer(const struct vb_qp *qp, const struct vb_frame *frame, uint32_t *tag);

struct vb_object_type;
extern const struct vb_object_type vb_flow_type;

#endif

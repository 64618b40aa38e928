/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The tables of operations that contexts have: the device's own, and the one of contexts inherited
 * through fork.
 */
#ifndef VB_PROVIDER_OPS_H
#define VB_PROVIDER_OPS_H

#include "verbs/ops.h"

extern const struct vb_ops vb_device_ops; /* ops.c */
/* forked_ops.c: answers queries, refuses the rest (ENODEV, reason FORKED). */
extern const struct vb_ops vb_forked_ops;

/* Posting, polling and arming of an inherited context are refused as well. */
void vb_forked_slots(struct ibv_context_ops *slots);

#endif

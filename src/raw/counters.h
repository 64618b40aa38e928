/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counters of flows (ibv_create_counters(3)): packets and bytes of all rules that count for them.
 */
#ifndef VB_RAW_COUNTERS_H
#define VB_RAW_COUNTERS_H

#include <infiniband/verbs.h>
#include <stdint.h>

int vb_counters_create(struct ibv_context *ctx, struct ibv_counters **counters);
int vb_counters_destroy(struct ibv_counters *counters);
int vb_counters_attach(struct ibv_counters *counters, const struct ibv_counter_attach_attr *attr);
int vb_counters_read(struct ibv_counters *counters, uint64_t *values, uint32_t count);

/* A rule begins, or ceases, to count for them. -EINVAL: they are of another context. */
int vb_counters_bind(struct ibv_context *ctx, struct ibv_counters *counters);
void vb_counters_unbind(struct ibv_counters *counters);
/* Counts one frame. */
void vb_counters_count(struct ibv_counters *counters, uint32_t bytes);

struct vb_object_type;
extern const struct vb_object_type vb_counters_type;

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The answers of a context about its device (verbs/ops.h). */
#ifndef VB_OBJECT_QUERY_H
#define VB_OBJECT_QUERY_H

#include <infiniband/verbs.h>

int vb_query_device(struct ibv_context *ctx, struct ibv_device_attr_ex *attr);
int vb_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr);
int vb_query_port_speed(struct ibv_context *ctx, uint32_t port, uint64_t *speed_100mbps);
int vb_query_gid(struct ibv_context *ctx, uint32_t port, uint32_t index,
		 struct ibv_gid_entry *entry);
int vb_query_pkey(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey);
int vb_query_clock(struct ibv_context *ctx, struct ibv_values_ex *values);

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queries of a context, which its device answers. */
#include "object/query.h"

#include "device/attr.h"
#include "device/gid.h"
#include "device/port.h"
#include "object/context.h"

int vb_query_device(struct ibv_context *ctx, struct ibv_device_attr_ex *attr)
{
	return vb_attr_query(vb_context_of(ctx)->device, attr);
}

int vb_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr)
{
	return vb_port_query(vb_context_of(ctx)->device, port, attr);
}

int vb_query_port_speed(struct ibv_context *ctx, uint32_t port, uint64_t *speed_100mbps)
{
	return vb_port_query_speed(vb_context_of(ctx)->device, port, speed_100mbps);
}

int vb_query_gid(struct ibv_context *ctx, uint32_t port, uint32_t index,
		 struct ibv_gid_entry *entry)
{
	return vb_port_query_gid(vb_context_of(ctx)->device, port, index, entry);
}

int vb_query_pkey(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey)
{
	(void)ctx;
	return vb_port_query_pkey(port, index, pkey);
}

int vb_query_clock(struct ibv_context *ctx, struct ibv_values_ex *values)
{
	(void)ctx;
	return vb_attr_query_clock(values);
}

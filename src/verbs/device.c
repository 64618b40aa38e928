/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Attributes of a device and its port: ibv_query_device(3), ibv_query_port(3) and their kin. */
#include <string.h>

#include "verbs/face.h"
#include "verbs/slots.h"

#undef ibv_query_port

/* The attributes of 2005, before port_cap_flags2: what the exported ibv_query_port() may write. */
#define COMPAT_PORT_ATTR_SIZE offsetof(struct ibv_port_attr, port_cap_flags2)
#if UINTPTR_MAX == UINT64_MAX
_Static_assert(COMPAT_PORT_ATTR_SIZE == 48, "size of struct _compat_ibv_port_attr");
#endif

/*
 * Fills the caller's structure, which may be older (shorter) or newer (longer) than this library's.
 */
static void copy_sized(void *dst, size_t dst_size, const void *src, size_t src_size)
{
	if (dst_size > src_size) {
		memset((char *)dst + src_size, 0, dst_size - src_size);
		dst_size = src_size;
	}
	memcpy(dst, src, dst_size);
}

VB_EXPORT int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	struct ibv_device_attr_ex all = {0};
	int err;

	if (!ctx || !attr)
		return vb_answer(vb_refuse_null("query_device", ctx ? "device_attr" : "context"));
	err = vb_ops(ctx)->query_device(ctx, &all);
	if (!err)
		*attr = all.orig_attr;
	return vb_answer(err);
}

int vb_slot_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
			    struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ibv_device_attr_ex all = {0};
	int err;

	if (!attr || attr_size < sizeof(all.orig_attr))
		return vb_answer(vb_refuse(EINVAL, VB_REASON_ARG,
					   "query_device_ex: room for %zu bytes only",
					   attr ? attr_size : 0));
	err = input ? vb_check_mask("query_device_ex", "comp_mask", input->comp_mask, 0) : 0;
	if (!err)
		err = vb_ops(ctx)->query_device(ctx, &all);
	if (!err)
		copy_sized(attr, attr_size, &all, sizeof(all));
	return vb_answer(err);
}

static int query_port(struct ibv_context *ctx, uint8_t port, void *attr, size_t attr_size)
{
	struct ibv_port_attr all = {0};
	int err;

	if (!ctx || !attr)
		return vb_refuse_null("query_port", ctx ? "port_attr" : "context");
	err = vb_ops(ctx)->query_port(ctx, port, &all);
	if (!err)
		copy_sized(attr, attr_size, &all, sizeof(all));
	return err;
}

int vb_slot_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr,
		       size_t attr_size)
{
	return vb_answer(query_port(ctx, port, attr, attr_size));
}

VB_EXPORT int ibv_query_port(struct ibv_context *ctx, uint8_t port,
			     struct _compat_ibv_port_attr *attr)
{
	return vb_answer(query_port(ctx, port, attr, COMPAT_PORT_ATTR_SIZE));
}

VB_EXPORT int ibv_query_port_speed(struct ibv_context *ctx, uint32_t port, uint64_t *port_speed)
{
	uint64_t speed = 0;
	int err;

	if (!ctx || !port_speed)
		return vb_answer(
			vb_refuse_null("query_port_speed", ctx ? "port_speed" : "context"));
	err = vb_ops(ctx)->query_port_speed(ctx, port, &speed);
	if (!err)
		*port_speed = speed;
	return vb_answer(err);
}

int vb_slot_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values)
{
	int err;

	if (!values)
		return vb_answer(vb_refuse_null("query_rt_values", "values"));
	err = vb_check_mask("query_rt_values", "comp_mask", values->comp_mask,
			    IBV_VALUES_MASK_RAW_CLOCK);
	if (!err)
		err = vb_ops(ctx)->query_rt_values(ctx, values);
	return vb_answer(err);
}

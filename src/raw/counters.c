/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counters of flows. Which value appears at which index is fixed before the first rule counts for
 * them.
 */
#include "raw/counters.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/reason.h"
#include "object/context.h"

#define POINTS 32u

struct point {
	uint32_t index;
	enum ibv_counter_description what;
};

struct vb_counters {
	struct ibv_counters counters;
	uint32_t handle;
	struct vb_lock lock; /* guards points and rules */
	struct point point[POINTS];
	uint32_t points;
	uint32_t rules; /* rules that count for them */
	_Atomic uint64_t packets, bytes;
};

static struct vb_counters *counters_of(struct ibv_counters *counters)
{
	return (struct vb_counters *)(void *)counters;
}

int vb_counters_create(struct ibv_context *ctx, struct ibv_counters **counters)
{
	struct vb_counters *c = calloc(1, sizeof(*c));
	int err = c ? 0 : vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "create_counters");

	if (!err)
		err = vb_context_add(ctx, VB_HANDLE_COUNTERS, c, &c->handle);
	if (err) {
		free(c);
		return err;
	}
	vb_lock_place(&c->lock, VB_ORDER_COUNTERS);
	c->counters.context = ctx;
	*counters = &c->counters;
	return 0;
}

int vb_counters_destroy(struct ibv_counters *counters)
{
	struct vb_counters *c = counters_of(counters);
	int err = vb_context_check(counters->context, VB_HANDLE_COUNTERS, c->handle, c, "counters");

	if (err)
		return err;
	vb_lock_take(&c->lock);
	uint32_t rules = c->rules;

	vb_lock_release(&c->lock);
	if (rules)
		return vb_refuse(EBUSY, VB_REASON_BUSY, "destroy_counters: %u flows count", rules);
	err = vb_context_remove(counters->context, VB_HANDLE_COUNTERS, c->handle, c);
	if (!err)
		free(c);
	return err;
}

int vb_counters_attach(struct ibv_counters *counters, const struct ibv_counter_attach_attr *attr)
{
	struct vb_counters *c = counters_of(counters);
	int err = vb_context_check(counters->context, VB_HANDLE_COUNTERS, c->handle, c, "counters");

	if (err)
		return err;
	vb_lock_take(&c->lock);
	if (c->rules)
		err = vb_refuse(EBUSY, VB_REASON_BUSY, "attach_counters: %u flows count already",
				c->rules);
	else if (c->points == POINTS)
		err = vb_refuse(ENOMEM, VB_REASON_ARG_LIMIT, "attach_counters: %u points exist",
				POINTS);
	else
		c->point[c->points++] =
			(struct point){.index = attr->index, .what = attr->counter_desc};
	vb_lock_release(&c->lock);
	return err;
}

/* Several points at one index add up (ibv_attach_counters_point_flow(3)). */
int vb_counters_read(struct ibv_counters *counters, uint64_t *values, uint32_t count)
{
	struct vb_counters *c = counters_of(counters);
	int err = vb_context_check(counters->context, VB_HANDLE_COUNTERS, c->handle, c, "counters");

	if (err)
		return err;
	for (uint32_t i = 0; i < count; i++)
		values[i] = 0;
	vb_lock_take(&c->lock);
	for (uint32_t i = 0; i < c->points; i++) {
		if (c->point[i].index < count)
			values[c->point[i].index] += c->point[i].what == IBV_COUNTER_PACKETS
							     ? atomic_load(&c->packets)
							     : atomic_load(&c->bytes);
	}
	vb_lock_release(&c->lock);
	return 0;
}

int vb_counters_bind(struct ibv_context *ctx, struct ibv_counters *counters)
{
	struct vb_counters *c = counters_of(counters);

	if (vb_context_check(ctx, VB_HANDLE_COUNTERS, c->handle, c, "counters"))
		return -EINVAL;
	vb_lock_take(&c->lock);
	c->rules++;
	vb_lock_release(&c->lock);
	return 0;
}

void vb_counters_unbind(struct ibv_counters *counters)
{
	struct vb_counters *c = counters_of(counters);

	vb_lock_take(&c->lock);
	c->rules--;
	vb_lock_release(&c->lock);
}

void vb_counters_count(struct ibv_counters *counters, uint32_t bytes)
{
	struct vb_counters *c = counters_of(counters);

	atomic_fetch_add_explicit(&c->packets, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->bytes, bytes, memory_order_relaxed);
}

const struct vb_object_type vb_counters_type = {
	.name = "counters",
	.limit = VB_MAX_COUNTERS,
};

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion channels. */
#ifndef VB_OBJECT_COMP_CHANNEL_H
#define VB_OBJECT_COMP_CHANNEL_H

#include <infiniband/verbs.h>

#include "object/event_queue.h"

/* channel.refcnt counts the CQs that use it (under queue.lock). A CQ raises its node on `queue`. */
struct vb_comp_channel {
	struct ibv_comp_channel channel;
	struct vb_event_queue queue;
	uint32_t generation; /* vb_fork_generation() of the process that made it */
};

static inline struct vb_comp_channel *vb_comp_channel_of(struct ibv_comp_channel *c)
{
	return (struct vb_comp_channel *)(void *)c;
}

int vb_comp_channel_create(struct ibv_context *ctx, struct ibv_comp_channel **channel);
int vb_comp_channel_destroy(struct ibv_comp_channel *channel); /* -EBUSY */
/* -ENODEV: a forked child has inherited the channel. */
int vb_comp_channel_check(const struct ibv_comp_channel *channel, const char *verb);
void vb_comp_channel_get(struct ibv_comp_channel *channel);
void vb_comp_channel_put(struct ibv_comp_channel *channel);
int vb_comp_channel_get_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
			      void **cq_context);

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion channels. */
#include "object/comp_channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "base/fork.h"
#include "base/lock.h"

int vb_comp_channel_create(struct ibv_context *ctx, struct ibv_comp_channel **channel)
{
	struct vb_comp_channel *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "no memory for a completion channel");
	err = vb_event_queue_init(&c->queue);
	if (err) {
		free(c);
		return err;
	}
	c->generation = vb_fork_generation();
	c->channel.context = ctx;
	c->channel.fd = c->queue.fd;
	*channel = &c->channel;
	return 0;
}

int vb_comp_channel_check(const struct ibv_comp_channel *channel, const char *verb)
{
	const struct vb_comp_channel *c = (const struct vb_comp_channel *)(const void *)channel;

	if (c->generation == vb_fork_generation())
		return 0;
	return vb_refuse(ENODEV, VB_REASON_FORKED, "%s: channel %d belongs to the parent process",
			 verb, channel->fd);
}

int vb_comp_channel_destroy(struct ibv_comp_channel *channel)
{
	struct vb_comp_channel *c = vb_comp_channel_of(channel);
	int users;
	int err = vb_comp_channel_check(channel, "destroy_comp_channel");

	if (err)
		return err;
	vb_mutex_take(&c->queue.lock, VB_ORDER_EVENT_QUEUE);
	users = channel->refcnt;
	vb_mutex_release(&c->queue.lock);
	if (users)
		return vb_refuse(EBUSY, VB_REASON_BUSY, "destroy_comp_channel: %d CQs use it",
				 users);
	vb_event_queue_fini(&c->queue);
	free(c);
	return 0;
}

static void change_users(struct ibv_comp_channel *channel, int by)
{
	struct vb_comp_channel *c = vb_comp_channel_of(channel);

	vb_mutex_take(&c->queue.lock, VB_ORDER_EVENT_QUEUE);
	channel->refcnt += by;
	vb_mutex_release(&c->queue.lock);
}

void vb_comp_channel_get(struct ibv_comp_channel *channel)
{
	change_users(channel, 1);
}

void vb_comp_channel_put(struct ibv_comp_channel *channel)
{
	change_users(channel, -1);
}

/*
 * The error is that of read(2) on the descriptor. EAGAIN and EINTR are no faults and get no reason.
 */
int vb_comp_channel_get_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
			      void **cq_context)
{
	struct vb_event_node event;
	int err = vb_comp_channel_check(channel, "get_cq_event");

	if (err)
		return err;
	err = vb_event_queue_take(&vb_comp_channel_of(channel)->queue, &event);

	if (err == -EAGAIN || err == -EINTR)
		return err;
	if (err)
		return vb_refuse(-err, VB_REASON_SYSTEM, "get_cq_event: descriptor %d: %s",
				 channel->fd, strerror(-err));
	*cq = event.object;
	/* Counted as fetched: destroying the CQ waits for the acknowledgement. */
	*cq_context = (*cq)->cq_context;
	return 0;
}

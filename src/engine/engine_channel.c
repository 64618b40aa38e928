/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An engine's channels: taking new ones up, waking the engines at their other ends, losing them.
 * local/receive.c takes what comes through them.
 */
#include "engine/engine_channel.h"

#include "base/list.h"
#include "engine/engine.h"
#include "engine/engines.h"
#include "engine/schedule.h"
#include "process/process.h"

uint32_t vb_engine_take_channels(struct vb_engine *e)
{
	struct vb_channel *c = vb_process_take_inbox(e);
	uint32_t channels = 0;

	for (; c; channels++) {
		struct vb_channel *next = c->next;

		vb_channel_list_add(&e->channels, c);
		c = next;
	}
	return channels;
}

void vb_engine_set_channel(struct vb_qp *qp, struct vb_channel *channel)
{
	vb_lock_assert_held(&qp->engine->lock);
	if (qp->channel == channel)
		return;
	if (qp->channel)
		VB_LIST_REMOVE(qp->channel->qps, qp, channel_next, channel_prev);
	qp->channel = channel;
	if (channel)
		VB_LIST_PUSH(channel->qps, qp, channel_next, channel_prev);
}

void vb_engine_pushed(struct vb_engine *e, struct vb_channel *channel)
{
	vb_lock_assert_held(&e->lock);
	if (channel->pushed)
		return;
	channel->pushed = true;
	channel->pushed_next = e->pushed;
	e->pushed = channel;
}

void vb_engine_flush(struct vb_engine *e)
{
	vb_lock_assert_held(&e->lock);
	while (e->pushed) {
		struct vb_channel *c = e->pushed;

		e->pushed = c->pushed_next;
		c->pushed = false;
		vb_channel_wake(c);
	}
}

static void channel_unlink(struct vb_engine *e, struct vb_channel *channel)
{
	vb_channel_list_remove(&e->channels, channel);
	for (struct vb_channel **p = &e->pushed; channel->pushed && *p; p = &(*p)->pushed_next) {
		if (*p == channel) {
			*p = channel->pushed_next;
			break;
		}
	}
}

void vb_engine_lose_channel(struct vb_engine *e, struct vb_channel *channel, bool peer_dead)
{
	channel_unlink(e, channel);
	for (uint32_t i = 0; i < e->num_links; i++) {
		if (e->link[i]->lost)
			e->link[i]->lost(e, channel, peer_dead);
	}
	vb_channel_close(e->node, channel);
}

void vb_engine_close_channels(struct vb_engine *e)
{
	vb_engine_take_channels(e);
	for (struct vb_channel *c; (c = vb_channel_list_first(&e->channels));)
		vb_engine_lose_channel(e, c, false);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The channels of an engine: joining, leaving, becoming quiet. */
#include "engine/channel_list.h"

#include "base/list.h"

void vb_channel_list_add(struct vb_channel_list *list, struct vb_channel *channel)
{
	channel->idle = 0;
	channel->listed = true;
	channel->quiet = false;
	VB_LIST_PUSH(list->busy, channel, next, prev);
	list->num_busy++;
}

struct vb_channel *vb_channel_list_take_quiet(struct vb_channel_list *list)
{
	struct vb_channel *c = list->quiet;

	vb_channel_list_remove(list, c);
	return c;
}

void vb_channel_list_put_quiet(struct vb_channel_list *list, struct vb_channel *channel)
{
	channel->listed = channel->quiet = true;
	VB_LIST_APPEND(list->quiet, list->quiet_last, channel, next, prev);
	list->num_quiet++;
}

uint32_t vb_channel_list_due(struct vb_channel_list *list)
{
	uint32_t wanted = (list->num_quiet + VB_QUIET_TURNS - 1) / VB_QUIET_TURNS;

	/*
	 * When many channels become busy, fewer are quiet; those behind them wait no longer because
	 * of that.
	 */
	if (!list->left || wanted > list->share) {
		list->share = wanted;
		list->left = list->num_quiet;
	}
	uint32_t due = list->share < list->num_quiet ? list->share : list->num_quiet;

	list->left -= due < list->left ? due : list->left;
	return due;
}

void vb_channel_list_quieten(struct vb_channel_list *list, struct vb_channel *channel)
{
	vb_channel_list_remove(list, channel);
	vb_channel_list_put_quiet(list, channel);
}

void vb_channel_list_remove(struct vb_channel_list *list, struct vb_channel *channel)
{
	if (!channel->listed)
		return;
	if (channel->quiet) {
		VB_LIST_REMOVE_FROM(list->quiet, list->quiet_last, channel, next, prev);
		list->num_quiet--;
	} else {
		VB_LIST_REMOVE(list->busy, channel, next, prev);
		list->num_busy--;
	}
	channel->listed = false;
}

struct vb_channel *vb_channel_list_first(const struct vb_channel_list *list)
{
	return list->busy ? list->busy : list->quiet;
}

/* The first quiet channel follows the last busy one. */
struct vb_channel *vb_channel_list_next(const struct vb_channel_list *list,
					const struct vb_channel *channel)
{
	if (channel->next || channel == list->quiet_last)
		return channel->next;
	return list->quiet;
}

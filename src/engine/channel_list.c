/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The channels of an engine: joining, leaving, becoming quiet. */
#include "engine/channel_list.h"

void vb_channel_list_add(struct vb_channel_list *list, struct vb_channel *channel)
{
	channel->idle = 0;
	channel->next = list->busy;
	list->busy = channel;
	list->num_busy++;
}

struct vb_channel *vb_channel_list_take_quiet(struct vb_channel_list *list)
{
	struct vb_channel *c = list->quiet;

	list->quiet = c->next;
	if (!list->quiet)
		list->quiet_last = NULL;
	list->num_quiet--;
	return c;
}

void vb_channel_list_put_quiet(struct vb_channel_list *list, struct vb_channel *channel)
{
	channel->next = NULL;
	if (list->quiet_last)
		list->quiet_last->next = channel;
	else
		list->quiet = channel;
	list->quiet_last = channel;
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

void vb_channel_list_quieten(struct vb_channel_list *list, struct vb_channel **place)
{
	struct vb_channel *c = *place;

	*place = c->next;
	list->num_busy--;
	vb_channel_list_put_quiet(list, c);
}

void vb_channel_list_remove(struct vb_channel_list *list, struct vb_channel *channel)
{
	struct vb_channel *before = NULL;

	for (struct vb_channel **p = &list->busy; *p; p = &(*p)->next) {
		if (*p == channel) {
			*p = channel->next;
			list->num_busy--;
			return;
		}
	}
	for (struct vb_channel **p = &list->quiet; *p; before = *p, p = &(*p)->next) {
		if (*p == channel) {
			*p = channel->next;
			if (list->quiet_last == channel)
				list->quiet_last = before;
			list->num_quiet--;
			return;
		}
	}
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

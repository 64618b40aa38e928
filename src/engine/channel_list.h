/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The channels of an engine, busy ones and quiet ones. A poll looks at each busy channel, and at a
 * small share of the quiet ones in turn, so that it costs no more with a thousand silent peers than
 * with a few. A slot in a quiet channel waits for VB_QUIET_TURNS polls, in the worst case twice
 * that, and makes the channel busy. A small number of channels are all busy. Before a sleep all
 * channels are looked at.
 */
#ifndef VB_ENGINE_CHANNEL_LIST_H
#define VB_ENGINE_CHANNEL_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/channel.h"

#define VB_BUSY_FEW    8u   /* so many are looked at each time, whatever they bring */
#define VB_QUIET_AFTER 256u /* looks in a row that found no slot */
#define VB_QUIET_TURNS 64u

/* All zeros: an empty list. */
struct vb_channel_list {
	struct vb_channel *busy;
	/* The next one to be looked at, and the one looked at last. */
	struct vb_channel *quiet, *quiet_last;
	uint32_t num_busy, num_quiet;
	uint32_t share; /* quiet channels for each poll, */
	uint32_t left;  /* until so many more have been looked at */
};

void vb_channel_list_add(struct vb_channel_list *list, struct vb_channel *channel);
/* The channel need not be in the list. */
void vb_channel_list_remove(struct vb_channel_list *list, struct vb_channel *channel);
/*
 * Any channel, and the one after it, until NULL. `channel` may be removed between the two calls if
 * `next` was read before.
 */
struct vb_channel *vb_channel_list_first(const struct vb_channel_list *list);
struct vb_channel *vb_channel_list_next(const struct vb_channel_list *list,
					const struct vb_channel *channel);

/* How many quiet channels to look at now, at most all of them. */
uint32_t vb_channel_list_due(struct vb_channel_list *list);
void vb_channel_list_quieten(struct vb_channel_list *list, struct vb_channel *channel);
struct vb_channel *vb_channel_list_take_quiet(struct vb_channel_list *list);
void vb_channel_list_put_quiet(struct vb_channel_list *list, struct vb_channel *channel);

/*
 * Calls look() with the channels whose turn it is, or with all. look() returns true if the channel
 * brought something, and does not change the list.
 */
static inline bool vb_channel_list_serve(struct vb_channel_list *list, bool all,
					 bool (*look)(void *arg, struct vb_channel *channel),
					 void *arg)
{
	bool worked = false;

	for (struct vb_channel *c = list->busy, *next; c; c = next) {
		next = c->next;
		if (look(arg, c)) {
			worked = true;
			c->idle = 0;
		} else if (list->num_busy > VB_BUSY_FEW && ++c->idle >= VB_QUIET_AFTER) {
			vb_channel_list_quieten(list, c);
		}
	}
	if (!list->num_quiet)
		return worked;
	for (uint32_t turns = all ? list->num_quiet : vb_channel_list_due(list); turns; turns--) {
		struct vb_channel *c = vb_channel_list_take_quiet(list);

		if (look(arg, c)) {
			worked = true;
			vb_channel_list_add(list, c);
		} else {
			vb_channel_list_put_quiet(list, c);
		}
	}
	return worked;
}

#endif

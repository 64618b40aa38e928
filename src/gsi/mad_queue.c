/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queues of MADs. */
#include "gsi/mad_queue.h"

#include <stdlib.h>

#include "base/lock.h"

void vb_mad_queue_init(struct vb_mad_queue *q, uint32_t most)
{
	pthread_mutex_init(&q->lock, NULL);
	q->first = NULL;
	q->last = &q->first;
	atomic_store(&q->count, 0);
	q->most = most;
}

struct vb_mad_item *vb_mad_item_new(const struct vb_gsi_mad *mad, uint64_t now)
{
	struct vb_mad_item *item = malloc(sizeof(*item));

	if (!item)
		return NULL;
	item->next = NULL;
	item->since = now;
	item->number = 0;
	item->tried = 0;
	item->mad = *mad;
	return item;
}

bool vb_mad_queue_put(struct vb_mad_queue *q, struct vb_mad_item *item)
{
	bool room;

	vb_mutex_take(&q->lock, VB_ORDER_MADS);
	room = atomic_load(&q->count) < q->most;
	if (room) {
		item->next = NULL;
		*q->last = item;
		q->last = &item->next;
		atomic_fetch_add(&q->count, 1);
	}
	vb_mutex_release(&q->lock);
	return room;
}

struct vb_mad_item *vb_mad_queue_take(struct vb_mad_queue *q)
{
	struct vb_mad_item *item;

	vb_mutex_take(&q->lock, VB_ORDER_MADS);
	item = q->first;
	if (item) {
		q->first = item->next;
		if (!q->first)
			q->last = &q->first;
		atomic_fetch_sub(&q->count, 1);
	}
	vb_mutex_release(&q->lock);
	return item;
}

struct vb_mad_item *vb_mad_queue_take_all(struct vb_mad_queue *q)
{
	struct vb_mad_item *all;

	vb_mutex_take(&q->lock, VB_ORDER_MADS);
	all = q->first;
	q->first = NULL;
	q->last = &q->first;
	atomic_store(&q->count, 0);
	vb_mutex_release(&q->lock);
	return all;
}

void vb_mad_queue_put_back(struct vb_mad_queue *q, struct vb_mad_item *first,
			   struct vb_mad_item **end)
{
	uint32_t count = 0;

	if (!first)
		return;
	*end = NULL;
	for (struct vb_mad_item *item = first; item; item = item->next)
		count++;
	vb_mutex_take(&q->lock, VB_ORDER_MADS);
	*end = q->first;
	if (!q->first)
		q->last = end;
	q->first = first;
	atomic_fetch_add(&q->count, count);
	vb_mutex_release(&q->lock);
}

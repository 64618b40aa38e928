/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queues of MADs, with a bound. Any thread puts in; one thread takes out. The lock is a leaf.
 */
#ifndef VB_GSI_MAD_QUEUE_H
#define VB_GSI_MAD_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gsi/gsi.h"

/* A MAD on its way through this process. */
struct vb_mad_item {
	struct vb_mad_item *next;
	uint64_t since;  /* CLOCK_MONOTONIC ns */
	uint32_t number; /* the GSI number of its receiver; 0: what the MAD says chooses it */
	uint32_t tried;  /* the number that was tried last; 0: none was */
	struct vb_gsi_mad mad;
};

struct vb_mad_queue {
	pthread_mutex_t lock;
	struct vb_mad_item *first, **last;
	_Atomic uint32_t count;
	uint32_t most;
};

/* Also for a queue whose content is another process's (fork): forgets it. */
void vb_mad_queue_init(struct vb_mad_queue *q, uint32_t most);

/* A copy of the MAD that is in no queue. NULL: no memory. */
struct vb_mad_item *vb_mad_item_new(const struct vb_gsi_mad *mad, uint64_t now);

/* False: the queue is full, and the item is still the caller's. */
bool vb_mad_queue_put(struct vb_mad_queue *q, struct vb_mad_item *item);
/* The oldest item, which is the caller's from now on. NULL: the queue is empty. */
struct vb_mad_item *vb_mad_queue_take(struct vb_mad_queue *q);
/* All of them, linked by `next`. */
struct vb_mad_item *vb_mad_queue_take_all(struct vb_mad_queue *q);
/*
 * Items that were taken, linked by `next`, become the oldest ones again, whatever the bound. `end`:
 * the `next` of the last one, or, without any, anything.
 */
void vb_mad_queue_put_back(struct vb_mad_queue *q, struct vb_mad_item *first,
			   struct vb_mad_item **end);

static inline uint32_t vb_mad_queue_count(const struct vb_mad_queue *q)
{
	return atomic_load_explicit(&q->count, memory_order_relaxed);
}

#endif

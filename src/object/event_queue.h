/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A queue of events behind one pollable descriptor: completion channels and the contexts' asynchronous events.
 *
 * The descriptor is an eventfd in semaphore mode whose value is the number of events queued, so that poll(2), epoll in both
 * modes, dup(2) and O_NONBLOCK work on it. Events are nodes embedded in their objects: raising one allocates nothing.
 */
#ifndef VB_OBJECT_EVENT_QUEUE_H
#define VB_OBJECT_EVENT_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "process/descriptor.h"

struct vb_event_node {
	struct vb_event_node *next, *prev; /* in the queue while pending > 0 */
	uint32_t pending;                  /* raised, not yet fetched */
	int type;                          /* enum ibv_event_type, or unused */
	void *object; /* the public object the event names; a port number for port events */
	uint32_t *got; /* incremented (under the queue's lock) when the event is fetched; may be NULL */
};

struct vb_event_queue {
	_Atomic int fd;       /* -1 once closed */
	struct vb_file_id id; /* what it stood for: the program may close it and use the number */
	_Atomic uint32_t readers; /* threads inside take */
	pthread_mutex_t lock;
	uint32_t orphans; /* units of events that were dropped after a reader had taken the unit */
	struct vb_event_node head; /* circular */
};

int vb_event_queue_init(struct vb_event_queue *q);
void vb_event_queue_fini(struct vb_event_queue *q);

/*
 * Closes the descriptor only: later events vanish, and threads that wait in take come back with -EBADF, which this
 * waits for (a thread blocked in read(2) is not woken by close(2)).
 */
void vb_event_queue_close(struct vb_event_queue *q);

/* One more occurrence of the node's event. Never blocks, never fails. Thread-safe. */
void vb_event_queue_raise(struct vb_event_queue *q, struct vb_event_node *node);

/* Fetches the oldest event into *copy (type, object). Blocks as read(2) on the descriptor does: -EAGAIN, -EINTR. */
int vb_event_queue_take(struct vb_event_queue *q, struct vb_event_node *copy);

/* Drops what is pending of the node, and its share of the descriptor's value; afterwards *node->got no longer changes. */
void vb_event_queue_drop(struct vb_event_queue *q, struct vb_event_node *node);

#endif

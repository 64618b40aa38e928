/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A queue of events behind one descriptor that can be polled: completion channels and the
 * asynchronous events of contexts.
 *
 * The descriptor is an eventfd in semaphore mode whose value is the number of queued events, so
 * poll(2), both modes of epoll(7), dup(2) and O_NONBLOCK work on it. Events are nodes embedded in
 * their objects: raising an event allocates nothing.
 */
#ifndef VB_OBJECT_EVENT_QUEUE_H
#define VB_OBJECT_EVENT_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/export.h"
#include "process/descriptor.h"

struct vb_event_node {
	struct vb_event_node *next, *prev; /* in the queue while pending > 0 */
	_Atomic uint32_t pending; /* raised and not yet fetched; changed under the queue's lock */
	int type;                 /* enum ibv_event_type; unused for completion channels */
	void *object; /* the public object that the event names; a port number for port events */
	/* Incremented under the queue's lock when the event is fetched; may be NULL. */
	uint32_t *got;
};

struct vb_event_queue {
	_Atomic int fd; /* -1 once closed */
	/* The file of the descriptor: the program may close it and use the number. */
	struct vb_file_id id;
	_Atomic uint32_t readers; /* threads in vb_event_queue_take() */
	pthread_mutex_t lock;
	uint32_t orphans; /* units of events that were dropped after a reader had taken the unit */
	struct vb_event_node head; /* circular */
};

VB_SHARED int vb_event_queue_init(struct vb_event_queue *q);
VB_SHARED void vb_event_queue_fini(struct vb_event_queue *q);

/*
 * Closes the descriptor only. Later events vanish. Threads that wait in vb_event_queue_take()
 * return -EBADF; the call waits for them (close(2) does not wake a thread that is blocked in
 * read(2)).
 */
VB_SHARED void vb_event_queue_close(struct vb_event_queue *q);

/*
 * The same without waking anybody: threads that wait go on waiting, as they do when another library
 * closes a descriptor. The queue must last as long as they do.
 */
VB_SHARED void vb_event_queue_shut(struct vb_event_queue *q);

/* Whether an occurrence of the node's event waits to be fetched. Takes no lock. */
static inline bool vb_event_is_pending(const struct vb_event_node *node)
{
	return atomic_load_explicit(&node->pending, memory_order_acquire) > 0;
}

/* One more occurrence of the node's event. Never blocks, never fails. Thread-safe. */
VB_SHARED void vb_event_queue_raise(struct vb_event_queue *q, struct vb_event_node *node);

/*
 * Fetches the oldest event into *copy (type, object). Blocks as read(2) on the descriptor does:
 * -EAGAIN, -EINTR.
 */
VB_SHARED int vb_event_queue_take(struct vb_event_queue *q, struct vb_event_node *copy);

/*
 * Drops the pending events of the node and their share of the descriptor's value. Afterwards
 * *node->got does not change.
 */
VB_SHARED void vb_event_queue_drop(struct vb_event_queue *q, struct vb_event_node *node);

#endif

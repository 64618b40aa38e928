/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Event queues.
 *
 * A reader takes one unit of the eventfd by a plain read(2), outside the lock, so that O_NONBLOCK, signals with and without
 * SA_RESTART, and several waiting threads behave as for any descriptor; the unit entitles it to one event. Dropping a node
 * takes its units back. When a reader got there first, it finds no event and goes back to reading.
 */
#include "device/event_queue.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/reason.h"
#include "device/descriptor.h"

int vb_event_queue_init(struct vb_event_queue *q)
{
	int err;

	memset(q, 0, sizeof(*q));
	q->head.next = &q->head;
	q->head.prev = &q->head;
	q->fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	if (q->fd < 0)
		return vb_refuse(errno, VB_REASON_SYSTEM, "eventfd for events: %s",
				 strerror(errno));
	q->fd = vb_descriptor_move_up(q->fd);
	err = pthread_mutex_init(&q->lock, NULL);
	if (err) {
		close(q->fd);
		return -err;
	}
	return 0;
}

void vb_event_queue_fini(struct vb_event_queue *q)
{
	close(q->fd);
	q->fd = -1;
	pthread_mutex_destroy(&q->lock);
}

void vb_event_queue_close(struct vb_event_queue *q)
{
	pthread_mutex_lock(&q->lock);
	if (q->fd >= 0)
		close(q->fd);
	q->fd = -1;
	pthread_mutex_unlock(&q->lock);
}

static void append(struct vb_event_queue *q, struct vb_event_node *node)
{
	node->prev = q->head.prev;
	node->next = &q->head;
	node->prev->next = node;
	q->head.prev = node;
}

static void unlink_node(struct vb_event_node *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	node->next = NULL;
	node->prev = NULL;
}

void vb_event_queue_raise(struct vb_event_queue *q, struct vb_event_node *node)
{
	const uint64_t one = 1;

	pthread_mutex_lock(&q->lock);
	if (q->fd >= 0) {
		if (node->pending++ == 0)
			append(q, node);
		/* A descriptor that the program has closed: the event waits in vain, as on an adapter. */
		if (write(q->fd, &one, sizeof(one)) < 0)
			vb_log(VB_LOG_WARN, "event descriptor %d: %s", q->fd, strerror(errno));
	}
	pthread_mutex_unlock(&q->lock);
}

/* The oldest event; an event that occurred several times goes back to the end of the queue. */
static int fetch(struct vb_event_queue *q, struct vb_event_node *copy)
{
	struct vb_event_node *node;
	int err = -EAGAIN;

	pthread_mutex_lock(&q->lock);
	node = q->head.next;
	if (node != &q->head) {
		copy->type = node->type;
		copy->object = node->object;
		unlink_node(node);
		if (--node->pending)
			append(q, node);
		if (node->got)
			(*node->got)++;
		err = 0;
	}
	pthread_mutex_unlock(&q->lock);
	return err;
}

int vb_event_queue_take(struct vb_event_queue *q, struct vb_event_node *copy)
{
	uint64_t unit;

	memset(copy, 0, sizeof(*copy));
	do {
		ssize_t n = read(q->fd, &unit, sizeof(unit));

		if (n < 0)
			return -errno;
		if (n != (ssize_t)sizeof(unit))
			return -EIO; /* the program has put something else under this number */
	} while (fetch(q, copy));
	return 0;
}

void vb_event_queue_drop(struct vb_event_queue *q, struct vb_event_node *node)
{
	pthread_mutex_lock(&q->lock);
	if (node->pending) {
		unlink_node(node);
		while (node->pending) {
			uint64_t unit;
			struct iovec iov = {.iov_base = &unit, .iov_len = sizeof(unit)};

			node->pending--;
			/* Must not block, whatever the descriptor's mode: a reader may have taken the unit already. */
			if (q->fd >= 0 && preadv2(q->fd, &iov, 1, -1, RWF_NOWAIT) < 0 &&
			    errno != EAGAIN)
				vb_log(VB_LOG_WARN, "event descriptor %d: %s", q->fd,
				       strerror(errno));
		}
	}
	pthread_mutex_unlock(&q->lock);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Event queues.
 *
 * A reader takes one unit of the eventfd by a plain read(2), outside the lock, so that O_NONBLOCK,
 * signals with and without SA_RESTART, and several waiting threads work as for any descriptor. The
 * unit entitles the reader to one event. Dropping a node takes its units back. Where a reader has
 * taken such a unit already, the next reader with a unit gives it up and reads again, so units and
 * events always match.
 */
#include "object/event_queue.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/reason.h"
#include "base/sys.h"
#include "process/descriptor.h"

#define LEAVE_NS 100000 /* interval of looking whether the readers have left */

int vb_event_queue_init(struct vb_event_queue *q)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	int err;

	if (fd < 0)
		return vb_refuse(errno, VB_REASON_SYSTEM, "eventfd for events: %s",
				 strerror(errno));
	memset(q, 0, sizeof(*q));
	q->head.next = &q->head;
	q->head.prev = &q->head;
	q->fd = vb_descriptor_move_up(fd);
	q->id = vb_file_id_of(q->fd);
	err = pthread_mutex_init(&q->lock, NULL);
	if (err)
		vb_sys_close(q->fd);
	return -err;
}

void vb_event_queue_close(struct vb_event_queue *q)
{
	const uint64_t plenty = 1u << 30; /* a unit for every thread that waits */
	int fd;

	vb_mutex_take(&q->lock, VB_ORDER_EVENT_QUEUE);
	fd = atomic_exchange(&q->fd, -1);
	vb_mutex_release(&q->lock);
	if (!vb_file_is(fd, &q->id))
		return;
	while (atomic_load(&q->readers)) {
		/*
		 * Fails if the program has closed the descriptor: its waiting threads wait for
		 * ever.
		 */
		if (vb_sys_write(fd, &plenty, sizeof(plenty)) < 0)
			break;
		vb_sys_nanosleep(&(struct timespec){.tv_nsec = LEAVE_NS});
	}
	vb_sys_close(fd);
}

void vb_event_queue_shut(struct vb_event_queue *q)
{
	int fd;

	vb_mutex_take(&q->lock, VB_ORDER_EVENT_QUEUE);
	fd = atomic_exchange(&q->fd, -1);
	vb_mutex_release(&q->lock);
	if (vb_file_is(fd, &q->id))
		vb_sys_close(fd);
}

void vb_event_queue_fini(struct vb_event_queue *q)
{
	vb_event_queue_close(q);
	pthread_mutex_destroy(&q->lock);
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

static void signal_one(const struct vb_event_queue *q)
{
	const uint64_t one = 1;
	int fd = q->fd;

	/* The event is queued but wakes no reader, as on an adapter. */
	if (!vb_file_is(fd, &q->id))
		vb_note(VB_REASON_DESCRIPTORS_GONE, "an event: descriptor %d", fd);
	else if (vb_sys_write(fd, &one, sizeof(one)) < 0)
		vb_log(VB_LOG_WARN, "event descriptor %d: %s", fd, strerror(errno));
}

void vb_event_queue_raise(struct vb_event_queue *q, struct vb_event_node *node)
{
	vb_mutex_take(&q->lock, VB_ORDER_EVENT_QUEUE);
	if (q->fd >= 0) {
		if (node->pending++ == 0)
			append(q, node);
		signal_one(q);
	}
	vb_mutex_release(&q->lock);
}

/*
 * Takes the oldest event. An event that occurred several times goes back to the end of the queue.
 */
static int fetch(struct vb_event_queue *q, struct vb_event_node *copy)
{
	struct vb_event_node *node;
	int err = -EAGAIN;

	vb_mutex_take(&q->lock, VB_ORDER_EVENT_QUEUE);
	node = q->head.next;
	if (q->orphans) {
		q->orphans--;
	} else if (node != &q->head) {
		copy->type = node->type;
		copy->object = node->object;
		unlink_node(node);
		if (--node->pending)
			append(q, node);
		if (node->got)
			(*node->got)++;
		err = 0;
	}
	vb_mutex_release(&q->lock);
	return err;
}

static void leave(void *arg)
{
	struct vb_event_queue *q = arg;

	atomic_fetch_sub(&q->readers, 1);
}

static int take_unit(struct vb_event_queue *q)
{
	uint64_t unit;
	int fd = q->fd;

	/* Closed, by the library or by the program, which may use the number again. */
	if (!vb_file_is(fd, &q->id))
		return -EBADF;
	ssize_t n = read(fd, &unit, sizeof(unit));

	if (n < 0)
		return -errno;
	return n == (ssize_t)sizeof(unit)
		       ? 0
		       : -EIO; /* the program has opened another file under this number */
}

/* Programs cancel threads that wait for events (pthread_cancel(3)). */
int vb_event_queue_take(struct vb_event_queue *q, struct vb_event_node *copy)
{
	int err;

	memset(copy, 0, sizeof(*copy));
	atomic_fetch_add(&q->readers, 1);
	pthread_cleanup_push(leave, q);
	do {
		err = take_unit(q);
	} while (!err && fetch(q, copy));
	pthread_cleanup_pop(1);
	return err;
}

/*
 * Takes a unit back. False if a reader has it, or if a kernel before 5.8 would block. Must not
 * block, whatever the descriptor's mode.
 */
static bool unsignal_one(int fd)
{
	uint64_t unit;
	struct iovec iov = {.iov_base = &unit, .iov_len = sizeof(unit)};
	ssize_t n = vb_sys_preadv2(fd, &iov, 1, -1, RWF_NOWAIT);

	return n == (ssize_t)sizeof(unit);
}

void vb_event_queue_drop(struct vb_event_queue *q, struct vb_event_node *node)
{
	vb_mutex_take(&q->lock, VB_ORDER_EVENT_QUEUE);
	if (node->pending)
		unlink_node(node);
	for (; node->pending; node->pending--) {
		if (vb_file_is(q->fd, &q->id) && !unsignal_one(q->fd))
			q->orphans++;
	}
	vb_mutex_release(&q->lock);
}

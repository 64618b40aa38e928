/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the progress thread waits for: descriptors, the doorbell, and the time of the next try. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/reason.h"
#include "base/sys.h"
#include "host/descriptor.h"
#include "host/private.h"

#define EVENTS 32

struct vb_watch {
	struct vb_source source;
	struct vb_watch *next;
	void (*fn)(void *arg);
	void *arg;
};

void vb_node_descriptors_gone(struct vb_node *node)
{
	if (atomic_exchange(&node->gone, true))
		return;
	vb_note(VB_REASON_DESCRIPTORS_GONE,
		"the program closed descriptors that it did not open: no new contacts, no direct access, polling every ms");
	vb_log(VB_LOG_WARN, "the program closed the device's descriptors; it goes on more slowly");
}

/*
 * The epoll set of the progress thread is still the library's. A set of the program is neither
 * waited for nor changed.
 */
bool vb_reactor_intact(struct vb_node *node)
{
	if (atomic_load(&node->gone))
		return false;
	if (vb_descriptor_still(node->epoll))
		return true;
	vb_node_descriptors_gone(node);
	return false;
}

int vb_node_source_add(struct vb_node *node, struct vb_source *source, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = source};

	if (!vb_reactor_intact(node))
		return -EBADF;
	if (epoll_ctl(node->epoll, EPOLL_CTL_ADD, source->fd, &ev) == 0)
		return 0;
	return -errno;
}

void vb_node_source_again(struct vb_node *node, struct vb_source *source, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = source};

	if (!atomic_load(&node->gone))
		epoll_ctl(node->epoll, EPOLL_CTL_MOD, source->fd, &ev);
}

/*
 * Removed from the set before it is closed: a forked child that keeps a copy would keep it in the
 * set.
 */
void vb_node_source_remove(struct vb_node *node, struct vb_source *source)
{
	if (source->fd < 0)
		return;
	if (vb_reactor_intact(node) && vb_descriptor_ours(source->fd))
		epoll_ctl(node->epoll, EPOLL_CTL_DEL, source->fd, NULL);
	vb_descriptor_close(source->fd);
	source->fd = -1;
}

static void doorbell_ready(struct vb_node *node, struct vb_source *source, uint32_t events)
{
	uint64_t count;

	(void)events;
	if (!vb_descriptor_ours(source->fd))
		vb_node_descriptors_gone(node);
	else if (vb_sys_read(source->fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		vb_log(VB_LOG_WARN, "doorbell: %s", strerror(errno));
	atomic_store(&node->woken, false);
	node->rang = true;
}

int vb_reactor_open(struct vb_node *node)
{
	node->epoll = vb_descriptor_adopt(epoll_create1(EPOLL_CLOEXEC));
	if (node->epoll < 0)
		return -errno;
	node->doorbell.fd = vb_descriptor_adopt(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	node->doorbell.ready = doorbell_ready;
	if (node->doorbell.fd < 0)
		return -errno;
	return vb_node_source_add(node, &node->doorbell, EPOLLIN);
}

void vb_reactor_ring(struct vb_node *node)
{
	uint64_t one = 1;

	/* Waking takes so much longer that checking the descriptor costs nothing. */
	if (!vb_descriptor_ours(node->doorbell.fd))
		vb_node_descriptors_gone(node);
	else
		(void)vb_sys_write(node->doorbell.fd, &one, sizeof(one));
}

/* A thread that was woken for and has not heard it yet will also look at this. */
void vb_node_kick(struct vb_node *node)
{
	if (atomic_load(&node->gone) || atomic_exchange(&node->woken, true))
		return;
	if (!atomic_load(&node->forked))
		vb_reactor_ring(node);
}

void vb_node_todo(struct vb_node *node)
{
	atomic_store(&node->todo, true);
	/* The progress thread looks before it sleeps. */
	if (!atomic_load(&node->held) || !pthread_equal(node->thread, pthread_self()))
		vb_node_kick(node);
}

void vb_node_retry(struct vb_node *node, int64_t delay)
{
	int64_t at = vb_node_clock() + delay;
	int64_t set = atomic_load(&node->retry_at);

	if (!set || at < set)
		atomic_store(&node->retry_at, at);
}

static void watch_ready(struct vb_node *node, struct vb_source *source, uint32_t events)
{
	struct vb_watch *w = (struct vb_watch *)source; /* its first member */

	(void)node;
	(void)events;
	w->fn(w->arg);
}

int vb_node_watch(struct vb_node *node, int fd, void (*fn)(void *arg), void *arg)
{
	struct vb_watch *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	w->source.fd = fd;
	w->source.ready = watch_ready;
	w->fn = fn;
	w->arg = arg;
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	err = vb_node_source_add(node, &w->source, EPOLLIN);
	if (!err) {
		w->next = node->watches;
		node->watches = w;
	}
	vb_mutex_release(&node->lock);
	if (err)
		free(w);
	return err;
}

void vb_reactor_wait(struct vb_node *node, int64_t ns)
{
	struct epoll_event events[EVENTS];
	int n = vb_sys_epoll_wait_ns(node->epoll, events, EVENTS, ns);

	/* EBADF: closed; EINVAL: another file has the number by now. */
	if (n < 0 && errno != EINTR)
		vb_node_descriptors_gone(node);
	node->look_owed |= n > 0;
	for (int i = 0; i < n; i++) {
		struct vb_source *source = events[i].data.ptr;

		/*
		 * An event before it in this turn may have removed it. The lock also shows what was
		 * written when it was added.
		 */
		vb_mutex_take(&node->lock, VB_ORDER_NODE);
		bool there = source->fd >= 0;

		vb_mutex_release(&node->lock);
		if (there)
			source->ready(node, source, events[i].events);
	}
}

void vb_reactor_close(struct vb_node *node)
{
	while (node->watches) {
		struct vb_watch *w = node->watches;

		node->watches = w->next;
		free(w);
	}
}

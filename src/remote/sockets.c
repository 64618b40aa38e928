/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The open sockets and the set in which they are watched. */
#include "remote/sockets.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/fork.h"
#include "base/reason.h"
#include "base/sys.h"
#include "host/descriptor.h"
#include "process/process.h"

#define EVENTS 8

static struct opened {
	_Atomic int fd; /* -1: closed */
	/* The next packet wakes the progress thread, which clears this when it has woken. */
	_Atomic bool armed;
	uint32_t buffer;
} opened[VB_UDP_FAMILIES] = {{.fd = -1}, {.fd = -1}};

static int epoll = -1; /* is in the progress thread's set */
static void (*other_event)(uint64_t tag);
static _Atomic bool rang;

static struct opened *of(unsigned int family)
{
	return &opened[family == VB_UDP_IPV4 ? 0 : 1];
}

/* In the progress thread. EPOLLONESHOT has disarmed the sockets that fired. */
static void on_event(void *arg)
{
	struct epoll_event events[EVENTS];
	int n;

	(void)arg;
	if (!vb_descriptor_still(epoll))
		return;
	n = vb_sys_epoll_wait(epoll, events, EVENTS, 0);
	for (int i = 0; i < n; i++) {
		if (events[i].data.u64 >= VB_UDP_FAMILIES) {
			other_event(events[i].data.u64);
			continue;
		}
		atomic_store(&opened[events[i].data.u64].armed, false);
		atomic_store(&rang, true);
	}
}

int vb_udp_sockets_begin(void (*event)(uint64_t tag))
{
	int err;

	if (epoll >= 0)
		return 0;
	other_event = event;
	int fd = vb_descriptor_adopt(epoll_create1(EPOLL_CLOEXEC));

	if (fd < 0)
		return vb_refuse(errno, VB_REASON_SYSTEM, "udp link: epoll_create1: %s",
				 strerror(errno));
	epoll = fd;
	err = vb_node_watch(vb_process_node_started(), fd, on_event, NULL);
	if (err) {
		epoll = -1;
		vb_descriptor_close(fd);
		return vb_refuse(-err, VB_REASON_SYSTEM, "udp link: %s", strerror(-err));
	}
	return 0;
}

int vb_udp_sockets_epoll(void)
{
	return vb_descriptor_still(epoll) ? epoll : -1;
}

/* Arms the set for the next packet. 0 or -errno. */
static int arm(struct opened *s, int fd, int operation)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT,
				    .data.u64 = (uint64_t)(s - opened)};

	atomic_store(&s->armed, true);
	return epoll_ctl(epoll, operation, fd, &event) ? -errno : 0;
}

int vb_udp_socket_set(unsigned int family, int fd, uint32_t buffer)
{
	struct opened *s = of(family);
	int err = arm(s, fd, EPOLL_CTL_ADD);

	if (err)
		return err;
	s->buffer = buffer;
	atomic_store(&s->fd, fd);
	return 0;
}

void vb_udp_socket_expect(unsigned int family, uint32_t buffer)
{
	of(family)->buffer = buffer;
}

int vb_udp_socket_replace(unsigned int family, int fd, uint32_t buffer)
{
	struct opened *s = of(family);

	s->buffer = buffer;
	atomic_store(&s->fd, fd);
	return vb_descriptor_still(epoll) ? arm(s, fd, EPOLL_CTL_ADD) : -EBADF;
}

int vb_udp_socket_take(unsigned int family)
{
	return atomic_exchange(&of(family)->fd, -1);
}

void vb_udp_socket_unwatch(int fd)
{
	epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
}

int vb_udp_socket(unsigned int family)
{
	int fd = atomic_load(&of(family)->fd);

	return vb_descriptor_still(fd) ? fd : -1;
}

int vb_udp_socket_number(unsigned int family)
{
	return atomic_load_explicit(&of(family)->fd, memory_order_relaxed);
}

uint32_t vb_udp_socket_buffer(unsigned int family)
{
	return of(family)->buffer;
}

void vb_udp_sockets_arm(void)
{
	if (epoll >= 0 && !vb_descriptor_still(epoll))
		vb_node_descriptors_gone(vb_process_node_started());
	for (unsigned int i = 0; i < VB_UDP_FAMILIES; i++) {
		struct opened *s = &opened[i];
		int fd = atomic_load(&s->fd);

		if (fd >= 0 && !vb_descriptor_still(fd))
			atomic_store(&rang, true); /* the thread that drains clears it */
		else if (fd >= 0 && !atomic_load(&s->armed))
			(void)arm(s, fd, EPOLL_CTL_MOD);
	}
}

bool vb_udp_sockets_rang(void)
{
	return atomic_load_explicit(&rang, memory_order_relaxed) && atomic_exchange(&rang, false);
}

/* In a forked child, after the node's descriptors were closed: they are the parent's. */
static void forked(void)
{
	for (unsigned int i = 0; i < VB_UDP_FAMILIES; i++) {
		memset(&opened[i], 0, sizeof(opened[i]));
		atomic_store(&opened[i].fd, -1);
	}
	epoll = -1;
	atomic_store(&rang, false);
}

VB_FORK_HOOK(.phase = VB_FORK_ROOMS, .child = forked);

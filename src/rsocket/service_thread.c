/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The service thread. */
#include "rsocket/service.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/sys.h"
#include "base/thread.h"
#include "rsocket/bell.h"
#include "rsocket/connect.h"
#include "rsocket/datagram.h"
#include "rsocket/listen.h"
#include "rsocket/table.h"

enum {
	EVENTS = 32,
	LONGEST_SLEEP_MS = 5000,
	STACK = 256 << 10,
};

/* Sockets with keepalive, by their numbers. */
struct timed {
	int *fds;
	uint32_t count, room;
};

static struct {
	pthread_mutex_t mutex;
	bool running;
	int epoll;
	int wake;
	struct timed timed;
} service = {.mutex = PTHREAD_MUTEX_INITIALIZER, .epoll = -1, .wake = -1};

static void serve(int fd)
{
	struct vb_rsocket *rs = vb_rs_get(fd);
	bool orphan;

	if (!rs) {
		/* Closed by the program, or just taken out: nobody may hear of it again and again. */
		epoll_ctl(service.epoll, EPOLL_CTL_DEL, fd, NULL);
		return;
	}
	if (rs->type == SOCK_STREAM)
		vb_rs_step(rs);
	else
		vb_datagram_serve(rs);
	orphan = rs->orphan;
	vb_rs_put(fd);
	if (orphan)
		vb_rs_discard(rs);
}

/* Sends what is due. Returns when the next one is. */
static uint64_t keep_alive(struct vb_rsocket *rs, uint64_t now)
{
	uint64_t period = (uint64_t)rs->options.keepalive_idle * 1000000000ull;

	if (!(rs->options.on & VB_RS_KEEPALIVE_ON) || vb_rs_state(rs) != VB_RS_CONNECTED || !period)
		return UINT64_MAX;
	if (rs->keepalive_at <= now) {
		if (rs->keepalive_at)
			vb_stream_keepalive(&rs->stream);
		vb_stream_progress(&rs->stream);
		rs->keepalive_at = now + period;
	}
	return rs->keepalive_at;
}

static int time_to_sleep(void)
{
	uint64_t now = vb_clock_ns(), next = now + LONGEST_SLEEP_MS * 1000000ull;

	vb_mutex_take(&service.mutex, VB_ORDER_RS_SERVICE);
	for (uint32_t i = 0; i < service.timed.count; i++) {
		struct vb_rsocket *rs = vb_rs_get(service.timed.fds[i]);
		uint64_t at = UINT64_MAX;

		if (rs) {
			at = keep_alive(rs, now);
			vb_rs_put(rs->fd);
		}
		if (at == UINT64_MAX)
			service.timed.fds[i--] = service.timed.fds[--service.timed.count];
		else if (at < next)
			next = at;
	}
	vb_mutex_release(&service.mutex);
	return (int)((next - now + 999999) / 1000000);
}

static void *run(void *arg)
{
	struct epoll_event events[EVENTS];

	(void)arg;
	for (;;) {
		int n = vb_sys_epoll_wait(service.epoll, events, EVENTS, time_to_sleep());
		uint64_t count;

		if (n < 0 && errno != EINTR)
			return NULL; /* its descriptor is gone: the program closed it */
		for (int i = 0; i < n; i++) {
			if (events[i].data.fd == service.wake)
				(void)!vb_sys_read(service.wake, &count, sizeof(count));
			else
				serve(events[i].data.fd);
		}
	}
}

/* With the mutex. */
static int start(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	int err;

	if (service.running)
		return 0;
	service.epoll = vb_rs_fd_move_up(epoll_create1(EPOLL_CLOEXEC));
	service.wake = vb_rs_fd_move_up(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	event.data.fd = service.wake;
	if (service.epoll < 0 || service.wake < 0 ||
	    epoll_ctl(service.epoll, EPOLL_CTL_ADD, service.wake, &event))
		err = -errno;
	else
		err = vb_thread_start("verbatim-rs", STACK, run, NULL);
	service.running = !err;
	if (!err)
		return 0;
	if (service.epoll >= 0)
		vb_sys_close(service.epoll);
	if (service.wake >= 0)
		vb_sys_close(service.wake);
	return err;
}

int vb_rs_service_add(struct vb_rsocket *rs)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = rs->fd};
	int err;

	if (rs->serviced)
		return 0;
	vb_mutex_take(&service.mutex, VB_ORDER_RS_SERVICE);
	err = start();
	if (!err && epoll_ctl(service.epoll, EPOLL_CTL_ADD, rs->fd, &event) && errno != EEXIST)
		err = -errno;
	vb_mutex_release(&service.mutex);
	rs->serviced = !err;
	return err;
}

void vb_rs_service_remove(struct vb_rsocket *rs)
{
	if (!rs->serviced)
		return;
	epoll_ctl(service.epoll, EPOLL_CTL_DEL, rs->fd, NULL);
	rs->serviced = false;
}

/* With the service's mutex. */
static void add_timed(int fd)
{
	struct timed *t = &service.timed;

	for (uint32_t i = 0; i < t->count; i++) {
		if (t->fds[i] == fd)
			return;
	}
	if (t->count == t->room) {
		uint32_t room = t->room ? 2 * t->room : 16;
		int *fds = realloc(t->fds, room * sizeof(*fds));

		if (!fds)
			return;
		t->fds = fds;
		t->room = room;
	}
	t->fds[t->count++] = fd;
}

void vb_rs_service_keepalive(struct vb_rsocket *rs)
{
	const uint64_t one = 1;

	if (!(rs->options.on & VB_RS_KEEPALIVE_ON) || vb_rs_state(rs) != VB_RS_CONNECTED)
		return;
	vb_mutex_take(&service.mutex, VB_ORDER_RS_SERVICE);
	rs->keepalive_at = 0;
	if (!start()) {
		add_timed(rs->fd);
		(void)!vb_sys_write(service.wake, &one, sizeof(one));
	}
	vb_mutex_release(&service.mutex);
}

void vb_rs_service_forked(void)
{
	pthread_mutex_init(&service.mutex, NULL);
	if (service.running) {
		vb_sys_close(service.epoll);
		vb_sys_close(service.wake);
	}
	service.running = false;
	service.epoll = service.wake = -1;
	service.timed.count = 0;
}

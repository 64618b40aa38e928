/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * repoll_create(3), repoll_ctl(3), repoll_wait(3): what epoll(7) is, for sockets and other
 * descriptors together. The number is a real epoll instance, in which the other descriptors are
 * registered; a second one has the wake-up descriptors of sockets. Level and edge triggered, one
 * shot.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rsocket.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/sys.h"
#include "rsocket/bell.h"
#include "rsocket/config.h"
#include "rsocket/poll.h"
#include "rsocket/table.h"
#include "rsocket/wait.h"

enum {
	WAKES = 32,        /* sockets that are woken at once; others follow */
	CHAINS_LEAST = 16, /* a power of two */
};

/* One descriptor of an instance. */
struct entry {
	struct entry *next, **place; /* of all */
	struct entry *chain;         /* of those with the same remainder */
	int fd;
	struct epoll_event wanted;
	uint64_t serial; /* of a socket; 0: another descriptor */
	uint64_t armed;  /* `serial`, while a thread sleeps */
	int wake;        /* its wake-up descriptor that is registered; -1: none */
	bool off;        /* one shot, and shot */
	bool told_in, told_out;
	uint64_t in_edge, out_edge; /* when it was told */
};

struct instance {
	struct instance *next;
	int fd;
	uint32_t users;
	pthread_mutex_t mutex;
	struct entry *entries;  /* in the order in which they are looked at */
	struct entry **by_fd;   /* chains, `chains` of them: a power of two */
	uint32_t chains, count; /* count: all entries */
	uint32_t sockets;
	int wakes; /* the epoll instance of wake-up descriptors */
};

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct instance *list;

static struct instance *get(int fd)
{
	struct instance *i;

	vb_mutex_take(&list_mutex, VB_ORDER_RS_REPOLLS);
	for (i = list; i && i->fd != fd; i = i->next)
		;
	if (i)
		i->users++;
	vb_mutex_release(&list_mutex);
	return i;
}

static void destroy(struct instance *i)
{
	struct entry *next;

	for (struct entry *e = i->entries; e; e = next) {
		next = e->next;
		free(e);
	}
	vb_sys_close(i->wakes);
	pthread_mutex_destroy(&i->mutex);
	free(i->by_fd);
	free(i);
}

static void put(struct instance *i)
{
	bool last;

	vb_mutex_take(&list_mutex, VB_ORDER_RS_REPOLLS);
	last = !--i->users;
	vb_mutex_release(&list_mutex);
	if (last)
		destroy(i);
}

/* An instance that the program closed by close(2) gives its number to another one. */
static void forget(int fd)
{
	struct instance *i = NULL;

	vb_mutex_take(&list_mutex, VB_ORDER_RS_REPOLLS);
	for (struct instance **at = &list; *at; at = &(*at)->next) {
		if ((*at)->fd == fd) {
			i = *at;
			*at = i->next;
			break;
		}
	}
	vb_mutex_release(&list_mutex);
	if (i)
		put(i);
}

VB_EXPORT int repoll_create(int size)
{
	struct instance *i;
	int fd;

	if (size <= 0)
		return (int)vb_rs_answer(-EINVAL);
	i = calloc(1, sizeof(*i));
	if (i)
		i->by_fd = calloc(CHAINS_LEAST, sizeof(*i->by_fd));
	if (!i || !i->by_fd) {
		free(i);
		return (int)vb_rs_answer(-ENOMEM);
	}
	i->chains = CHAINS_LEAST;
	i->wakes = vb_rs_fd_move_up(epoll_create1(EPOLL_CLOEXEC));
	fd = i->wakes >= 0 ? epoll_create1(EPOLL_CLOEXEC) : -1;
	if (fd < 0) {
		int err = -errno;

		if (i->wakes >= 0)
			vb_sys_close(i->wakes);
		free(i->by_fd);
		free(i);
		return (int)vb_rs_answer(err);
	}
	forget(fd);
	i->fd = fd;
	i->users = 1;
	pthread_mutex_init(&i->mutex, NULL);
	vb_mutex_take(&list_mutex, VB_ORDER_RS_REPOLLS);
	i->next = list;
	list = i;
	vb_mutex_release(&list_mutex);
	return fd;
}

static struct entry **chain_of(struct instance *i, int fd)
{
	return &i->by_fd[(uint32_t)fd & (i->chains - 1)];
}

/* Where its chain has it, or could. */
static struct entry **find(struct instance *i, int fd)
{
	struct entry **at = chain_of(i, fd);

	while (*at && (*at)->fd != fd)
		at = &(*at)->chain;
	return at;
}

/* Without memory for more, chains get longer. */
static void grow(struct instance *i)
{
	uint32_t chains = i->chains * 2;
	struct entry **by_fd = calloc(chains, sizeof(*by_fd)), **at;

	if (!by_fd)
		return;
	free(i->by_fd);
	i->by_fd = by_fd;
	i->chains = chains;
	for (struct entry *e = i->entries; e; e = e->next) {
		at = chain_of(i, e->fd);
		e->chain = *at;
		*at = e;
	}
}

static void link_entry(struct instance *i, struct entry *e)
{
	struct entry **at;

	e->next = i->entries;
	e->place = &i->entries;
	if (e->next)
		e->next->place = &e->next;
	i->entries = e;
	if (++i->count > i->chains) {
		grow(i);
		if (*find(i, e->fd)) /* it was among them */
			return;
	}
	at = chain_of(i, e->fd);
	e->chain = *at;
	*at = e;
}

static void unwatch(struct instance *i, struct entry *e)
{
	if (e->wake >= 0)
		epoll_ctl(i->wakes, EPOLL_CTL_DEL, e->wake, NULL);
	e->wake = -1;
}

static void drop(struct instance *i, struct entry **at)
{
	struct entry *e = *at;

	unwatch(i, e);
	if (e->serial)
		i->sockets--;
	i->count--;
	*at = e->chain;
	*e->place = e->next;
	if (e->next)
		e->next->place = e->place;
	free(e);
}

/* The socket of a descriptor; 0: it has none. */
static uint64_t serial_of(int fd)
{
	struct vb_rsocket *rs = vb_rs_get(fd);
	uint64_t serial = rs ? rs->serial : 0;

	if (rs)
		vb_rs_put(fd);
	return serial;
}

static int add(struct instance *i, int fd, struct epoll_event *event)
{
	struct entry **at = find(i, fd);
	uint64_t serial = serial_of(fd);
	struct entry *e;

	if (serial && *at && (*at)->serial == serial)
		return -EEXIST;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	if (!serial && epoll_ctl(i->fd, EPOLL_CTL_ADD, fd, event)) {
		free(e);
		return -errno;
	}
	/* What had this number before was closed. */
	if (*at)
		drop(i, at);
	*e = (struct entry){.fd = fd, .wanted = *event, .serial = serial, .wake = -1};
	link_entry(i, e);
	i->sockets += !!serial;
	return 0;
}

static int modify(struct instance *i, int fd, struct epoll_event *event)
{
	struct entry *e = *find(i, fd);

	if (!e || (e->serial && e->serial != serial_of(fd)))
		return -ENOENT;
	if (!e->serial && epoll_ctl(i->fd, EPOLL_CTL_MOD, fd, event))
		return -errno;
	e->wanted = *event;
	e->off = e->told_in = e->told_out = false;
	return 0;
}

static int remove_entry(struct instance *i, int fd)
{
	struct entry **at = find(i, fd);
	int err = 0;

	if (!*at)
		return -ENOENT;
	if (!(*at)->serial)
		err = epoll_ctl(i->fd, EPOLL_CTL_DEL, fd, NULL) ? -errno : 0;
	drop(i, at);
	return err;
}

VB_EXPORT int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct instance *i = get(epfd);
	int err = -EINVAL;

	if (!i)
		return (int)vb_rs_answer(-EBADF);
	vb_mutex_take(&i->mutex, VB_ORDER_RS_REPOLL);
	if (op == EPOLL_CTL_DEL)
		err = remove_entry(i, fd);
	else if (!event)
		err = -EFAULT;
	else if (op == EPOLL_CTL_ADD)
		err = add(i, fd, event);
	else if (op == EPOLL_CTL_MOD)
		err = modify(i, fd, event);
	vb_mutex_release(&i->mutex);
	put(i);
	vb_rs_bell_ring();
	return (int)vb_rs_answer(err);
}

/* An edge is told once: something came since, or a write found no room and there is some now. */
static uint32_t only_edges(struct entry *e, struct vb_rsocket *rs, uint32_t now)
{
	uint64_t in = vb_rs_in_edge(rs), out = vb_rs_out_edge(rs);
	uint32_t told = now;

	if (e->told_in && e->in_edge == in)
		told &= ~(uint32_t)(EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR);
	if (e->told_out && e->out_edge == out)
		told &= ~(uint32_t)EPOLLOUT;
	if (!(told & (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
		return 0;
	/* With one edge, all that holds is told, as the kernel does it. */
	if (now & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
		e->told_in = true;
		e->in_edge = in;
	}
	if (now & EPOLLOUT) {
		e->told_out = true;
		e->out_edge = out;
	}
	return now;
}

/* The socket of an entry, in use; NULL: it is another descriptor, off, or closed. */
static struct vb_rsocket *socket_of(const struct entry *e)
{
	struct vb_rsocket *rs = e->serial && !e->off ? vb_rs_get(e->fd) : NULL;

	if (!rs || rs->serial == e->serial)
		return rs;
	vb_rs_put(e->fd);
	return NULL;
}

static uint32_t entry_ready(struct entry *e)
{
	struct vb_rsocket *rs = socket_of(e);
	uint32_t now;

	if (!rs)
		return 0;
	now = (uint16_t)vb_rs_readiness(rs, (short)(e->wanted.events & 0xffff));
	if (e->wanted.events & EPOLLET)
		now = only_edges(e, rs, now);
	vb_rs_put(e->fd);
	if (now && e->wanted.events & EPOLLONESHOT)
		e->off = true;
	return now;
}

/* Sockets that are ready. Those behind the last one that was told come first the next time. */
static int look_at_sockets(struct instance *i, struct epoll_event *events, int most)
{
	struct entry **at = &i->entries, *first = i->entries, *last;
	int n = 0;

	while (*at && n < most) {
		uint32_t now = entry_ready(*at);

		if (now)
			events[n++] = (struct epoll_event){now, (*at)->wanted.data};
		at = &(*at)->next;
	}
	/* Turn the list, so that nobody starves. */
	if (n == most && *at && *at != first) {
		for (last = *at; last->next; last = last->next)
			;
		i->entries = *at;
		i->entries->place = &i->entries;
		*at = NULL;
		last->next = first;
		first->place = &last->next;
	}
	return n;
}

static int look_at_others(struct instance *i, struct epoll_event *events, int most)
{
	int n = vb_sys_epoll_wait(i->fd, events, most, 0);

	return n < 0 ? (errno == EINTR ? 0 : -errno) : n;
}

static int look(struct instance *i, struct epoll_event *events, int most)
{
	int n, others = 0;

	vb_mutex_take(&i->mutex, VB_ORDER_RS_REPOLL);
	n = look_at_sockets(i, events, most);
	vb_mutex_release(&i->mutex);
	if (n < most)
		others = look_at_others(i, events + n, most - n);
	return others < 0 && !n ? others : n + (others > 0 ? others : 0);
}

/* Registers the descriptor that a socket has once it is connected. */
static void watch(struct instance *i, struct entry *e, int wake)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = e->fd};

	if (e->wake == wake)
		return;
	unwatch(i, e);
	if (wake >= 0 && !epoll_ctl(i->wakes, EPOLL_CTL_ADD, wake, &event))
		e->wake = wake;
}

static void all_arm(struct instance *i)
{
	for (struct entry *e = i->entries; e; e = e->next) {
		struct vb_rsocket *rs = socket_of(e);

		if (!rs) {
			unwatch(i, e);
			continue;
		}
		if (vb_rs_has_queue(rs) && !e->armed) {
			vb_rs_arm(rs);
			e->armed = rs->serial;
			watch(i, e, vb_rs_wake_fd(rs));
		}
		vb_rs_put(e->fd);
	}
}

/* Takes the events of those whose descriptor is readable. */
static void all_woken(struct instance *i, bool slept)
{
	struct epoll_event fired[WAKES];
	int n = slept ? vb_sys_epoll_wait(i->wakes, fired, WAKES, 0) : 0;

	for (struct entry *e = i->entries; e; e = e->next) {
		struct vb_rsocket *rs = e->armed ? vb_rs_get(e->fd) : NULL;
		bool has_fired = false;

		for (int k = 0; rs && k < n && !has_fired; k++)
			has_fired = fired[k].data.fd == e->fd;
		if (rs && rs->serial == e->armed)
			vb_rs_woken(rs, has_fired);
		if (rs)
			vb_rs_put(e->fd);
		e->armed = 0;
	}
}

static int time_left(uint64_t end)
{
	uint64_t wake = vb_rs_config()->wake_ms;
	uint64_t now = vb_clock_ns(), left = now < end ? (end - now + 999999) / 1000000 : 0;

	return (int)(left < wake ? left : wake);
}

static int sleep_once(struct instance *i, struct epoll_event *events, int most, uint64_t end)
{
	struct vb_rs_bell bell;
	struct pollfd fds[3];
	bool slept = false;
	int n, err = vb_rs_bell_hold(&bell);

	vb_mutex_take(&i->mutex, VB_ORDER_RS_REPOLL);
	all_arm(i);
	vb_mutex_release(&i->mutex);
	n = err ? err : look(i, events, most);
	if (!n) {
		fds[0] = (struct pollfd){i->fd, POLLIN, 0};
		fds[1] = (struct pollfd){i->wakes, POLLIN, 0};
		fds[2] = (struct pollfd){bell.fd, POLLIN, 0};
		slept = vb_sys_poll(fds, 3, time_left(end)) >= 0;
		if (!slept)
			n = -errno;
	}
	vb_mutex_take(&i->mutex, VB_ORDER_RS_REPOLL);
	all_woken(i, slept);
	vb_mutex_release(&i->mutex);
	vb_rs_bell_leave(&bell);
	return n;
}

static int wait_for(struct instance *i, struct epoll_event *events, int most, int timeout)
{
	uint64_t start, end, spin;
	int n;

	n = look(i, events, most);
	if (n || !timeout)
		return n;
	start = vb_clock_ns();
	end = timeout < 0 ? UINT64_MAX : start + (uint64_t)timeout * 1000000ull;
	spin = i->sockets ? start + vb_rs_config()->polling_ns : 0;
	for (;;) {
		n = vb_clock_ns() < spin ? look(i, events, most) : sleep_once(i, events, most, end);
		if (n)
			return n;
		if (vb_clock_ns() >= end)
			return look(i, events, most);
	}
}

VB_EXPORT int repoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout)
{
	struct instance *i = get(epfd);
	int n;

	if (!i)
		return (int)vb_rs_answer(-EBADF);
	n = maxevents > 0 ? wait_for(i, events, maxevents, timeout) : -EINVAL;
	put(i);
	return (int)vb_rs_answer(n);
}

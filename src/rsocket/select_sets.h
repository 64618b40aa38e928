/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The sets of select(2) as an array of poll(2) and back: for rselect(3), and for the library that
 * puts rsockets in the place of sockets.
 */
#ifndef VB_RSOCKET_SELECT_SETS_H
#define VB_RSOCKET_SELECT_SETS_H

#include <poll.h>
#include <sys/select.h>

struct vb_select_sets {
	fd_set *reads, *writes, *others; /* NULL: not asked for */
};

static inline short vb_select_asked(const struct vb_select_sets *s, int fd)
{
	short events = 0;

	if (s->reads && FD_ISSET(fd, s->reads))
		events |= POLLIN;
	if (s->writes && FD_ISSET(fd, s->writes))
		events |= POLLOUT;
	if (s->others && FD_ISSET(fd, s->others))
		events |= POLLPRI;
	return events;
}

/* The descriptors below `count`, which is at most FD_SETSIZE. Returns how many there are. */
static inline nfds_t vb_select_collect(const struct vb_select_sets *s, int count,
				       struct pollfd fds[FD_SETSIZE])
{
	nfds_t n = 0;

	for (int fd = 0; fd < count; fd++) {
		short events = vb_select_asked(s, fd);

		if (events)
			fds[n++] = (struct pollfd){.fd = fd, .events = events};
	}
	return n;
}

static inline int vb_select_leave(fd_set *set, const struct pollfd *fd, short asked, short ready)
{
	if (!set || !(fd->events & asked))
		return 0;
	if (fd->revents & ready)
		return 1;
	FD_CLR(fd->fd, set);
	return 0;
}

/* What is ready stays in the sets. Returns how many bits these have; -1: a descriptor is none. */
static inline int vb_select_result(const struct vb_select_sets *s, const struct pollfd *fds,
				   nfds_t n)
{
	int bits = 0;

	for (nfds_t i = 0; i < n; i++) {
		if (fds[i].revents & POLLNVAL)
			return -1;
		bits += vb_select_leave(s->reads, &fds[i], POLLIN, POLLIN | POLLHUP | POLLERR);
		bits += vb_select_leave(s->writes, &fds[i], POLLOUT, POLLOUT | POLLERR);
		bits += vb_select_leave(s->others, &fds[i], POLLPRI, POLLPRI);
	}
	return bits;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rselect(3), by rpoll(3). */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include <rdma/rsocket.h>

#include "rsocket/socket.h"

static short asked(int fd, const fd_set *reads, const fd_set *writes, const fd_set *others)
{
	short events = 0;

	if (reads && FD_ISSET(fd, reads))
		events |= POLLIN;
	if (writes && FD_ISSET(fd, writes))
		events |= POLLOUT;
	if (others && FD_ISSET(fd, others))
		events |= POLLPRI;
	return events;
}

static nfds_t collect(struct pollfd *fds, int nfds, const fd_set *reads, const fd_set *writes,
		      const fd_set *others)
{
	nfds_t count = 0;

	for (int fd = 0; fd < nfds; fd++) {
		short events = asked(fd, reads, writes, others);

		if (events)
			fds[count++] = (struct pollfd){.fd = fd, .events = events};
	}
	return count;
}

static int leave(fd_set *set, const struct pollfd *fd, short asked_for, short ready)
{
	if (!set || !(fd->events & asked_for))
		return 0;
	if (fd->revents & ready)
		return 1;
	FD_CLR(fd->fd, set);
	return 0;
}

static int timeout_ms(const struct timeval *t)
{
	int64_t ms;

	if (!t)
		return -1;
	ms = (int64_t)t->tv_sec * 1000 + (t->tv_usec + 999) / 1000;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}

VB_EXPORT int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds,
		      struct timeval *timeout)
{
	struct pollfd fds[FD_SETSIZE];
	nfds_t count;
	int n, bits = 0;

	if (nfds < 0 || nfds > FD_SETSIZE ||
	    (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0)))
		return (int)vb_rs_answer(-EINVAL);
	count = collect(fds, nfds, readfds, writefds, exceptfds);
	n = rpoll(fds, count, timeout_ms(timeout));
	if (n < 0)
		return n;
	for (nfds_t i = 0; i < count; i++) {
		if (fds[i].revents & POLLNVAL)
			return (int)vb_rs_answer(-EBADF);
		bits += leave(readfds, &fds[i], POLLIN, POLLIN | POLLHUP | POLLERR);
		bits += leave(writefds, &fds[i], POLLOUT, POLLOUT | POLLERR);
		bits += leave(exceptfds, &fds[i], POLLPRI, POLLPRI);
	}
	return bits;
}

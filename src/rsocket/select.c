/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rselect(3), by rpoll(3). */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include <rdma/rsocket.h>

#include "rsocket/select_sets.h"
#include "rsocket/socket.h"

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
	const struct vb_select_sets sets = {readfds, writefds, exceptfds};
	struct pollfd fds[FD_SETSIZE];
	nfds_t count;
	int n;

	if (nfds < 0 || nfds > FD_SETSIZE ||
	    (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0)))
		return (int)vb_rs_answer(-EINVAL);
	count = vb_select_collect(&sets, nfds, fds);
	n = rpoll(fds, count, timeout_ms(timeout));
	if (n < 0)
		return n;
	n = vb_select_result(&sets, fds, count);
	return n < 0 ? (int)vb_rs_answer(-EBADF) : n;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* poll, ppoll, select, pselect: descriptors of both kinds in one call. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/select.h>
#include <time.h>

#include <rdma/rsocket.h>

#include "open.h"
#include "real.h"
#include "rsocket/select_sets.h"

enum { FEW = 64 };

static bool has_ours(const struct pollfd *fds, nfds_t count)
{
	for (nfds_t i = 0; i < count; i++) {
		if (fds[i].fd >= 0 && open_get(fds[i].fd).kind == FD_RSOCKET)
			return true;
	}
	return false;
}

static int poll_ours(struct pollfd *fds, nfds_t count, int timeout)
{
	struct pollfd few[FEW], *ours = few;
	int n;

	if (count > FEW) {
		ours = malloc(count * sizeof(*ours));
		if (!ours) {
			errno = ENOMEM;
			return -1;
		}
	}
	for (nfds_t i = 0; i < count; i++) {
		struct fd f = fd_get(fds[i].fd);

		ours[i] = fds[i];
		if (f.kind == FD_RSOCKET)
			ours[i].fd = f.behind;
	}
	n = rpoll(ours, count, timeout);
	for (nfds_t i = 0; i < count && n >= 0; i++)
		fds[i].revents = ours[i].revents;
	if (ours != few)
		free(ours);
	return n;
}

/* In milliseconds, rounded up. */
static int milliseconds(const struct timespec *t)
{
	if (!t)
		return -1;
	if (t->tv_sec > INT_MAX / 1000 - 1)
		return INT_MAX;
	return (int)(t->tv_sec * 1000 + (t->tv_nsec + 999999) / 1000000);
}

static int poll_masked(struct pollfd *fds, nfds_t count, int timeout, const sigset_t *mask)
{
	sigset_t before;
	int n, err;

	if (mask)
		pthread_sigmask(SIG_SETMASK, mask, &before);
	n = INSIDE(poll_ours(fds, count, timeout));
	err = errno;
	if (mask)
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = err;
	return n;
}

HOOK(int, poll, (struct pollfd * fds, nfds_t count, int timeout))
{
	if (!has_ours(fds, count))
		return REAL(poll)(fds, count, timeout);
	return poll_masked(fds, count, timeout, NULL);
}

HOOK(int, __poll_chk, (struct pollfd * fds, nfds_t count, int timeout, size_t room))
{
	if (!has_ours(fds, count))
		return REAL(__poll_chk)(fds, count, timeout, room);
	return poll_masked(fds, count, timeout, NULL);
}

HOOK(int, ppoll,
     (struct pollfd * fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask))
{
	if (!has_ours(fds, count))
		return REAL(ppoll)(fds, count, timeout, mask);
	return poll_masked(fds, count, milliseconds(timeout), mask);
}

HOOK(int, __ppoll_chk,
     (struct pollfd * fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask,
      size_t room))
{
	if (!has_ours(fds, count))
		return REAL(__ppoll_chk)(fds, count, timeout, mask, room);
	return poll_masked(fds, count, milliseconds(timeout), mask);
}

/* The descriptors of the sets; none if no socket of ours is among them. */
static nfds_t collect(const struct vb_select_sets *sets, int count, struct pollfd fds[FD_SETSIZE])
{
	nfds_t n = vb_select_collect(sets, count < FD_SETSIZE ? count : FD_SETSIZE, fds);

	return has_ours(fds, n) ? n : 0;
}

static int select_ours(const struct vb_select_sets *sets, struct pollfd *fds, nfds_t count,
		       int timeout, const sigset_t *mask)
{
	int bits;

	if (poll_masked(fds, count, timeout, mask) < 0)
		return -1;
	bits = vb_select_result(sets, fds, count);
	if (bits < 0)
		errno = EBADF;
	return bits;
}

HOOK(int, select,
     (int count, fd_set *reads, fd_set *writes, fd_set *others, struct timeval *timeout))
{
	const struct vb_select_sets sets = {reads, writes, others};
	struct pollfd fds[FD_SETSIZE];
	nfds_t n = collect(&sets, count, fds);
	struct timespec t, start, now;
	int result;

	if (!n)
		return REAL(select)(count, reads, writes, others, timeout);
	if (!timeout)
		return select_ours(&sets, fds, n, -1, NULL);
	t = (struct timespec){timeout->tv_sec, timeout->tv_usec * 1000};
	clock_gettime(CLOCK_MONOTONIC, &start);
	result = select_ours(&sets, fds, n, milliseconds(&t), NULL);
	/* Linux tells how much of the time is left. */
	clock_gettime(CLOCK_MONOTONIC, &now);
	t.tv_sec -= now.tv_sec - start.tv_sec;
	t.tv_nsec -= now.tv_nsec - start.tv_nsec;
	for (; t.tv_nsec < 0; t.tv_nsec += 1000000000)
		t.tv_sec--;
	for (; t.tv_nsec >= 1000000000; t.tv_nsec -= 1000000000)
		t.tv_sec++;
	if (t.tv_sec < 0)
		t.tv_sec = t.tv_nsec = 0;
	*timeout = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
	return result;
}

HOOK(int, pselect,
     (int count, fd_set *reads, fd_set *writes, fd_set *others, const struct timespec *timeout,
      const sigset_t *mask))
{
	const struct vb_select_sets sets = {reads, writes, others};
	struct pollfd fds[FD_SETSIZE];
	nfds_t n = collect(&sets, count, fds);

	if (!n)
		return REAL(pselect)(count, reads, writes, others, timeout, mask);
	return select_ours(&sets, fds, n, milliseconds(timeout), mask);
}

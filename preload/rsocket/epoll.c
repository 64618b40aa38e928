/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * epoll(7). An instance of the program is a real one, and stays what it is until a socket of ours is
 * added to it. Then it gets an instance of repoll_create(3) behind it, which has those sockets and
 * the real instance itself; waiting is for that one. A thread that waits at this moment is called by
 * an event, which the program does not see.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rsocket.h>

#include "open.h"
#include "real.h"

/* The data of events that are no program's. */
static const char mark_call, mark_nested;
#define CALL   ((uint64_t)(uintptr_t)&mark_call)
#define NESTED ((uint64_t)(uintptr_t)&mark_nested)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static int raw_wait(int epfd, struct epoll_event *events, int most, int timeout,
		    const sigset_t *mask)
{
	return (int)syscall(SYS_epoll_pwait, epfd, events, most, timeout, mask, _NSIG / 8);
}

/* Those who wait already look again. One shot: later ones see the instance behind. */
static void call_waiters(int epfd, int behind)
{
	int bell = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = CALL};

	if (bell < 0)
		return;
	syscall(SYS_epoll_ctl, epfd, EPOLL_CTL_ADD, bell, &event);
	fd_attach(behind, bell);
}

/* The instance behind; made for the first socket. -1 with errno. */
static int behind_of(int epfd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = NESTED};
	struct fd f;

	pthread_mutex_lock(&mutex);
	f = fd_get(epfd);
	if (f.kind != FD_EPOLL) {
		f.behind = repoll_create(1);
		if (f.behind >= 0 && !repoll_ctl(f.behind, EPOLL_CTL_ADD, epfd, &event)) {
			fd_set_kind(epfd, FD_EPOLL, f.behind);
			call_waiters(epfd, f.behind);
		} else if (f.behind >= 0) {
			syscall(SYS_close, f.behind);
			f.behind = -1;
		}
	}
	pthread_mutex_unlock(&mutex);
	return f.behind;
}

static int control(int epfd, int op, int behind, struct epoll_event *event)
{
	int instance = behind_of(epfd);

	return instance < 0 ? -1 : repoll_ctl(instance, op, behind, event);
}

/* Instances are real ones. */
HOOK(int, epoll_create, (int size))
{
	return REAL(epoll_create)(size);
}

HOOK(int, epoll_create1, (int flags))
{
	return REAL(epoll_create1)(flags);
}

HOOK(int, epoll_ctl, (int epfd, int op, int fd, struct epoll_event *event))
{
	struct fd f = fd_get(fd);

	if (f.kind == FD_FORK_ACCEPTED || f.kind == FD_FORK)
		f = open_changed(fd);
	if (f.kind != FD_RSOCKET)
		return REAL(epoll_ctl)(epfd, op, fd, event);
	return INSIDE(control(epfd, op, f.behind, event));
}

/* Puts the events of the real instance in the place of the one that told of them. */
static int unfold(int epfd, struct epoll_event *events, int n, int most)
{
	for (int i = 0; i < n; i++) {
		int more;

		if (events[i].data.u64 != NESTED)
			continue;
		events[i] = events[--n];
		more = raw_wait(epfd, events + n, most - n, 0, NULL);
		return n + (more > 0 ? more : 0);
	}
	return n;
}

static int without_call(struct epoll_event *events, int n)
{
	int kept = 0;

	for (int i = 0; i < n; i++) {
		if (events[i].data.u64 != CALL)
			events[kept++] = events[i];
	}
	return n > 0 ? kept : n;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* An instance with sockets. What is nested may turn out to be nothing; the wait then goes on. */
static int wait_both(int epfd, int behind, struct epoll_event *events, int most, int timeout)
{
	int64_t end = timeout > 0 ? now_ms() + timeout : 0;

	for (;;) {
		int n = repoll_wait(behind, events, most, timeout);

		if (n <= 0)
			return n;
		n = without_call(events, unfold(epfd, events, n, most));
		if (n || !timeout)
			return n;
		if (timeout > 0) {
			int64_t left = end - now_ms();

			timeout = left > 0 ? (int)left : 0;
		}
	}
}

static int wait_masked(int epfd, int behind, struct epoll_event *events, int most, int timeout,
		       const sigset_t *mask)
{
	sigset_t before;
	int n, err;

	if (mask)
		pthread_sigmask(SIG_SETMASK, mask, &before);
	n = INSIDE(wait_both(epfd, behind, events, most, timeout));
	err = errno;
	if (mask)
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = err;
	return n;
}

/* A wait of the real instance has ended. Whether it goes on with the one behind. */
static bool was_called(int epfd, struct epoll_event *events, int *n)
{
	int kept;

	if (*n <= 0 || fd_get(epfd).kind != FD_EPOLL)
		return false;
	kept = without_call(events, *n);
	if (kept) {
		*n = kept;
		return false;
	}
	return true;
}

HOOK(int, epoll_pwait,
     (int epfd, struct epoll_event *events, int most, int timeout, const sigset_t *mask))
{
	struct fd f = fd_get(epfd);

	if (f.kind != FD_EPOLL) {
		int n = REAL(epoll_pwait)(epfd, events, most, timeout, mask);

		if (!was_called(epfd, events, &n))
			return n;
		f = fd_get(epfd);
	}
	return wait_masked(epfd, f.behind, events, most, timeout, mask);
}

HOOK(int, epoll_wait, (int epfd, struct epoll_event *events, int most, int timeout))
{
	struct fd f = fd_get(epfd);

	if (f.kind != FD_EPOLL) {
		int n = REAL(epoll_wait)(epfd, events, most, timeout);

		if (!was_called(epfd, events, &n))
			return n;
		f = fd_get(epfd);
	}
	return wait_masked(epfd, f.behind, events, most, timeout, NULL);
}

HOOK(int, epoll_pwait2,
     (int epfd, struct epoll_event *events, int most, const struct timespec *timeout,
      const sigset_t *mask))
{
	struct fd f = fd_get(epfd);
	int ms = timeout ? (int)(timeout->tv_sec * 1000 + (timeout->tv_nsec + 999999) / 1000000)
			 : -1;

	if (f.kind != FD_EPOLL)
		return REAL(epoll_pwait2)(epfd, events, most, timeout, mask);
	return wait_masked(epfd, f.behind, events, most, ms, mask);
}

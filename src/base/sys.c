/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The system calls of base/sys.h that are more than one line. */
#include "base/sys.h"

#include <errno.h>
#include <poll.h>

#define NS_PER_S  1000000000
#define NS_PER_MS 1000000

static struct timespec timespec_of(int64_t ns)
{
	return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

ssize_t vb_sys_pwritev(int fd, const struct iovec *iov, int count, off_t at)
{
	return syscall(SYS_pwritev, fd, iov, count, at, 0l);
}

int vb_sys_poll_one(int fd, short events, int timeout_ms)
{
	struct pollfd wait = {.fd = fd, .events = events};
	struct timespec t = timespec_of((int64_t)timeout_ms * NS_PER_MS);

	return (int)syscall(SYS_ppoll, &wait, 1, &t, NULL, VB_SYS_SIGNALS);
}

int vb_sys_poll(struct pollfd *fds, unsigned int count, int timeout_ms)
{
	struct timespec t = timespec_of((int64_t)timeout_ms * NS_PER_MS);

	return (int)syscall(SYS_ppoll, fds, count, &t, NULL, VB_SYS_SIGNALS);
}

int vb_sys_epoll_wait_ns(int fd, struct epoll_event *events, int count, int64_t ns)
{
	struct timespec t = timespec_of(ns);
	int n = -1;

#ifdef SYS_epoll_pwait2
	n = (int)syscall(SYS_epoll_pwait2, fd, events, count, &t, NULL, VB_SYS_SIGNALS);
	/* ENOSYS: Linux before 5.11. EPERM: a filter that does not know the call. */
	if (n >= 0 || (errno != ENOSYS && errno != EPERM))
		return n;
#else
	(void)t;
#endif
	return vb_sys_epoll_wait(fd, events, count, (int)((ns + NS_PER_MS - 1) / NS_PER_MS));
}

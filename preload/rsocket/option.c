/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Options, names and flags. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rdma/rsocket.h>

#include "fds.h"
#include "real.h"

#define NAME_CALL(name, params, args, call)      \
	HOOK(int, name, params)                  \
	{                                        \
		int behind;                      \
                                                 \
		if (!fd_is_rsocket(fd, &behind)) \
			return REAL(name) args;  \
		return INSIDE(call);             \
	}                                        \
	_Static_assert(1, "")

NAME_CALL(getpeername, (int fd, struct sockaddr *addr, socklen_t *length), (fd, addr, length),
	  rgetpeername(behind, addr, length));
NAME_CALL(getsockname, (int fd, struct sockaddr *addr, socklen_t *length), (fd, addr, length),
	  rgetsockname(behind, addr, length));
NAME_CALL(setsockopt, (int fd, int level, int name, const void *value, socklen_t length),
	  (fd, level, name, value, length), rsetsockopt(behind, level, name, value, length));
NAME_CALL(getsockopt, (int fd, int level, int name, void *value, socklen_t *length),
	  (fd, level, name, value, length), rgetsockopt(behind, level, name, value, length));

/* A duplicate of the placeholder stands for the same socket. */
static int duplicate(int fd, int behind, int cmd, long arg)
{
	int to = (int)syscall(SYS_fcntl, fd, cmd, arg);

	if (to >= 0) {
		fd_hold(behind);
		fd_set_kind(to, FD_RSOCKET, behind);
	}
	return to;
}

static int control(int fd, int behind, int cmd, long arg)
{
	switch (cmd) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		return duplicate(fd, behind, cmd, arg);
	case F_GETFL:
	case F_SETFL:
		return rfcntl(behind, cmd, (int)arg);
	default: /* of the descriptor, as F_SETFD */
		return (int)syscall(SYS_fcntl, fd, cmd, arg);
	}
}

#define CONTROL_CALL(name)                                    \
	HOOK(int, name, (int fd, int cmd, ...))               \
	{                                                     \
		int behind;                                   \
		va_list args;                                 \
		long arg;                                     \
                                                              \
		va_start(args, cmd);                          \
		arg = va_arg(args, long);                     \
		va_end(args);                                 \
		if (!fd_is_rsocket(fd, &behind))              \
			return REAL(name)(fd, cmd, arg);      \
		return INSIDE(control(fd, behind, cmd, arg)); \
	}                                                     \
	_Static_assert(1, "")

CONTROL_CALL(fcntl);
CONTROL_CALL(fcntl64);

/* How much could be read at once, at most a look at this much of it. */
static int readable(int behind)
{
	static __thread char look[65536];
	ssize_t n = rrecv(behind, look, sizeof(look), MSG_PEEK | MSG_DONTWAIT);

	return n > 0 ? (int)n : 0;
}

static int io_control(int fd, int behind, unsigned long request, void *arg)
{
	int flags;

	switch (request) {
	case FIONBIO:
		flags = rfcntl(behind, F_GETFL);
		flags = *(int *)arg ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
		return rfcntl(behind, F_SETFL, flags);
	case FIONREAD:
		*(int *)arg = readable(behind);
		return 0;
	default:
		return (int)syscall(SYS_ioctl, fd, request, arg);
	}
}

HOOK(int, ioctl, (int fd, unsigned long request, ...))
{
	int behind;
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (!fd_is_rsocket(fd, &behind))
		return REAL(ioctl)(fd, request, arg);
	return INSIDE(io_control(fd, behind, request, arg));
}

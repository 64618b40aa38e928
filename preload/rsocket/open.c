/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sockets come and go: socket, bind, listen, accept, connect, shutdown, close, dup. */
#include "open.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rdma/rsocket.h>

#include "config.h"
#include "fork.h"
#include "real.h"

static int raw_close(int fd)
{
	return (int)syscall(SYS_close, fd);
}

void open_configure(int behind)
{
	const struct config *c = config_get();

	if (c->send_queue)
		rsetsockopt(behind, SOL_RDMA, RDMA_SQSIZE, &c->send_queue, sizeof(int));
	if (c->receive_queue)
		rsetsockopt(behind, SOL_RDMA, RDMA_RQSIZE, &c->receive_queue, sizeof(int));
	if (c->inline_bytes)
		rsetsockopt(behind, SOL_RDMA, RDMA_INLINE, &c->inline_bytes, sizeof(int));
}

/* A placeholder for a socket, which it owns from now on; -1: the socket is closed. */
static int put_behind(int behind, bool cloexec)
{
	int fd = fd_placeholder(cloexec);
	int err = errno;

	if (fd < 0) {
		INSIDE(rclose(behind));
		errno = err;
		return -1;
	}
	fd_hold(behind);
	fd_set_kind(fd, FD_RSOCKET, behind);
	return fd;
}

HOOK(int, socket, (int domain, int type, int protocol))
{
	const int base = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
	int behind;

	if ((domain != AF_INET && domain != AF_INET6) ||
	    (base != SOCK_STREAM && base != SOCK_DGRAM) || !IS_PROGRAM() ||
	    !config_takes(domain, type, protocol))
		return REAL(socket)(domain, type, protocol);
	if (config_get()->fork_mode && base == SOCK_STREAM) {
		int fd = REAL(socket)(domain, type, protocol);

		if (fd >= 0)
			fd_set_kind(fd, FD_FORK, -1);
		return fd;
	}
	behind = INSIDE(rsocket(domain, type, protocol));
	if (behind < 0)
		return REAL(socket)(domain, type, protocol);
	open_configure(behind);
	return put_behind(behind, type & SOCK_CLOEXEC);
}

HOOK(int, bind, (int fd, const struct sockaddr *addr, socklen_t length))
{
	int behind;

	if (!fd_is_rsocket(fd, &behind))
		return REAL(bind)(fd, addr, length);
	return INSIDE(rbind(behind, addr, length));
}

HOOK(int, listen, (int fd, int backlog))
{
	int behind;

	if (!fd_is_rsocket(fd, &behind))
		return REAL(listen)(fd, backlog);
	return INSIDE(rlisten(behind, backlog));
}

typedef int (*accept4_fn)(int, struct sockaddr *, socklen_t *, int);

static int accept_with(int fd, struct sockaddr *addr, socklen_t *length, int flags)
{
	struct fd f = fd_get(fd);
	int behind;

	if (f.kind == FD_FORK) {
		int child = REAL_OF(accept4, accept4_fn)(fd, addr, length, flags);

		if (child >= 0)
			fd_set_kind(child, FD_FORK_ACCEPTED, -1);
		return child;
	}
	behind = INSIDE(raccept(f.behind, addr, length));
	if (behind < 0)
		return -1;
	if (flags & SOCK_NONBLOCK)
		rfcntl(behind, F_SETFL, O_NONBLOCK);
	return put_behind(behind, flags & SOCK_CLOEXEC);
}

HOOK(int, accept, (int fd, struct sockaddr *addr, socklen_t *length))
{
	enum fd_kind kind = fd_get(fd).kind;

	if (kind != FD_RSOCKET && kind != FD_FORK)
		return REAL(accept)(fd, addr, length);
	return accept_with(fd, addr, length, 0);
}

HOOK(int, accept4, (int fd, struct sockaddr *addr, socklen_t *length, int flags))
{
	enum fd_kind kind = fd_get(fd).kind;

	if (kind != FD_RSOCKET && kind != FD_FORK)
		return REAL(accept4)(fd, addr, length, flags);
	return accept_with(fd, addr, length, flags);
}

/* An ordinary socket takes the place of the other one, with what the program had set. */
static int replace_by_ordinary(int fd, int behind, int domain)
{
	typedef int (*socket_fn)(int, int, int);
	typedef int (*setsockopt_fn)(int, int, int, const void *, socklen_t);
	static const int copied[][2] = {
		{SOL_SOCKET, SO_REUSEADDR}, {SOL_SOCKET, SO_KEEPALIVE}, {IPPROTO_TCP, TCP_NODELAY}};
	int type = SOCK_STREAM, flags = rfcntl(behind, F_GETFL), ordinary, cloexec;
	socklen_t length = sizeof(type);

	rgetsockopt(behind, SOL_SOCKET, SO_TYPE, &type, &length);
	cloexec = (int)syscall(SYS_fcntl, fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;
	ordinary = REAL_OF(socket, socket_fn)(domain, type | SOCK_CLOEXEC, 0);
	if (ordinary < 0)
		return -1;
	for (size_t i = 0; i < sizeof(copied) / sizeof(copied[0]); i++) {
		int value = 0;

		length = sizeof(value);
		if (!rgetsockopt(behind, copied[i][0], copied[i][1], &value, &length) && value)
			REAL_OF(setsockopt, setsockopt_fn)
		(ordinary, copied[i][0], copied[i][1], &value, sizeof(value));
	}
	if (flags > 0 && flags & O_NONBLOCK)
		syscall(SYS_fcntl, ordinary, F_SETFL, O_RDWR | O_NONBLOCK);
	if (syscall(SYS_dup3, ordinary, fd, cloexec) < 0) {
		raw_close(ordinary);
		return -1;
	}
	raw_close(ordinary);
	fd_take(fd);
	if (fd_release(behind))
		INSIDE(rclose(behind));
	return 0;
}

HOOK(int, connect, (int fd, const struct sockaddr *addr, socklen_t length))
{
	int behind, result, err;

	if (!fd_is_rsocket(fd, &behind))
		return REAL(connect)(fd, addr, length);
	if (addr && addr->sa_family != AF_INET && addr->sa_family != AF_INET6) {
		result = -1;
		errno = EAFNOSUPPORT;
	} else {
		result = INSIDE(rconnect(behind, addr, length));
	}
	err = errno;
	if (!result || err == EINPROGRESS || err == EISCONN || err == EALREADY || err == EINTR ||
	    err == EBADF)
		return result;
	if (addr && !replace_by_ordinary(fd, behind, addr->sa_family))
		return REAL(connect)(fd, addr, length);
	errno = err;
	return -1;
}

HOOK(int, shutdown, (int fd, int how))
{
	int behind;

	if (!fd_is_rsocket(fd, &behind))
		return REAL(shutdown)(fd, how);
	return INSIDE(rshutdown(behind, how));
}

/* The number stands for nothing any more. */
static int end(struct fd f)
{
	if (f.kind == FD_EPOLL) {
		int bell = fd_attached(f.behind);

		fd_attach(f.behind, -1);
		if (bell >= 0)
			raw_close(bell);
		return raw_close(f.behind);
	}
	if (f.kind == FD_RSOCKET && fd_release(f.behind))
		return INSIDE(rclose(f.behind));
	return 0;
}

HOOK(int, close, (int fd))
{
	struct fd f;

	if (fd_get(fd).kind == FD_OTHER)
		return REAL(close)(fd);
	/* First the meaning, then the number: another thread may get it at once. */
	f = fd_take(fd);
	end(f);
	return REAL(close)(fd);
}

/* `to` was made a duplicate of `from`; before, it was `was`. */
static void duplicated(int from, int to, struct fd was)
{
	struct fd f = fd_get(from);

	if (to < 0)
		return;
	if (f.kind == FD_RSOCKET)
		fd_hold(f.behind);
	fd_set_kind(to, f.kind == FD_EPOLL ? FD_OTHER : f.kind, f.behind);
	end(was);
}

HOOK(int, dup, (int fd))
{
	int to = REAL(dup)(fd);

	if (to >= 0 && fd_get(fd).kind != FD_OTHER)
		duplicated(fd, to, (struct fd){FD_OTHER, 0});
	return to;
}

HOOK(int, dup3, (int from, int to, int flags))
{
	struct fd was = fd_get(to);
	int result;

	if (was.kind == FD_OTHER && fd_get(from).kind == FD_OTHER)
		return REAL(dup3)(from, to, flags);
	result = REAL(dup3)(from, to, flags);
	if (result >= 0)
		duplicated(from, to, was);
	return result;
}

HOOK(int, dup2, (int from, int to))
{
	struct fd was = fd_get(to);
	int result;

	if (from == to || (was.kind == FD_OTHER && fd_get(from).kind == FD_OTHER))
		return REAL(dup2)(from, to);
	result = REAL(dup2)(from, to);
	if (result >= 0)
		duplicated(from, to, was);
	return result;
}

struct fd open_changed(int fd)
{
	struct fd f = fd_get(fd);

	if (f.kind == FD_FORK || f.kind == FD_FORK_ACCEPTED)
		fork_change(fd, f.kind == FD_FORK_ACCEPTED);
	return fd_get(fd);
}

struct fd open_get(int fd)
{
	struct fd f = fd_get(fd);

	return f.kind == FD_FORK || f.kind == FD_FORK_ACCEPTED ? open_changed(fd) : f;
}

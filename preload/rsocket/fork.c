/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The side that accepted listens at the same address, tells the other one so by four bytes of zero
 * on the TCP connection, and accepts. Only one process of the host does this at a time, because all
 * listen at one port. Who has bound a name of unix sockets has the turn. The name goes with its
 * process, and leaves nothing behind.
 */
#include "fork.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rsocket.h>

#include "open.h"
#include "real.h"

enum { PATIENCE_S = 10, NAP_NS = 1000000 };

static bool wait_readable(int fd)
{
	struct timespec t = {.tv_sec = PATIENCE_S};
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return syscall(SYS_ppoll, &p, 1, &t, NULL, 8) == 1;
}

/* The socket of the library takes the place of the TCP connection. */
static void put_in_place(int fd, int behind)
{
	int flags = (int)syscall(SYS_fcntl, fd, F_GETFL), cloexec, place;

	open_configure(behind);
	if (flags >= 0)
		rfcntl(behind, F_SETFL, flags & O_NONBLOCK);
	cloexec = (int)syscall(SYS_fcntl, fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;
	place = fd_placeholder(true);
	if (place < 0 || syscall(SYS_dup3, place, fd, cloexec) < 0) {
		rclose(behind);
	} else {
		fd_hold(behind);
		fd_set_kind(fd, FD_RSOCKET, behind);
	}
	if (place >= 0)
		syscall(SYS_close, place);
}

static int receive(int fd, uint32_t *message, int flags)
{
	return syscall(SYS_recvfrom, fd, message, sizeof(*message), flags | MSG_DONTWAIT, NULL,
		       NULL) == sizeof(*message)
		       ? 0
		       : -1;
}

/* The side that connected. */
static void change_active(int fd)
{
	struct sockaddr_storage peer;
	socklen_t length = sizeof(peer);
	uint32_t message = 1;
	int behind;

	if (!wait_readable(fd) || receive(fd, &message, MSG_PEEK) || message ||
	    syscall(SYS_getpeername, fd, &peer, &length))
		return;
	/* If no connection comes of it, both sides go on by TCP, without these bytes. */
	receive(fd, &message, 0);
	behind = rsocket(peer.ss_family, SOCK_STREAM, 0);
	if (behind < 0)
		return;
	if (rconnect(behind, (struct sockaddr *)&peer, length))
		rclose(behind);
	else
		put_in_place(fd, behind);
}

/* A descriptor that has the name. -1: another one keeps it too long, and is not waited for. */
static int take_turn(void)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int length = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1,
			      "verbatim/rsocket_fork/%u", geteuid());
	socklen_t size =
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) + (socklen_t)length;
	int fd = (int)syscall(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct timespec now, end;

	if (fd < 0)
		return -1;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += PATIENCE_S;
	while (syscall(SYS_bind, fd, &name, size)) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (errno != EADDRINUSE || now.tv_sec > end.tv_sec) {
			syscall(SYS_close, fd);
			return -1;
		}
		syscall(SYS_nanosleep, &nap, NULL);
	}
	return fd;
}

static int accept_one(int listener)
{
	struct pollfd p = {.fd = listener, .events = POLLIN};

	return rpoll(&p, 1, PATIENCE_S * 1000) == 1 ? raccept(listener, NULL, NULL) : -1;
}

/* The side that accepted. */
static void change_passive(int fd)
{
	struct sockaddr_storage own;
	socklen_t length = sizeof(own);
	uint32_t message = 0;
	int listener, turn, behind = -1, on = 1;

	if (syscall(SYS_getsockname, fd, &own, &length))
		return;
	listener = rsocket(own.ss_family, SOCK_STREAM, 0);
	if (listener < 0)
		return;
	rsetsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	turn = take_turn();
	if (!rbind(listener, (struct sockaddr *)&own, length) && !rlisten(listener, 1) &&
	    syscall(SYS_sendto, fd, &message, sizeof(message), MSG_NOSIGNAL, NULL, 0) ==
		    sizeof(message))
		behind = accept_one(listener);
	rclose(listener);
	if (turn >= 0)
		syscall(SYS_close, turn);
	if (behind >= 0)
		put_in_place(fd, behind);
}

static bool is_connected(int fd)
{
	struct sockaddr_storage peer;
	socklen_t length = sizeof(peer);

	return !syscall(SYS_getpeername, fd, &peer, &length);
}

void fork_change(int fd, bool accepted)
{
	int before = errno;

	if (!is_connected(fd)) {
		errno = before;
		return;
	}
	fd_set_kind(fd, FD_OTHER, 0);
	real_inside++;
	if (accepted)
		change_passive(fd);
	else
		change_active(fd);
	real_inside--;
	errno = before;
}

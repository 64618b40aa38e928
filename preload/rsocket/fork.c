/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The side that accepted listens at the same address, tells the other one so by four bytes of zero
 * on the TCP connection, and accepts. Only one process of the host does this at a time, because all
 * listen at one port: a named semaphore.
 */
#include "fork.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <semaphore.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rsocket.h>

#include "open.h"
#include "real.h"

enum { PATIENCE_S = 10 };

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

/* A process that died with the semaphore holds nobody up for ever. */
static sem_t *take_turn(void)
{
	sem_t *sem = sem_open("/rsocket_fork", O_CREAT | O_RDWR, 0660, 1);
	struct timespec end;

	if (sem == SEM_FAILED)
		return NULL;
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += PATIENCE_S;
	while (sem_timedwait(sem, &end) && errno == EINTR)
		;
	return sem;
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
	int listener, behind = -1, on = 1;
	sem_t *sem;

	if (syscall(SYS_getsockname, fd, &own, &length))
		return;
	listener = rsocket(own.ss_family, SOCK_STREAM, 0);
	if (listener < 0)
		return;
	rsetsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	sem = take_turn();
	if (!rbind(listener, (struct sockaddr *)&own, length) && !rlisten(listener, 1) &&
	    syscall(SYS_sendto, fd, &message, sizeof(message), MSG_NOSIGNAL, NULL, 0) ==
		    sizeof(message))
		behind = accept_one(listener);
	rclose(listener);
	if (sem) {
		sem_post(sem);
		sem_close(sem);
	}
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

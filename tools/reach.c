/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The experiment behind "can processes reach each other's memory directly". Peers of the library
 * use a /proc/self/mem that its owner opened and passed over a socket; this tries the same once
 * with a child process.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reach.h"

#define PROBE_WORD 0x7665726261746d21ULL
#define YAMA_ADMIN 2
#define NOBODY     65534

/* What the child sends: the address of its word, or the error of opening its memory. */
struct offer {
	uint64_t address;
	int error;
};

union fd_control {
	char space[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

static int say(char *why, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static int say(char *why, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, size, fmt, ap);
	va_end(ap);
	return -1;
}

static int send_offer(int sock, struct offer *offer, int fd)
{
	union fd_control control = {0};
	struct iovec iov = {.iov_base = offer, .iov_len = sizeof(*offer)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (fd >= 0) {
		struct cmsghdr *cmsg;

		msg.msg_control = control.space;
		msg.msg_controllen = sizeof(control.space);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	}
	return sendmsg(sock, &msg, 0) == (ssize_t)sizeof(*offer) ? 0 : -errno;
}

static int receive_offer(int sock, struct offer *offer, int *fd)
{
	union fd_control control = {0};
	struct iovec iov = {.iov_base = offer, .iov_len = sizeof(*offer)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space),
	};
	const struct cmsghdr *cmsg;
	ssize_t len = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);

	if (len != (ssize_t)sizeof(*offer))
		return len < 0 ? -errno : -ECONNRESET;
	cmsg = CMSG_FIRSTHDR(&msg);
	*fd = -1;
	if (cmsg && cmsg->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(cmsg), sizeof(*fd));
	return 0;
}

/*
 * The child: offers its memory, waits until it is told to go on, and answers with the content of
 * its word.
 */
static void target(int sock)
{
	static volatile uint64_t word;
	struct offer offer = {.address = (uintptr_t)&word};
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	uint64_t found;
	char go;

	if (mem < 0)
		offer.error = errno;
	if (send_offer(sock, &offer, mem) || read(sock, &go, 1) != 1)
		_exit(EXIT_FAILURE);
	found = word;
	_exit(write(sock, &found, sizeof(found)) == (ssize_t)sizeof(found) ? EXIT_SUCCESS
									   : EXIT_FAILURE);
}

/* Writes through the descriptor and asks the target for the content of its word. */
static int write_and_ask(int sock, int mem, uint64_t address, char *why, size_t size)
{
	const uint64_t word = PROBE_WORD;
	uint64_t found = 0;
	ssize_t len = pwrite(mem, &word, sizeof(word), (off_t)address);

	if (len != (ssize_t)sizeof(word))
		return say(why, size,
			   "writing through another process's memory descriptor failed: %s",
			   len < 0 ? strerror(errno) : "short count");
	if (write(sock, "g", 1) != 1 || read(sock, &found, sizeof(found)) != (ssize_t)sizeof(found))
		return say(why, size, "the other process went away");
	if (found != PROBE_WORD)
		return say(why, size, "the word that was written did not arrive");
	return 0;
}

static int probe_through(int sock, char *why, size_t size)
{
	struct offer offer;
	int mem = -1;
	int err = receive_offer(sock, &offer, &mem);

	if (err)
		return say(why, size, "no answer from the other process: %s", strerror(-err));
	if (offer.error)
		return say(why, size, "a process cannot open its own /proc/self/mem: %s",
			   strerror(offer.error));
	if (mem < 0)
		return say(why, size, "the descriptor did not arrive over the socket");
	err = write_and_ask(sock, mem, offer.address, why, size);
	close(mem);
	return err;
}

/* Cases that the kernel allows and the library refuses (docs/security.md). */
static int refused_by_rule(char *why, size_t size)
{
	FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = 0;

	if (f && fscanf(f, "%d", &scope) != 1)
		scope = 0;
	if (f)
		fclose(f);
	if (scope >= YAMA_ADMIN)
		return say(why, size, "the administrator forbids it (Yama's ptrace_scope is %d)",
			   scope);
	if (geteuid() == NOBODY || getegid() == NOBODY)
		return say(why, size, "this user is nobody, which any user may be");
	return 0;
}

int reach_probe(char *why, size_t size)
{
	int pair[2];
	pid_t child;
	int err;

	if (refused_by_rule(why, size))
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return say(why, size, "no unix sockets: %s", strerror(errno));
	child = fork();
	if (child < 0) {
		err = say(why, size, "no second process could be started: %s", strerror(errno));
	} else if (child == 0) {
		close(pair[0]);
		target(pair[1]);
	}
	close(pair[1]);
	if (child > 0)
		err = probe_through(pair[0], why, size);
	close(pair[0]);
	if (child > 0)
		waitpid(child, NULL, 0);
	return err;
}

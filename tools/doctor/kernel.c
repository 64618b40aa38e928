/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * System calls that the library uses, tried one by one. A seccomp filter may refuse a call with any
 * errno, or kill the process: each is tried in a process of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "doctor/apart.h"
#include "doctor/checks.h"
#include "doctor/finding.h"
#include "seccomp_mode.h"

#define SECONDS 5
#define BYTES   (1 << 20)
#define KILLED  (-1)

static int result(long value)
{
	return value < 0 ? errno : 0;
}

static int try_memfd(void *unused)
{
	int fd = memfd_create("verbatim-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *map;

	(void)unused;
	if (fd < 0 || ftruncate(fd, BYTES) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0)
		return errno;
	map = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return errno;
	memset(map, 1, BYTES);
	return 0;
}

static int try_unix(void *unused)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "verbatim-doctor-%d",
			 (int)getpid());

	(void)unused;
	if (fd < 0)
		return errno;
	return result(bind(fd, (struct sockaddr *)&name,
			   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) ||
				      listen(fd, 1)
			      ? -1
			      : 0);
}

static int try_netlink(void *unused)
{
	(void)unused;
	return result(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
}

static int try_udp(void *unused)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int one = 1;

	(void)unused;
	if (fd < 0)
		return errno;
	return result(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)));
}

static int try_epoll(void *unused)
{
	struct epoll_event event = {.events = EPOLLIN};
	int fd = epoll_create1(EPOLL_CLOEXEC);
	int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	(void)unused;
	if (fd < 0 || bell < 0)
		return errno;
	return result(epoll_ctl(fd, EPOLL_CTL_ADD, bell, &event) || epoll_wait(fd, &event, 1, 0) < 0
			      ? -1
			      : 0);
}

static int try_pidfd(void *unused)
{
	(void)unused;
	return result(syscall(SYS_pidfd_open, getpid(), 0));
}

static int try_membarrier(void *unused)
{
	(void)unused;
	return result(syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0));
}

static int try_vm(void *unused)
{
	char from[8] = "word", to[8] = "";
	struct iovec local = {to, sizeof(to)}, remote = {from, sizeof(from)};

	(void)unused;
	return result(syscall(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1, 0));
}

static int try_own_memory(void *unused)
{
	(void)unused;
	return result(open("/proc/self/mem", O_RDWR | O_CLOEXEC));
}

static const struct trial {
	const char *what;
	int (*try)(void *);
	bool needed;
	const char *without; /* what works otherwise, where the call is not needed */
} trials[] = {
	{"shared memory (memfd_create, seals)", try_memfd, true, NULL},
	{"named unix sockets", try_unix, true, NULL},
	{"netlink sockets", try_netlink, true, NULL},
	{"UDP sockets (SO_REUSEPORT)", try_udp, true, NULL},
	{"epoll and eventfd", try_epoll, true, NULL},
	{"pidfd_open", try_pidfd, false, "the end of a peer is noticed later"},
	{"membarrier", try_membarrier, false, "some waits take longer"},
	{"process_vm_readv", try_vm, false, "one-sided operations are copied in another way"},
	{"/proc/self/mem", try_own_memory, false,
	 "one-sided operations go through rings, with one copy more"},
};

static bool try_one(const struct trial *t, bool filtered)
{
	const char *cure =
		filtered
			? "allow it in the seccomp profile (docker run --security-opt seccomp=FILE, or =unconfined to try)"
			: "look at the limits below, at the sandbox, and at the age of the kernel";
	int err = apart_run(t->try, NULL, SECONDS);
	const char *why = err == KILLED ? "the process is killed for it" : strerror(err);

	if (!err)
		return true;
	if (t->needed)
		finding_problem(cure, "system calls: %s: %s", t->what, why);
	else
		finding_note(NULL, "system calls: %s: %s; %s", t->what, why, t->without);
	return false;
}

void check_kernel(void)
{
	bool filtered = seccomp_mode() != 0;
	bool all = true;

	for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++)
		all &= try_one(&trials[i], filtered);
	if (all)
		finding_ok("system calls: all that are needed work%s",
			   filtered ? ", with a seccomp filter" : "");
}

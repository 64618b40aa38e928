/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The kinds of files, what each holds from the start, and how a change is noticed. */
#include "procs/intruders.h"

#include "support/check.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	FIRST = 3,
	LAST = 1023,
	PENDING = 96,
	SPARE = 64,
	FILE_SIZE = 64 * 1024,
	BYTE = 0x77,
	COUNT = 5
};

enum kind {
	DISK_FILE,
	MEMORY_FILE,
	PIPE_TO_READ,
	PIPE_TO_WRITE,
	TCP,
	UDP,
	UNIX_LISTENER,
	UNIX_PAIR,
	EVENTFD,
	EPOLL,
	OWN_MEMORY,
	KINDS
};

_Static_assert((int)KINDS == (int)INTRUDERS_TURNS, "each number gets each kind");

static bool taken;
static unsigned int shift;
static int base[KINDS], other[KINDS]; /* the files that are put everywhere, and their other ends */
static struct stat facts[KINDS];

static void fill_file(int fd)
{
	char text[4096];

	memset(text, BYTE, sizeof(text));
	for (int at = 0; at < FILE_SIZE; at += (int)sizeof(text))
		CHECK_EQ(pwrite(fd, text, sizeof(text), at), sizeof(text));
}

static void check_file(int fd)
{
	char text[FILE_SIZE];
	struct stat now;

	CHECK_ZERO(fstat(fd, &now));
	CHECK_SAY(now.st_size == FILE_SIZE, "a file of the program has %lld bytes",
		  (long long)now.st_size);
	CHECK_SAY(lseek(fd, 0, SEEK_CUR) == 0, "a file of the program was read or written");
	CHECK_EQ(pread(fd, text, sizeof(text), 0), FILE_SIZE);
	for (int i = 0; i < FILE_SIZE; i++)
		CHECK_SAY(text[i] == BYTE, "a file of the program was written at %d", i);
}

static void send_pending(int fd)
{
	char text[PENDING];

	memset(text, BYTE, sizeof(text));
	CHECK_EQ(write(fd, text, sizeof(text)), PENDING);
}

static void check_unread(int fd, int expected, const char *what)
{
	int bytes = -1;

	CHECK_ZERO(ioctl(fd, FIONREAD, &bytes));
	CHECK_SAY(bytes == expected, "%s: %d bytes to be read instead of %d", what, bytes,
		  expected);
}

static void open_disk_file(void)
{
	char path[] = "/tmp/intruder-XXXXXX";

	base[DISK_FILE] = mkstemp(path);
	CHECK(base[DISK_FILE] >= 0);
	CHECK_ZERO(unlink(path));
	fill_file(base[DISK_FILE]);
	base[MEMORY_FILE] = memfd_create("intruder", 0);
	CHECK(base[MEMORY_FILE] >= 0);
	fill_file(base[MEMORY_FILE]);
}

static void open_pipes(void)
{
	int ends[2];

	CHECK_ZERO(pipe(ends));
	base[PIPE_TO_READ] = ends[0];
	other[PIPE_TO_READ] = ends[1];
	send_pending(ends[1]);
	CHECK_ZERO(pipe(ends));
	base[PIPE_TO_WRITE] = ends[1];
	other[PIPE_TO_WRITE] = ends[0];
	CHECK_ZERO(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends));
	base[UNIX_PAIR] = ends[0];
	other[UNIX_PAIR] = ends[1];
	send_pending(ends[1]);
}

/* Over the loopback interface, which must be up. */
static void open_inet(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr *addr = (struct sockaddr *)(void *)&at;
	socklen_t length = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	CHECK_ZERO(bind(listener, addr, length));
	CHECK_ZERO(listen(listener, 1));
	CHECK_ZERO(getsockname(listener, addr, &length));
	base[TCP] = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_ZERO(connect(base[TCP], addr, length));
	other[TCP] = accept(listener, NULL, NULL);
	CHECK(other[TCP] >= 0);
	CHECK_ZERO(close(listener));
	send_pending(other[TCP]);
	at.sin_port = 0;
	base[UDP] = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK_ZERO(bind(base[UDP], addr, length));
	CHECK_ZERO(getsockname(base[UDP], addr, &length));
	other[UDP] = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK_ZERO(connect(other[UDP], addr, length));
	send_pending(other[UDP]);
}

/* A connection waits to be accepted. */
static void open_listener(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	socklen_t length = sizeof(at);

	base[UNIX_LISTENER] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
	CHECK_ZERO(bind(base[UNIX_LISTENER], (struct sockaddr *)&at, sizeof(sa_family_t)));
	CHECK_ZERO(getsockname(base[UNIX_LISTENER], (struct sockaddr *)&at, &length));
	CHECK_ZERO(listen(base[UNIX_LISTENER], 8));
	other[UNIX_LISTENER] = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	CHECK_ZERO(connect(other[UNIX_LISTENER], (struct sockaddr *)&at, length));
}

/* An event that is told once waits to be told. */
static void open_anonymous(void)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};

	base[EVENTFD] = eventfd(COUNT, EFD_NONBLOCK);
	CHECK(base[EVENTFD] >= 0);
	base[EPOLL] = epoll_create1(0);
	other[EPOLL] = eventfd(1, 0);
	CHECK_ZERO(epoll_ctl(base[EPOLL], EPOLL_CTL_ADD, other[EPOLL], &event));
	base[OWN_MEMORY] = open("/proc/self/mem", O_RDWR);
	CHECK(base[OWN_MEMORY] >= 0);
}

static bool is_base(int fd)
{
	for (int k = 0; k < KINDS; k++) {
		if (fd == base[k] || (other[k] && fd == other[k]))
			return true;
	}
	return false;
}

static int kind_at(int fd)
{
	return (int)(((unsigned int)fd + shift) % KINDS);
}

void intruders_take(unsigned int turn)
{
	struct rlimit limit;

	CHECK_ZERO(getrlimit(RLIMIT_NOFILE, &limit));
	/* The checks need numbers of their own beside those that are taken. */
	if (limit.rlim_max < LAST + SPARE)
		SKIP("only %llu descriptors are allowed", (unsigned long long)limit.rlim_max);
	if (limit.rlim_cur < LAST + SPARE)
		limit.rlim_cur = LAST + SPARE;
	CHECK_ZERO(setrlimit(RLIMIT_NOFILE, &limit));
	open_disk_file();
	open_pipes();
	open_inet();
	open_listener();
	open_anonymous();
	for (int k = 0; k < KINDS; k++)
		CHECK_ZERO(fstat(base[k], &facts[k]));
	shift = turn;
	/*
	 * One system call closes every descriptor that is not the test's, as daemons do. Then the
	 * numbers are used again.
	 */
	for (int fd = FIRST; fd <= LAST; fd++) {
		if (!is_base(fd))
			CHECK_EQ(dup2(base[kind_at(fd)], fd), fd);
	}
	CHECK_ZERO(syscall(SYS_close_range, LAST + 1, ~0u, 0));
	taken = true;
}

static void check_numbers(void)
{
	struct stat now;

	for (int fd = FIRST; fd <= LAST; fd++) {
		if (is_base(fd))
			continue;
		CHECK_SAY(!fstat(fd, &now), "descriptor %d of the program was closed", fd);
		CHECK_SAY(now.st_ino == facts[kind_at(fd)].st_ino &&
				  now.st_dev == facts[kind_at(fd)].st_dev,
			  "descriptor %d of the program was replaced", fd);
	}
}

static void check_anonymous(void)
{
	struct epoll_event event;
	uint64_t count = 0;

	CHECK_EQ(read(base[EVENTFD], &count, sizeof(count)), sizeof(count));
	CHECK_SAY(count == COUNT, "an eventfd of the program has counted to %llu",
		  (unsigned long long)count);
	CHECK_EQ(write(base[EVENTFD], &count, sizeof(count)), sizeof(count));
	CHECK_SAY(epoll_wait(base[EPOLL], &event, 1, 0) == 1,
		  "an event of the program was taken from its epoll set");
	/* It is told anew after a change. */
	event.events = EPOLLIN | EPOLLET;
	CHECK_ZERO(epoll_ctl(base[EPOLL], EPOLL_CTL_MOD, other[EPOLL], &event));
}

static void check_listener(void)
{
	struct sockaddr_un at;
	socklen_t length = sizeof(at);
	int fd = accept(base[UNIX_LISTENER], NULL, NULL);

	CHECK_SAY(fd >= 0, "a connection was taken from a listener of the program");
	CHECK_ZERO(close(fd));
	CHECK_ZERO(close(other[UNIX_LISTENER]));
	CHECK_ZERO(getsockname(base[UNIX_LISTENER], (struct sockaddr *)&at, &length));
	other[UNIX_LISTENER] = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	CHECK_ZERO(connect(other[UNIX_LISTENER], (struct sockaddr *)&at, length));
}

void intruders_check(void)
{
	if (!taken)
		return;
	check_numbers();
	check_file(base[DISK_FILE]);
	check_file(base[MEMORY_FILE]);
	check_unread(base[PIPE_TO_READ], PENDING, "a pipe");
	check_unread(other[PIPE_TO_WRITE], 0, "a pipe that the program writes to");
	check_unread(base[TCP], PENDING, "a TCP connection");
	check_unread(other[TCP], 0, "the other end of a TCP connection");
	check_unread(base[UDP], PENDING, "a UDP socket");
	check_unread(base[UNIX_PAIR], PENDING, "a socket pair");
	check_unread(other[UNIX_PAIR], 0, "the other end of a socket pair");
	check_anonymous();
	check_listener();
}

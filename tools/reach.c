/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The experiment behind "can processes reach each other's memory directly". A peer of the library opens
 * the memory of another process by /proc/PID/mem; a child process tries the same once with this one's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reach.h"

#define PROBE_WORD 0x7665726261746d21ULL

static volatile uint64_t word;

static int say(char *why, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static int say(char *why, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, size, fmt, ap);
	va_end(ap);
	return -1;
}

/* The child: waits until it may, writes the word, and says which error there was. */
static void initiator(int sock, pid_t target)
{
	const uint64_t written = PROBE_WORD;
	char path[32], go;
	int error = 0;

	if (read(sock, &go, 1) != 1)
		_exit(EXIT_FAILURE);
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)target);
	int mem = open(path, O_RDWR | O_CLOEXEC);

	if (mem < 0 || pwrite(mem, &written, sizeof(written), (off_t)(uintptr_t)&word) !=
			       (ssize_t)sizeof(written))
		error = errno;
	_exit(write(sock, &error, sizeof(error)) == (ssize_t)sizeof(error) ? EXIT_SUCCESS
									   : EXIT_FAILURE);
}

/* Where only named processes may attach (Yama, PR_SET_PTRACER), the library names its peers as well. */
static int watch_it_try(int sock, pid_t child, char *why, size_t size)
{
	int error;

	prctl(PR_SET_PTRACER, (unsigned long)child, 0, 0, 0);
	if (write(sock, "g", 1) != 1 || read(sock, &error, sizeof(error)) != (ssize_t)sizeof(error))
		return say(why, size, "the other process went away");
	prctl(PR_SET_PTRACER, 0, 0, 0, 0);
	if (error)
		return say(why, size,
			   "a process cannot open the memory of its equal (/proc/PID/mem): %s",
			   strerror(error));
	if (word != PROBE_WORD)
		return say(why, size, "the word that was written did not arrive");
	return 0;
}

int reach_probe(char *why, size_t size)
{
	pid_t target = getpid(), child;
	int pair[2];
	int err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return say(why, size, "no unix sockets: %s", strerror(errno));
	child = fork();
	if (child == 0) {
		close(pair[0]);
		initiator(pair[1], target);
	}
	close(pair[1]);
	if (child < 0)
		err = say(why, size, "no second process could be started: %s", strerror(errno));
	else
		err = watch_it_try(pair[0], child, why, size);
	close(pair[0]);
	if (child > 0)
		waitpid(child, NULL, 0);
	return err;
}

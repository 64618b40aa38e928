/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What /proc tells of a process. */
#include "view/process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { START_FIELD = 22, PIECE = 16384 };

unsigned long long process_began(pid_t pid)
{
	char path[64], text[1024];
	ssize_t n;
	char *at;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	/* Where /proc is not mounted, in a chroot, only that it lives can be known. */
	if (fd < 0)
		return access("/proc/self", F_OK) && !kill(pid, 0);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	at = strrchr(text, ')');
	if (at && at[1] && at[2] == 'Z') /* it has ended, and its parent has not looked yet */
		return 0;
	for (int field = 2; at && field < START_FIELD; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

bool process_named(const char *name)
{
	char *end;
	long pid = strtol(name, &end, 10);
	unsigned long long start = *end == '.' ? strtoull(end + 1, NULL, 10) : 0;

	return pid > 0 && start && process_began((pid_t)pid) == start;
}

void process_name(pid_t pid, char *name, size_t size)
{
	snprintf(name, size, "%d.%llu", (int)pid, process_began(pid));
}

/* One string of the environment at a time; a string longer than the piece is not ours. */
bool process_has_variable(pid_t pid, const char *text)
{
	char path[64], piece[PIECE];
	size_t have = 0;
	ssize_t n;
	bool found = false;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (!found && (n = read(fd, piece + have, sizeof(piece) - have)) > 0) {
		char *begin = piece, *end;

		have += (size_t)n;
		while (!found && (end = memchr(begin, '\0', have))) {
			found = !strcmp(begin, text);
			have -= (size_t)(end + 1 - begin);
			begin = end + 1;
		}
		if (have == sizeof(piece))
			have = 0;
		memmove(piece, begin, have);
	}
	close(fd);
	return found;
}

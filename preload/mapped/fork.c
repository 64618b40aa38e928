/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Blocks are shared mappings, which a child would share with its parent. So the parent copies them
 * before it forks, each mapping into private memory of the same protection; the child moves the
 * copies to the addresses of the blocks, and the parent throws its copies away. Only pages that
 * have data are copied.
 *
 * vfork(2) and posix_spawn(3) run no handlers and need none: their child uses the parent's memory
 * until it executes another program.
 */
#include "fork.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pages.h"
#include "range.h"

struct copy {
	char *of; /* the mapping */
	char *at; /* its copy; NULL: there was no memory */
	size_t bytes;
	int prot;
};

/* Between the handlers the range is locked, so there is one of these. */
static struct {
	bool locked;
	struct range_view view;
	struct copy *copy;
	size_t count, room;
} fork_state;

static void *anonymous(size_t bytes)
{
	void *map = pages_anonymous(bytes);

	return map == MAP_FAILED ? NULL : map;
}

static bool room_for_one_more(void)
{
	size_t bytes = fork_state.room * sizeof(struct copy);
	void *more;

	if (fork_state.count < fork_state.room)
		return true;
	more = anonymous(bytes ? 2 * bytes : 65536);
	if (!more)
		return false;
	if (bytes) {
		memcpy(more, fork_state.copy, bytes);
		(void)pages_unmap(fork_state.copy, bytes);
	}
	fork_state.copy = more;
	fork_state.room = (bytes ? 2 * bytes : 65536) / sizeof(struct copy);
	return true;
}

static bool read_whole(char *to, uint64_t at, uint64_t bytes)
{
	while (bytes) {
		ssize_t n = pread(fork_state.view.fd, to, bytes, (off_t)at);

		if (n <= 0 && errno != EINTR)
			return false;
		if (n > 0) {
			to += n;
			at += (uint64_t)n;
			bytes -= (uint64_t)n;
		}
	}
	return true;
}

static bool copy_data(char *to, uint64_t from, uint64_t bytes)
{
	uint64_t end = from + bytes, at = from;
	bool done = true;

	while (done && at < end) {
		off_t data = lseek(fork_state.view.fd, (off_t)at, SEEK_DATA);
		off_t hole = data < 0 ? -1 : lseek(fork_state.view.fd, data, SEEK_HOLE);

		if (data < 0)
			return errno == ENXIO;
		if ((uint64_t)data >= end)
			break;
		if (hole < 0 || (uint64_t)hole > end)
			hole = (off_t)end;
		done = read_whole(to + ((uint64_t)data - from), (uint64_t)data,
				  (uint64_t)(hole - data));
		at = (uint64_t)hole;
	}
	return done;
}

static void copy_make(char *of, size_t bytes, int prot)
{
	char *at = anonymous(bytes);

	if (at && (!copy_data(at, (uint64_t)(of - fork_state.view.base), bytes) ||
		   pages_protect(at, bytes, prot))) {
		(void)pages_unmap(at, bytes);
		at = NULL;
	}
	fork_state.copy[fork_state.count++] = (struct copy){of, at, bytes, prot};
}

static uint64_t hexadecimal(const char **text)
{
	uint64_t n = 0;

	for (;; (*text)++) {
		char c = **text;

		if (c >= '0' && c <= '9')
			n = n * 16 + (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			n = n * 16 + (uint64_t)(c - 'a' + 10);
		else
			return n;
	}
}

#define PERMISSIONS 4 /* characters: "rwxs" */

/* A line of proc_pid_maps(5). Blocks are the shared mappings of the range. */
static bool line_judge(const char *line)
{
	const char *base = fork_state.view.base;
	uint64_t start = hexadecimal(&line), end;

	if (*line++ != '-')
		return true;
	end = hexadecimal(&line);
	if (*line++ != ' ' || strlen(line) < PERMISSIONS || start < (uintptr_t)base ||
	    end > (uintptr_t)base + fork_state.view.bytes || line[3] != 's' ||
	    range_is_kept((const char *)(uintptr_t)start))
		return true;
	if (!room_for_one_more())
		return false;
	copy_make((char *)(uintptr_t)start, (size_t)(end - start),
		  (line[0] == 'r' ? PROT_READ : 0) | (line[1] == 'w' ? PROT_WRITE : 0) |
			  (line[2] == 'x' ? PROT_EXEC : 0));
	return true;
}

/* Line by line; what is behind the first 100 bytes of one does not matter. */
static bool maps_read(int fd)
{
	static char text[65536];
	char line[128] = "";
	size_t length = 0;
	bool done = true;
	long n;

	while (done && (n = syscall(SYS_read, fd, text, sizeof(text))) > 0) {
		for (long i = 0; i < n && done; i++) {
			if (text[i] == '\n') {
				line[length] = '\0';
				done = line_judge(line);
				length = 0;
			} else if (length < 100) {
				line[length++] = text[i];
			}
		}
	}
	return done && n == 0;
}

static void say(const char *text)
{
	(void)!write(2, text, strlen(text));
}

static void before(void)
{
	int err = errno;
	long fd;

	fork_state.locked = range_lock(&fork_state.view);
	if (!fork_state.locked)
		return;
	fork_state.count = 0;
	fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0 || !maps_read((int)fd))
		say("verbatim: the blocks of mapped memory cannot be copied for a forked child\n");
	if (fd >= 0)
		(void)syscall(SYS_close, fd);
	errno = err;
}

static void in_parent(void)
{
	int err = errno;

	if (!fork_state.locked)
		return;
	for (size_t i = 0; i < fork_state.count; i++) {
		if (fork_state.copy[i].at)
			(void)pages_unmap(fork_state.copy[i].at, fork_state.copy[i].bytes);
	}
	range_unlock();
	errno = err;
}

/* What has no copy is taken away: the child must not change its parent's memory. */
static void in_child(void)
{
	int err = errno;

	if (!fork_state.locked)
		return;
	for (size_t i = 0; i < fork_state.count; i++) {
		struct copy *c = &fork_state.copy[i];

		if (c->at && !pages_move(c->at, c->bytes, c->of))
			continue;
		say("verbatim: no memory for a forked child's copy of a mapped block\n");
		(void)pages_map(c->of, c->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
				-1, 0);
	}
	range_forked();
	range_unlock();
	errno = err;
}

void fork_prepare_for(void)
{
	(void)pthread_atfork(before, in_parent, in_child);
}

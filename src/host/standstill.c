/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The states of a process's threads, as proc(5) tells them. No allocation, no cancellation point.
 */
#include "host/standstill.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sys.h"

struct entry { /* getdents64(2) */
	uint64_t inode;
	int64_t offset;
	unsigned short length;
	unsigned char type;
	char name[];
};

/* Reads a file of a thread as text. Returns its length, or -errno. */
static ssize_t thread_file(int dir, const char *thread, const char *file, char *text, size_t size)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "%.32s/%s", thread, file);
	int fd = (int)syscall(SYS_openat, dir, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	n = vb_sys_read(fd, text, size - 1);
	if (n < 0)
		n = -errno;
	vb_sys_close(fd);
	text[n < 0 ? 0 : n] = '\0';
	return n;
}

/* 'T', 'S', ...; 'X': the thread has ended; 0: unknown. */
static char state_of(int dir, const char *thread)
{
	char text[512];
	ssize_t n = thread_file(dir, thread, "stat", text, sizeof(text));

	if (n < 0)
		return n == -ENOENT || n == -ESRCH ? 'X' : 0;
	/* The name of the program may contain anything; no field behind it contains a bracket. */
	const char *behind = strrchr(text, ')');

	return behind && behind[1] == ' ' ? behind[2] : 0;
}

/*
 * A thread that stops has the state T before it gives up its processor. If it is continued in
 * between, it goes on without a context switch, and the kernel does not send it back to the begin
 * of its restartable sequence. The kernel names the function that a thread waits in only when the
 * thread is in no run queue any more (Linux 5.16 and later), and says "0" otherwise, also to a
 * process that may not look.
 */
static bool off_processor(int dir, const char *thread)
{
	char place[128] = "";

	return thread_file(dir, thread, "wchan", place, sizeof(place)) > 0 && place[0] != '0';
}

static bool still(int dir, const char *thread)
{
	char state = state_of(dir, thread);

	return state == 'Z' || state == 'X' || (state == 'T' && off_processor(dir, thread));
}

/* Asleep, stopped or ended. */
static bool off_work(int dir, const char *thread)
{
	char state = state_of(dir, thread);

	return state != 'R' && state != 'D';
}

/*
 * Judges the threads of one reading. -1: one of them is not as `is` says; otherwise how many were
 * judged.
 */
static int judge(int dir, const char *buf, long bytes, bool (*is)(int dir, const char *thread))
{
	int n = 0;

	for (long at = 0; at < bytes;) {
		const struct entry *e = (const struct entry *)(const void *)(buf + at);

		at += e->length;
		if (e->name[0] < '0' || e->name[0] > '9')
			continue;
		if (!is(dir, e->name))
			return -1;
		n++;
	}
	return n;
}

/* The threads of a process as a descriptor, or -1 with errno. */
static int threads_open(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	return vb_sys_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/*
 * Judges all threads and closes the descriptor. -1: one is not as `is` says; otherwise how many
 * are.
 */
static int judge_all(int dir, bool (*is)(int dir, const char *thread))
{
	_Alignas(8) char buf[2048];
	int found = 0, n = 0;
	long bytes;

	while ((bytes = syscall(SYS_getdents64, dir, buf, sizeof(buf))) > 0) {
		n = judge(dir, buf, bytes, is);
		if (n < 0)
			break;
		found += n;
	}
	vb_sys_close(dir);
	return n < 0 ? -1 : bytes < 0 ? 0 : found;
}

bool vb_stands_still(pid_t pid)
{
	if (pid <= 0)
		return false;
	int dir = threads_open(pid);

	/*
	 * For a process that may not be looked at, proc(5) can say as well that there is none;
	 * kill(2) tells which.
	 */
	if (dir < 0)
		return errno == ENOENT && kill(pid, 0) && errno == ESRCH;
	return judge_all(dir, still) > 0;
}

bool vb_is_at_work(pid_t pid)
{
	int dir = pid > 0 ? threads_open(pid) : -1;

	return dir >= 0 && judge_all(dir, off_work) < 0;
}

uint64_t vb_pid_namespace(void)
{
	struct stat st;
	char text[16] = "";

	/* In a /proc of another namespace this process has another number. */
	if (readlink("/proc/self", text, sizeof(text) - 1) < 0 || atoi(text) != getpid() ||
	    stat("/proc/self/ns/pid", &st))
		return 0;
	return st.st_ino;
}

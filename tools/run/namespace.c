/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Entering the namespaces. No step can be undone, so a child process tries them all first, and
 * what it meets is what is told.
 */
#include "run/namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/mounts.h"
#include "run/namespace_refused.h"

/* What came of it; a child sends it through a pipe. */
struct outcome {
	int err;
	enum namespace_step step;
	char where[64];
};

/* What a new user namespace changes, and the program is to find as it was. */
struct before {
	uid_t uid;
	gid_t gid;
	int dir;
	char dir_name[256];
	int death_signal;
	uint64_t bounds; /* capabilities that the process may ever have */
};

static void remember(struct before *before)
{
	before->uid = geteuid();
	before->gid = getegid();
	before->dir = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (!getcwd(before->dir_name, sizeof(before->dir_name)))
		before->dir_name[0] = '\0';
	prctl(PR_GET_PDEATHSIG, &before->death_signal, 0, 0, 0);
	before->bounds = 0;
	for (unsigned int cap = 0; cap < 64; cap++)
		before->bounds |= prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1 ? UINT64_C(1) << cap
									    : 0;
}

/* A working directory in what was mounted over is left for the one that is seen there now. */
static bool is_covered(const char *dir)
{
	return !strncmp(dir, "/sys", 4) || !strncmp(dir, "/dev", 4);
}

static void restore(const struct before *before)
{
	for (unsigned int cap = 0; cap < 64; cap++) {
		if (!(before->bounds >> cap & 1))
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	}
	if (before->death_signal)
		prctl(PR_SET_PDEATHSIG, before->death_signal, 0, 0, 0);
	if ((!is_covered(before->dir_name) || chdir(before->dir_name)) && before->dir >= 0 &&
	    fchdir(before->dir)) {
		/* It stays "/sys" or "/dev", as nothing else can be had. */
	}
	if (before->dir >= 0)
		close(before->dir);
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	err = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return err;
}

static int write_map(const char *path, unsigned int inside, unsigned int outside)
{
	char text[64];

	snprintf(text, sizeof(text), "%u %u 1\n", inside, outside);
	return write_file(path, text);
}

/* The ids of the user namespace that was entered, for what they are outside of it. */
static int map_ids(unsigned int uid, unsigned int uid_outside, unsigned int gid,
		   unsigned int gid_outside)
{
	/* Kernels before 3.19 have no such file, and no such condition. */
	int err = write_file("/proc/self/setgroups", "deny");

	if (err && err != -ENOENT)
		return err;
	err = write_map("/proc/self/uid_map", uid, uid_outside);
	return err ? err : write_map("/proc/self/gid_map", gid, gid_outside);
}

/* Returns what mounts_make() does, with modes of new directories as they are asked for. */
static int make_mounts(const char *view, struct outcome *outcome, bool sealed)
{
	const char *where = "";
	mode_t mask = umask(0);
	int err = mounts_make(view, &where, sealed);

	umask(mask);
	snprintf(outcome->where, sizeof(outcome->where), "%s", where);
	return err;
}

/* 1: this process may not mount, and nothing was done. */
static int enter_privileged(const char *view, struct outcome *outcome)
{
	if (unshare(CLONE_NEWNS))
		return 1;
	outcome->step = NAMESPACE_MOUNT;
	return make_mounts(view, outcome, false);
}

static int enter_as_user(const struct before *before, const char *view, struct outcome *outcome)
{
	int err;

	outcome->step = NAMESPACE_CREATE;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return -errno;
	outcome->step = NAMESPACE_MAP;
	err = map_ids(0, before->uid, 0, before->gid);
	if (err)
		return err;
	outcome->step = NAMESPACE_MOUNT;
	err = make_mounts(view, outcome, true);
	if (err)
		return err;
	/* The second level: the ids as before. The capabilities of it end at execve(2). */
	outcome->step = NAMESPACE_CREATE;
	if (unshare(CLONE_NEWUSER))
		return -errno;
	outcome->step = NAMESPACE_MAP;
	return map_ids(before->uid, 0, before->gid, 0);
}

static int enter(const char *view, struct outcome *outcome)
{
	struct before before;
	int err;

	memset(outcome, 0, sizeof(*outcome));
	remember(&before);
	err = enter_privileged(view, outcome);
	if (err == 1)
		err = enter_as_user(&before, view, outcome);
	restore(&before);
	outcome->err = err;
	return err;
}

/* What a child process meets; the namespaces go with it. */
static void attempt(const char *view, struct outcome *outcome)
{
	int ends[2];
	pid_t child;

	outcome->err = -EAGAIN;
	if (pipe2(ends, O_CLOEXEC)) {
		outcome->err = -errno;
		return;
	}
	child = fork();
	if (child == 0) {
		enter(view, outcome);
		_exit(write(ends[1], outcome, sizeof(*outcome)) != (ssize_t)sizeof(*outcome));
	}
	close(ends[1]);
	if (child < 0 || read(ends[0], outcome, sizeof(*outcome)) != (ssize_t)sizeof(*outcome))
		outcome->err = -EAGAIN;
	close(ends[0]);
	if (child > 0)
		waitpid(child, NULL, 0);
}

int namespace_enter(const char *view, char *why, size_t size)
{
	struct outcome outcome;

	memset(&outcome, 0, sizeof(outcome));
	attempt(view, &outcome);
	if (!outcome.err)
		enter(view, &outcome);
	if (outcome.err)
		namespace_refused(why, size, outcome.step, -outcome.err, outcome.where);
	return outcome.err;
}

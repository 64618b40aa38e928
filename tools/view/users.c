/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The processes that use a view. */
#include "view/users.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/runtime_dir.h"
#include "view/counters_show.h"
#include "view/process.h"
#include "view/tree.h"
#include "view/view.h"
#include "view/why.h"

#define FOLDER ".users"

static const char *folder_of(const char *dir, char *path, size_t size)
{
	return tree_path(path, size, "%s/" FOLDER, dir);
}

int view_users_add(const char *dir)
{
	char folder[PATH_MAX], name[64], path[PATH_MAX + 64];
	int err = vb_private_dir(folder_of(dir, folder, sizeof(folder)));
	int fd;

	if (err)
		return view_fail(err, "cannot use %s", folder);
	process_name(getpid(), name, sizeof(name));
	fd = open(tree_path(path, sizeof(path), "%s/%s", folder, name),
		  O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
	if (fd < 0)
		return view_fail(-errno, "cannot make %s", path);
	close(fd);
	return 0;
}

/* The process may end and its number be used again before this: that user is found to be none. */
static void add(struct view_users *u, pid_t pid, unsigned long long start)
{
	int fd = u->count < VIEW_USERS_SEEN ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

	if (fd >= 0 && process_began(pid) != start) {
		close(fd);
		return;
	}
	if (fd < 0) {
		u->others |= process_began(pid) == start; /* as where there are no pidfds */
		return;
	}
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	u->fd[u->count++] = fd;
}

/* Names of processes that have ended are removed. */
static void find_named(const char *dir, struct view_users *u)
{
	char path[PATH_MAX];
	DIR *folder = opendir(folder_of(dir, path, sizeof(path)));

	for (struct dirent *e = folder ? readdir(folder) : NULL; e; e = readdir(folder)) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (pid <= 0)
			continue;
		if (process_named(e->d_name))
			add(u, pid, process_began(pid));
		else
			unlinkat(dirfd(folder), e->d_name, 0);
	}
	if (folder)
		closedir(folder);
}

static void find_started(const char *dir, struct view_users *u)
{
	char variable[PATH_MAX + sizeof(VIEW_VARIABLE)];
	DIR *proc = opendir("/proc");
	struct stat st;

	tree_path(variable, sizeof(variable), VIEW_VARIABLE "=%s", dir);
	for (struct dirent *e = proc ? readdir(proc) : NULL; e && u->count < VIEW_USERS_SEEN;
	     e = readdir(proc)) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (pid <= 0 || pid == getpid() || fstatat(dirfd(proc), e->d_name, &st, 0) ||
		    st.st_uid != geteuid())
			continue;
		unsigned long long start = process_began(pid);

		if (start && process_has_variable(pid, variable))
			add(u, pid, start);
	}
	if (proc)
		closedir(proc);
}

void view_users_find(const char *dir, struct view_users *u)
{
	*u = (struct view_users){0};
	find_named(dir, u);
	if (!u->count)
		find_started(dir, u);
	u->others |= counters_fold(dir);
}

void view_users_close(struct view_users *u)
{
	for (int i = 0; i < u->count; i++)
		close(u->fd[i]);
	u->count = 0;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Locks of a view. */
#include "view/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "view/tree.h"

enum { STEP_MS = 2, NS_PER_MS = 1000000 };

bool view_lock_holds(int fd, const char *dir, const char *name)
{
	char path[PATH_MAX];
	struct stat one, two;

	return !fstat(fd, &one) &&
	       !lstat(tree_path(path, sizeof(path), "%s/%s", dir, name), &two) &&
	       one.st_ino == two.st_ino && one.st_dev == two.st_dev;
}

/* One attempt. */
static int take(const char *dir, const char *name)
{
	char path[PATH_MAX];
	int fd = open(tree_path(path, sizeof(path), "%s/%s", dir, name),
		      O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
	int err;

	if (fd < 0)
		return -errno;
	err = flock(fd, LOCK_EX | LOCK_NB) ? -errno : 0;
	/* The former holder may have removed the view with the file. */
	if (!err && !view_lock_holds(fd, dir, name))
		err = -EWOULDBLOCK;
	if (!err)
		return fd;
	close(fd);
	return err;
}

int view_lock(const char *dir, const char *name, int wait_ms)
{
	const struct timespec step = {0, STEP_MS * NS_PER_MS};
	int fd = take(dir, name);

	for (; fd == -EWOULDBLOCK && wait_ms > 0; wait_ms -= STEP_MS) {
		nanosleep(&step, NULL);
		fd = take(dir, name);
	}
	return fd;
}

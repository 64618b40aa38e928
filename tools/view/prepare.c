/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The view of a user and network namespace. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/runtime_dir.h"
#include "view/file_size.h"
#include "view/keeper.h"
#include "view/lock.h"
#include "view/patterns.h"
#include "view/tree.h"
#include "view/users.h"
#include "view/view.h"
#include "view/why.h"
#include "view/write.h"

enum { WAIT_MS = 5000, TRIES = 5 };

/* Where /proc is missing all namespaces are one. */
static unsigned long network_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/net", &st) ? 0 : (unsigned long)st.st_ino;
}

static int name_view(char *dir, size_t size)
{
	char runtime[PATH_MAX];
	int err = vb_runtime_dir(runtime, sizeof(runtime));
	int n;

	if (err)
		return view_fail(err, "no directory for the view (%s)", runtime);
	n = snprintf(dir, size, "%s/view-%lu", runtime, network_namespace());
	return (size_t)n < size ? 0 : view_fail(-ENAMETOOLONG, "the view in %s", runtime);
}

/*
 * Under the writer's lock. The keeper comes first: if this process is killed from then on, nothing
 * is left behind.
 */
static int fill(const char *dir)
{
	int err = view_users_add(dir);

	if (!err)
		err = keeper_start(dir);
	if (!err)
		err = view_patterns_add(dir);
	if (!err)
		err = view_write_locked(dir);
	return err;
}

/* -ENOENT: a keeper has removed the view, or its parent, meanwhile. */
static int attempt(char *dir, size_t size)
{
	int err = name_view(dir, size);
	int lock;

	if (err)
		return err;
	err = vb_private_dir(dir);
	if (err)
		return view_fail(err, "cannot use %s", dir);
	lock = view_lock(dir, VIEW_WRITER, WAIT_MS);
	if (lock < 0)
		return view_fail(lock, "cannot lock %s", dir);
	err = fill(dir);
	close(lock);
	return err;
}

int view_prepare(char *dir, size_t size)
{
	char runtime[PATH_MAX];
	struct sigaction former;
	int err = -ENOENT;

	file_size_begin(&former);
	for (int i = 0; i < TRIES && err == -ENOENT; i++)
		err = attempt(dir, size);
	file_size_end(&former);
	if (err)
		return err;
	tree_path(runtime, sizeof(runtime), "%.*s", (int)(strrchr(dir, '/') - dir), dir);
	keeper_sweep(runtime);
	return 0;
}

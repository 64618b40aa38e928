/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Removing views that nobody uses any more. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "view/keeper.h"
#include "view/keeper_end.h"
#include "view/lock.h"
#include "view/tree.h"
#include "view/users.h"

#define VIEW_PREFIX "view-"
#define GONE_PREFIX ".gone-"

/* Under a name that nobody looks for, so that a new view can be made while this one is removed. */
static void remove_view(const char *runtime, const char *name)
{
	struct tree t = {.top = open(runtime, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	char gone[64];

	if (t.top < 0)
		return;
	tree_path(gone, sizeof(gone), GONE_PREFIX "%d", (int)getpid());
	if (!renameat(t.top, name, t.top, gone))
		tree_remove(&t, gone);
	close(t.top);
}

/* Splits the path of a view. */
static const char *split(const char *dir, char *runtime, size_t size)
{
	const char *slash = strrchr(dir, '/');

	tree_path(runtime, size, "%.*s", (int)(slash - dir), dir);
	return slash + 1;
}

bool keeper_end(const char *dir)
{
	char runtime[PATH_MAX];
	struct view_users users;
	int writer = view_lock(dir, VIEW_WRITER, 0);
	bool ended = false;

	/* The folder of the views was removed with everything in it. */
	if (writer == -ENOENT)
		return true;
	if (writer < 0)
		return false;
	view_users_find(dir, &users);
	if (view_users_none(&users)) {
		const char *name = split(dir, runtime, sizeof(runtime));

		remove_view(runtime, name);
		rmdir(runtime); /* if nothing else is in it */
		ended = true;
	}
	view_users_close(&users);
	close(writer);
	return ended;
}

static void sweep_one(const char *runtime, const char *name)
{
	char dir[PATH_MAX];
	int keeper;

	tree_path(dir, sizeof(dir), "%s/%s", runtime, name);
	keeper = view_lock(dir, VIEW_KEEPER, 0);
	if (keeper < 0)
		return;
	keeper_end(dir);
	close(keeper);
}

void keeper_sweep(const char *runtime)
{
	DIR *folder = opendir(runtime);
	struct tree t = {.top = folder ? dirfd(folder) : -1};

	for (struct dirent *e = folder ? readdir(folder) : NULL; e; e = readdir(folder)) {
		if (!strncmp(e->d_name, VIEW_PREFIX, strlen(VIEW_PREFIX)))
			sweep_one(runtime, e->d_name);
		else if (!strncmp(e->d_name, GONE_PREFIX, strlen(GONE_PREFIX)))
			tree_remove(&t, e->d_name);
	}
	if (folder)
		closedir(folder);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Walks a path as the kernel does (path_resolution(7)), a name at a time, and looks at each directory
 * and link on the way. Each is opened before it is looked at, so it cannot be another one afterwards;
 * and since those before it are trusted by then, its name keeps its meaning.
 */
#include "view/own_place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "view/why.h"

enum { LINKS_MOST = 40, MODE = 0755 };

struct walk {
	const char *dir;     /* as it was given */
	int at;              /* the directory that was reached */
	uid_t top;           /* the owner of "/" */
	int links;           /* followed */
	char name[PATH_MAX]; /* the next part */
	char rest[PATH_MAX]; /* what comes after it */
};

/* The group of the caller is trusted: by the umask 002 of many systems it is the user's own. */
static bool others_write(const struct stat *st)
{
	return (st->st_mode & S_IWOTH) || ((st->st_mode & S_IWGRP) && st->st_gid != getegid());
}

bool own_place_is(const struct stat *st)
{
	return st->st_uid == geteuid() && !others_write(st);
}

/*
 * Who has "/" can change every path anyway. In a user namespace that is seldom user 0, but a user
 * that has no number there (user_namespaces(7), "Unmapped user and group IDs").
 */
static bool trusts(const struct walk *w, const struct stat *st)
{
	return st->st_uid == geteuid() || st->st_uid == 0 || st->st_uid == w->top;
}

static int refuse(const struct walk *w, const struct stat *st)
{
	return view_fail(
		-EPERM,
		"%s: other users can change what is there (by a %s of user %u, mode %04o): "
		"give a directory that only you can write to",
		w->dir, S_ISLNK(st->st_mode) ? "link" : "directory", st->st_uid,
		st->st_mode & 07777u);
}

/* Whether names in the directory that was reached keep their meaning: sticky, or not for others. */
static int look(const struct walk *w)
{
	struct stat st;

	if (fstat(w->at, &st))
		return view_fail(-errno, "%s", w->dir);
	return trusts(w, &st) && (!others_write(&st) || (st.st_mode & S_ISVTX)) ? 0
										: refuse(w, &st);
}

static void go(struct walk *w, int fd)
{
	close(w->at);
	w->at = fd;
}

static int begin(struct walk *w)
{
	int fd = open(w->rest[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return view_fail(-errno, "%s", w->dir);
	go(w, fd);
	return look(w);
}

/* Takes the next name off the rest. False: there is none. */
static bool next(struct walk *w)
{
	const char *from = w->rest + strspn(w->rest, "/");
	size_t length = strcspn(from, "/");

	memcpy(w->name, from, length);
	w->name[length] = '\0';
	memmove(w->rest, from + length, strlen(from + length) + 1);
	return length != 0;
}

/* What a link names is put before the rest. */
static int follow(struct walk *w, int link, const struct stat *st)
{
	char target[PATH_MAX], rest[PATH_MAX];
	ssize_t n = readlinkat(link, "", target, sizeof(target));

	if (!trusts(w, st))
		return refuse(w, st);
	if (n < 0 || ++w->links > LINKS_MOST)
		return view_fail(n < 0 ? -errno : -ELOOP, "%s", w->dir);
	if ((size_t)snprintf(rest, sizeof(rest), "%.*s/%s", (int)n, target, w->rest) >=
	    sizeof(rest))
		return view_fail(-ENAMETOOLONG, "%s", w->dir);
	strcpy(w->rest, rest);
	return rest[0] == '/' ? begin(w) : 0;
}

static int enter(struct walk *w)
{
	bool last = !w->rest[strspn(w->rest, "/")];
	struct stat st;
	int fd, err;

	if (last && mkdirat(w->at, w->name, MODE) && errno != EEXIST)
		return view_fail(-errno, "cannot make %s", w->dir);
	fd = openat(w->at, w->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		err = view_fail(-errno, "%s", w->dir);
	} else if (S_ISLNK(st.st_mode)) {
		err = follow(w, fd, &st);
	} else if (!S_ISDIR(st.st_mode)) {
		err = view_fail(-ENOTDIR, "%s", w->dir);
	} else {
		go(w, fd);
		return look(w);
	}
	if (fd >= 0)
		close(fd);
	return err;
}

static int walk(struct walk *w)
{
	struct stat st;
	int err = begin(w);

	while (!err && next(w))
		err = enter(w);
	if (!err && !fstat(w->at, &st) && !own_place_is(&st))
		err = refuse(w, &st);
	return err;
}

int own_place_make(const char *dir)
{
	struct walk w = {.dir = dir, .at = -1};
	struct stat top;
	int err;

	if (strlen(dir) >= sizeof(w.rest))
		return view_fail(-ENAMETOOLONG, "%s", dir);
	strcpy(w.rest, dir);
	w.top = stat("/", &top) ? 0 : top.st_uid;
	err = walk(&w);
	if (w.at >= 0)
		close(w.at);
	return err;
}

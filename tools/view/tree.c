/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Files, directories and links of a view, and what is to be removed from it. */
#include "view/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "view/own_place.h"
#include "view/why.h"

#define FILE_MODE 0444
#define OWN_MODE  0644
#define DIR_MODE  0755
#define CONTENT   4096 /* the most that a file has */

static int fail(struct tree *t, const char *path, int err)
{
	if (!t->error)
		t->error = view_fail(err, "cannot write %s", path);
	return t->error;
}

const char *tree_path(char *buffer, size_t size, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(buffer, size, fmt, args);
	va_end(args);
	return buffer;
}

/* What is there is a directory in which nobody else can put links: then paths below it are true. */
static int own_dir(struct tree *t, const char *path)
{
	struct stat st;

	if (fstatat(t->top, path, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	return own_place_is(&st) ? 0 : -EPERM;
}

int tree_open(struct tree *t, const char *dir)
{
	*t = (struct tree){.top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	if (t->top < 0)
		return fail(t, dir, -errno);
	if (mkdirat(t->top, TREE_SCRATCH, S_IRWXU)) {
		int err = errno == EEXIST ? own_dir(t, TREE_SCRATCH) : -errno;

		if (err) {
			fail(t, TREE_SCRATCH, err);
			close(t->top);
			t->top = -1;
		}
	}
	return t->error;
}

void tree_close(struct tree *t)
{
	tree_remove(t, TREE_SCRATCH);
	for (size_t i = 0; i < t->count; i++)
		free(t->named[i]);
	free(t->named);
	if (t->top >= 0)
		close(t->top);
	t->top = -1;
}

/* Keeps the path among those that stay. */
static int name(struct tree *t, const char *path)
{
	char **grown;

	if (t->error)
		return t->error;
	if (!(t->count & (t->count - 1))) {
		grown = realloc(t->named, (t->count ? t->count * 2 : 1) * sizeof(*grown));
		if (!grown)
			return fail(t, path, -ENOMEM);
		t->named = grown;
	}
	t->named[t->count] = strdup(path);
	if (!t->named[t->count])
		return fail(t, path, -ENOMEM);
	t->count++;
	t->sorted = false;
	return 0;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_named(struct tree *t, const char *path)
{
	if (!t->sorted)
		qsort(t->named, t->count, sizeof(*t->named), compare);
	t->sorted = true;
	return t->count && bsearch(&path, t->named, t->count, sizeof(*t->named), compare);
}

/* One directory. A thing of another kind in its place is removed. */
static int one_dir(struct tree *t, const char *path)
{
	int err = own_dir(t, path);

	t->latest_new = false;
	if (!err)
		return name(t, path);
	if (err == -ENOTDIR)
		err = unlinkat(t->top, path, 0) ? -errno : -ENOENT;
	if (err != -ENOENT)
		return fail(t, path, err);
	if (mkdirat(t->top, path, DIR_MODE) && errno != EEXIST)
		return fail(t, path, -errno);
	/* The umask does not decide who sees devices: the view's own directory does. */
	if (fchmodat(t->top, path, DIR_MODE, 0))
		return fail(t, path, -errno);
	t->changed = t->latest_new = true;
	return name(t, path);
}

int tree_dir(struct tree *t, const char *path)
{
	char part[PATH_MAX];

	if (t->error || !strcmp(t->latest, path))
		return t->error;
	for (const char *end = path; end; end = strchr(end + 1, '/')) {
		const char *next = strchr(end + 1, '/');
		int length = next ? (int)(next - path) : (int)strlen(path);

		snprintf(part, sizeof(part), "%.*s", length, path);
		if (one_dir(t, part))
			return t->error;
	}
	tree_path(t->latest, sizeof(t->latest), "%s", path);
	return 0;
}

static int parent_of(struct tree *t, const char *path)
{
	char dir[PATH_MAX];
	const char *slash = strrchr(path, '/');

	if (!slash)
		return t->error;
	snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
	return tree_dir(t, dir);
}

static bool has_content(const struct tree *t, const char *path, const void *content, size_t length)
{
	char found[CONTENT];
	int fd = openat(t->top, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return false;
	n = fstat(fd, &st) || !S_ISREG(st.st_mode) ? -1 : read(fd, found, sizeof(found));
	close(fd);
	return n == (ssize_t)length && !memcmp(found, content, length);
}

static const char *temporary(struct tree *t, char *buffer, size_t size)
{
	return tree_path(buffer, size, TREE_SCRATCH "/%d-%u", getpid(), t->temporaries++);
}

/* Moves what was made into place. A directory that is in its place is removed. */
static int put(struct tree *t, const char *from, const char *path)
{
	t->changed = true;
	if (!renameat(t->top, from, t->top, path))
		return 0;
	if (errno == EISDIR && !tree_remove(t, path) && !renameat(t->top, from, t->top, path))
		return 0;
	int err = -errno;

	unlinkat(t->top, from, 0);
	return fail(t, path, err);
}

static int write_new(struct tree *t, const char *path, const void *content, size_t length,
		     mode_t mode)
{
	char beside[64];
	const char *from = t->latest_new ? path : temporary(t, beside, sizeof(beside));
	int fd = openat(t->top, from, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			S_IRUSR | S_IWUSR);
	ssize_t n;
	int err;

	if (fd < 0)
		return fail(t, path, -errno);
	n = write(fd, content, length);
	err = n < 0 ? -errno : (size_t)n < length ? -ENOSPC : fchmod(fd, mode) ? -errno : 0;
	if (close(fd) && !err)
		err = -errno;
	if (!err)
		return from == path ? 0 : put(t, from, path);
	unlinkat(t->top, from, 0);
	return fail(t, path, err);
}

int tree_file(struct tree *t, const char *path, const char *content)
{
	return tree_bytes(t, path, content, strlen(content));
}

int tree_bytes(struct tree *t, const char *path, const void *content, size_t length)
{
	if (parent_of(t, path) || name(t, path))
		return t->error;
	return has_content(t, path, content, length)
		       ? 0
		       : write_new(t, path, content, length, FILE_MODE);
}

int tree_own_file(struct tree *t, const char *path, const char *content)
{
	struct stat st;

	if (parent_of(t, path) || name(t, path))
		return t->error;
	if (!fstatat(t->top, path, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode))
		return 0;
	return write_new(t, path, content, strlen(content), OWN_MODE);
}

int tree_twin(struct tree *t, const char *path, const char *other)
{
	struct stat one, two;
	char from[64];

	if (parent_of(t, other) || name(t, other))
		return t->error;
	if (fstatat(t->top, path, &one, AT_SYMLINK_NOFOLLOW))
		return fail(t, path, -errno);
	if (t->latest_new)
		return linkat(t->top, path, t->top, other, 0) ? fail(t, other, -errno) : 0;
	if (!fstatat(t->top, other, &two, AT_SYMLINK_NOFOLLOW) && one.st_ino == two.st_ino)
		return 0;
	if (linkat(t->top, path, t->top, temporary(t, from, sizeof(from)), 0))
		return fail(t, other, -errno);
	return put(t, from, other);
}

int tree_link(struct tree *t, const char *path, const char *target)
{
	char from[64], found[PATH_MAX];
	ssize_t n;

	if (parent_of(t, path) || name(t, path))
		return t->error;
	n = readlinkat(t->top, path, found, sizeof(found));
	if (n == (ssize_t)strlen(target) && !memcmp(found, target, (size_t)n))
		return 0;
	if (symlinkat(target, t->top, temporary(t, from, sizeof(from))))
		return fail(t, path, -errno);
	return put(t, from, path);
}

/* The entries of the directory `path` below `at`; NULL: there is none, or it is no directory. */
static DIR *entries(int at, const char *path)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

static bool is_dots(const char *entry)
{
	return !strcmp(entry, ".") || !strcmp(entry, "..");
}

/* A name at a time: of the directories below nobody knows whose they are. */
static int remove_at(int at, const char *path)
{
	DIR *dir = entries(at, path);

	for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
		if (!is_dots(e->d_name))
			remove_at(dirfd(dir), e->d_name);
	}
	int err = unlinkat(at, path, dir ? AT_REMOVEDIR : 0) && errno != ENOENT ? -errno : 0;

	if (dir)
		closedir(dir);
	return err;
}

int tree_remove(struct tree *t, const char *path)
{
	return remove_at(t->top, path);
}

int tree_sweep(struct tree *t, const char *path)
{
	DIR *dir = t->error ? NULL : entries(t->top, path);
	char below[PATH_MAX];

	for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
		if (is_dots(e->d_name))
			continue;
		tree_path(below, sizeof(below), "%s/%s", path, e->d_name);
		if (is_named(t, below)) {
			tree_sweep(t, below);
			continue;
		}
		t->changed = true;
		tree_remove(t, below);
	}
	if (dir)
		closedir(dir);
	return t->error;
}

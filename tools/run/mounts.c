/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A directory of the kernel's gets entries of the view: an empty file system is mounted over it,
 * every entry that it had is bound to the place where it was, and the view's are bound beside
 * them.
 *
 * An overlay would do it in one mount, but it keeps what it has seen: it would show neither a file
 * of the view that was replaced, nor an interface that came later. What is bound is the directory
 * itself.
 */
#include "run/mounts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "view/peer_memory.h"

static bool join(char path[PATH_MAX], const char *dir, const char *name)
{
	int n = snprintf(path, PATH_MAX, "%s/%s", dir, name);

	return n > 0 && n < PATH_MAX;
}

static bool is_dir(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static int bind_to(const char *from, const char *to)
{
	return mount(from, to, NULL, MS_BIND | MS_REC, NULL) ? -errno : 0;
}

static int make_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int copy_link(const char *name, const char *to)
{
	char text[PATH_MAX];
	ssize_t length = readlink(name, text, sizeof(text) - 1);

	if (length < 0)
		return -errno;
	text[length] = '\0';
	return symlink(text, to) ? -errno : 0;
}

/* An entry of the directory that was here; it is the working directory now. */
static int put_old(const char *name, const char *dir)
{
	char to[PATH_MAX];
	struct stat st;
	int err;

	if (!join(to, dir, name))
		return -ENAMETOOLONG;
	if (lstat(name, &st))
		return 0; /* it went away */
	if (S_ISLNK(st.st_mode))
		return copy_link(name, to);
	err = S_ISDIR(st.st_mode) ? (mkdir(to, 0755) ? -errno : 0) : make_file(to);
	return err ? err : bind_to(name, to);
}

/* An entry of the view: a directory, or a link, which a device file is. */
static int put_new(const char *name, const char *dir, const char *view)
{
	char from[PATH_MAX];
	char to[PATH_MAX];

	if (!join(from, view, name) || !join(to, dir, name))
		return -ENAMETOOLONG;
	if (!is_dir(from))
		return copy_link(from, to);
	if (mkdir(to, 0755))
		return -errno;
	return bind_to(from, to);
}

/* Whether the view has an entry of its own; a link to what is at its place stands for that. */
static bool view_has(const char *view, const char *name, const char *dir)
{
	char path[PATH_MAX];
	char target[PATH_MAX];
	char real[PATH_MAX];
	ssize_t length;

	if (!join(path, view, name))
		return false;
	length = readlink(path, target, sizeof(target) - 1);
	if (length < 0)
		return is_dir(path);
	target[length] = '\0';
	return join(real, dir, name) && strcmp(target, real) != 0;
}

/* Puts each entry of one of the two directories; of the old one those that the view has not. */
static int put_all(int list_fd, const char *dir, const char *view, bool old)
{
	DIR *list = fdopendir(list_fd);
	const struct dirent *entry;
	int err = 0;

	if (!list) {
		err = -errno;
		close(list_fd);
		return err;
	}
	while (!err && (entry = readdir(list))) {
		const char *name = entry->d_name;

		if (!strcmp(name, ".") || !strcmp(name, ".."))
			continue;
		if (old)
			err = view_has(view, name, dir) ? 0 : put_old(name, dir);
		else
			err = view_has(view, name, dir) ? put_new(name, dir, view) : 0;
		/* What cannot be bound (a file that is gone, a mount of its own) is left out. */
		if (old)
			err = 0;
	}
	closedir(list);
	return err;
}

static int open_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int fill(int old, const char *dir, const char *view, bool sealed)
{
	int list = open_dir(view);
	int err;

	if (mount("verbatim", dir, "tmpfs", MS_NOSUID, "mode=755,size=256k")) {
		err = -errno;
		if (list >= 0)
			close(list);
		return err;
	}
	/* The old directory is reached through this descriptor alone now. */
	err = fchdir(old) ? -errno : put_all(dup(old), dir, view, true);
	if (!err)
		err = list < 0 ? list : put_all(list, dir, view, false);
	else if (list >= 0)
		close(list);
	if (!err && sealed &&
	    mount(NULL, dir, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID, NULL))
		err = -errno;
	return err;
}

static int assemble(const char *dir, const char *view, bool sealed)
{
	int old = open_dir(dir);
	int err;

	if (old < 0)
		return old;
	err = fill(old, dir, view, sealed);
	close(old);
	return err;
}

/* One directory of the machine, with what the view has in there. */
static int show(const char *root, const char *dir, bool sealed)
{
	char view[PATH_MAX];

	if (!join(view, root, dir + 1) || !is_dir(view))
		return 0;
	return is_dir(dir) ? assemble(dir, view, sealed) : -ENOENT;
}

static int cover(const char *root, const char *dir)
{
	char view[PATH_MAX];

	if (!join(view, root, dir + 1) || !is_dir(view) || !is_dir(dir))
		return 0;
	return bind_to(view, dir);
}

/* Nothing is seen in the directory any more. */
static int empty(const char *dir)
{
	if (is_dir(dir) &&
	    mount("verbatim", dir, "tmpfs", MS_NOSUID | MS_RDONLY, "mode=555,size=4k"))
		return -errno;
	return 0;
}

int mounts_make(const char *view, const char **where, int sealed)
{
	static const char *const assembled[] = {"/sys/class", "/sys/devices"};
	static const char *const hidden[] = {PEER_MEMORY};
	int err;

	*where = "/";
	/* Mounts that come later outside are seen inside, and none the other way. */
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
		return -errno;
	*where = "/sys";
	if (!is_dir("/sys/class")) {
		err = is_dir("/sys") ? cover(view, "/sys") : -ENOENT;
	} else {
		err = cover(view, "/sys/bus/pci/devices");
		for (size_t i = 0; !err && i < sizeof(assembled) / sizeof(assembled[0]); i++) {
			*where = assembled[i];
			err = show(view, assembled[i], sealed);
		}
		for (size_t i = 0; !err && i < sizeof(hidden) / sizeof(hidden[0]); i++) {
			*where = hidden[i];
			err = empty(hidden[i]);
		}
	}
	if (err)
		return err;
	*where = "/dev";
	/* With files of real adapters; those of the view are copied then, and not followed. */
	return show(view, is_dir("/dev/infiniband") ? "/dev/infiniband" : "/dev", sealed);
}

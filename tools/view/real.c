/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Links to the entries of the machine's own adapters. */
#include "view/real.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "view/tree.h"

enum { NULL_MAJOR = 1, NULL_MINOR = 3 };

/* Folders of /sys whose entries are links into /sys/devices. */
static const char *const folders[] = {
	"class/infiniband",    "class/infiniband_verbs", "class/infiniband_mad",
	"class/infiniband_cm", "bus/pci/devices",
};

static bool has_vendor(const char *path, const char *file)
{
	char name[PATH_MAX], text[16];
	ssize_t n;
	int fd;

	snprintf(name, sizeof(name), "%s/%s", path, file);
	fd = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return !strncmp(text, REAL_OUR_VENDOR, strlen(REAL_OUR_VENDOR));
}

/* A PCI device has the file itself, an entry of a class has it in its device. */
bool real_is_ours(const char *path)
{
	return has_vendor(path, "vendor") || has_vendor(path, "device/vendor");
}

bool real_has(const char *class, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), REAL_SYS "/%s/%s", class, name);
	return !lstat(path, &st) && !real_is_ours(path);
}

/*
 * The link names the place below /sys/devices itself. In a mount namespace in which a view lies
 * over /sys/class, a link to /sys/class would lead to itself.
 */
static int merge_entry(struct tree *t, const char *folder, const char *name)
{
	char path[PATH_MAX], place[PATH_MAX], own[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), REAL_SYS "/%s/%s", folder, name);
	if (lstat(path, &st) || (!S_ISLNK(st.st_mode) && !S_ISDIR(st.st_mode)) ||
	    real_is_ours(path) || !realpath(path, place))
		return 0;
	return tree_link(t, tree_path(own, sizeof(own), "sys/%s/%s", folder, name), place);
}

static int merge_folder(struct tree *t, const char *folder)
{
	char path[PATH_MAX];
	DIR *dir = opendir(tree_path(path, sizeof(path), REAL_SYS "/%s", folder));
	int err = 0;

	for (struct dirent *e = dir ? readdir(dir) : NULL; e && !err; e = readdir(dir)) {
		if (e->d_name[0] != '.')
			err = merge_entry(t, folder, e->d_name);
	}
	if (dir)
		closedir(dir);
	return err;
}

/* A device file of a view is the null device and is left out. */
static bool is_real_file(const char *path)
{
	struct stat st;

	return !stat(path, &st) &&
	       !(S_ISCHR(st.st_mode) && st.st_rdev == makedev(NULL_MAJOR, NULL_MINOR));
}

static int merge_files(struct tree *t)
{
	DIR *dir = opendir(REAL_DEV);
	char path[PATH_MAX], own[PATH_MAX];
	int err = 0;

	for (struct dirent *e = dir ? readdir(dir) : NULL; e && !err; e = readdir(dir)) {
		tree_path(path, sizeof(path), REAL_DEV "/%s", e->d_name);
		if (e->d_name[0] == '.' || !is_real_file(path))
			continue;
		err = tree_link(t, tree_path(own, sizeof(own), "dev/infiniband/%s", e->d_name),
				path);
	}
	if (dir)
		closedir(dir);
	return err;
}

int real_merge(struct tree *t)
{
	int err = 0;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && !err; i++)
		err = merge_folder(t, folders[i]);
	return err ? err : merge_files(t);
}

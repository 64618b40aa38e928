/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sums of port counters, into the files of the tree. */
#include "view/counters_show.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/runtime_dir.h"
#include "view/counter_files.h"
#include "view/counters_sum.h"
#include "view/real.h"
#include "view/tree.h"
#include "view/why.h"

#define DEVICES "sys/class/infiniband"

int counters_prepare(const char *dir)
{
	char path[PATH_MAX];
	int err = vb_private_dir(tree_path(path, sizeof(path), "%s/" VB_COUNTER_FOLDER, dir));
	int fd;

	if (err)
		return view_fail(err, "cannot use %s", path);
	tree_path(path, sizeof(path), "%s/" VB_COUNTER_FOLDER "/" VB_COUNTER_LOCK, dir);
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
	if (fd < 0)
		return view_fail(-errno, "cannot make %s", path);
	close(fd);
	return 0;
}

/* Writes what differs. The file may be that of another tree, which came into its place. */
static bool show_one(const char *port, const struct counter_file *file, uint64_t value)
{
	char path[PATH_MAX], text[COUNTER_TEXT], found[COUNTER_TEXT];
	unsigned int length = counter_text(text, value);
	int fd = open(tree_path(path, sizeof(path), "%s/%s/%s", port, file->folder, file->name),
		      O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n;
	bool changed;

	if (fd < 0)
		return false;
	n = pread(fd, found, sizeof(found), 0);
	changed = n != (ssize_t)length || memcmp(found, text, length) != 0;
	if (changed)
		changed = !counters_put(fd, value);
	close(fd);
	return changed;
}

static bool show_device(const char *dir, const char *device)
{
	struct vb_port_counters sum;
	char port[PATH_MAX];
	bool changed = false;

	if (counters_sum(dir, device, &sum))
		return false;
	tree_path(port, sizeof(port), "%s/" DEVICES "/%s/ports/1", dir, device);
	for (unsigned int i = 0; i < counter_file_count; i++) {
		if (counter_files[i].a)
			changed |= show_one(port, &counter_files[i],
					    counter_value(&counter_files[i], &sum));
	}
	return changed;
}

/* Ours are links within the tree; those of the machine are links out of it. */
static bool is_ours(int folder, const char *name)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(folder, name, target, sizeof(target));

	return n > 0 && target[0] == '.';
}

bool counters_show(const char *dir)
{
	char path[PATH_MAX];
	int lock = counters_lock(dir);
	DIR *devices;
	bool changed = false;

	if (lock < 0)
		return false;
	devices = opendir(tree_path(path, sizeof(path), "%s/" DEVICES, dir));
	for (struct dirent *e = devices ? readdir(devices) : NULL; e; e = readdir(devices)) {
		if (is_ours(dirfd(devices), e->d_name))
			changed |= show_device(dir, e->d_name);
	}
	if (devices)
		closedir(devices);
	close(lock);
	return changed;
}

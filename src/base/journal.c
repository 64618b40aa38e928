/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Making, writing and sweeping journals. */
#include "base/journal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/runtime_dir.h"
#include "base/sys.h"

#define START_TIME 22 /* the field of /proc/PID/stat, proc(5) */

static uint64_t own_start_time(void)
{
	char text[1024];
	int fd = vb_sys_open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : vb_sys_read(fd, text, sizeof(text) - 1);
	char *at;

	if (fd >= 0)
		vb_sys_close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	at = strrchr(text, ')'); /* the end of field 2, which may hold anything */
	for (int field = 2; at && field < START_TIME; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

static void fill_header(struct vb_journal_header *h)
{
	struct stat st;

	memset(h, 0, sizeof(*h));
	h->magic = VB_JOURNAL_MAGIC;
	h->pid = getpid();
	h->ended = VB_JOURNAL_RUNNING;
	h->start_time = own_start_time();
	if (!stat("/proc/self/ns/pid", &st))
		h->pid_namespace = st.st_ino;
	snprintf(h->name, sizeof(h->name), "%s", program_invocation_short_name);
}

/* A write beyond the limit of a file's size would end the process (SIGXFSZ). */
static bool may_write(const struct vb_journal *j)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur >= sizeof(j->image);
}

static int path_make(char *path, size_t size)
{
	char folder[PATH_MAX];
	int err = vb_runtime_dir(folder, sizeof(folder) - sizeof(VB_JOURNAL_FOLDER) - 1);
	int n;

	if (err)
		return err;
	strcat(folder, "/" VB_JOURNAL_FOLDER);
	err = vb_private_dir(folder);
	if (err)
		return err;
	vb_journal_sweep(folder);
	n = snprintf(path, size, "%s/%d", folder, (int)getpid());
	return n > 0 && (size_t)n < size ? 0 : -ENAMETOOLONG;
}

static int create(const char *path)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, S_IRUSR | S_IWUSR);

	/* An earlier process of this number, or an earlier program of this process, left one. */
	if (fd < 0 && errno == EEXIST && !unlink(path))
		fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, S_IRUSR | S_IWUSR);
	if (fd >= 0 && fchmod(fd, S_IRUSR | S_IWUSR)) {
		vb_sys_close(fd);
		fd = -1;
	}
	return fd;
}

static void make(struct vb_journal *j)
{
	struct stat st;
	int fd;

	j->given_up = true;
	if (!may_write(j) || path_make(j->path, sizeof(j->path)))
		return;
	fill_header(&j->image.header);
	fd = create(j->path);
	if (fd < 0)
		return;
	if (vb_sys_pwrite(fd, &j->image, sizeof(j->image), 0) == (ssize_t)sizeof(j->image) &&
	    !fstat(fd, &st)) {
		j->device = st.st_dev;
		j->inode = st.st_ino;
		j->made = true;
		j->given_up = false;
	} else {
		unlink(j->path);
	}
	vb_sys_close(fd);
}

/* Writes one part of the image. After chroot(2) the path may lead to a file of somebody else. */
static void write_part(struct vb_journal *j, const void *part, size_t size)
{
	int fd = vb_sys_open(j->path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	ssize_t n = -1;

	if (fd >= 0 && !fstat(fd, &st) && st.st_dev == j->device && st.st_ino == j->inode &&
	    may_write(j))
		n = vb_sys_pwrite(fd, part, size, (const char *)part - (const char *)&j->image);
	if (fd >= 0)
		vb_sys_close(fd);
	if (n < 0)
		j->given_up = true;
}

void vb_journal_changed(struct vb_journal *j, unsigned int slot, bool wanted)
{
	if (j->given_up)
		return;
	if (j->made)
		write_part(j, &j->image.slots[slot], sizeof(j->image.slots[slot]));
	else if (wanted)
		make(j);
}

void vb_journal_ended(struct vb_journal *j, int status)
{
	if (!j->made || j->given_up)
		return;
	j->image.header.ended = status & 0xff;
	write_part(j, &j->image.header, sizeof(j->image.header));
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counter files of processes that have ended: their sums go into one file, so that a view in which
 * thousands of processes have run stays small.
 *
 * The file is written anew and renamed into place with the names of those that it has taken in;
 * then they are removed. Whoever adds up sees the file before or after this, and leaves out what it
 * names (view/counters_sum.c). If this process is killed in between, the next one removes them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/port_counters.h"
#include "view/counters_show.h"
#include "view/process.h"
#include "view/tree.h"

/* A file in memory: its blocks as they lie in it. */
struct sums {
	struct vb_counter_head head;
	char (*block)[VB_COUNTER_BLOCK]; /* the devices' */
	char name[VB_COUNTER_NAMES][VB_COUNTER_DEVICE];
};

static struct vb_counter_block *block_at(const struct sums *s, uint32_t i)
{
	return (struct vb_counter_block *)(void *)s->block[i];
}

/* The block of the device; NULL: no memory. */
static struct vb_counter_block *block_of(struct sums *s, const char *device)
{
	char(*grown)[VB_COUNTER_BLOCK];

	for (uint32_t i = 0; i < s->head.blocks; i++) {
		if (!strncmp(block_at(s, i)->device, device, VB_COUNTER_DEVICE))
			return block_at(s, i);
	}
	grown = realloc(s->block, (s->head.blocks + 1u) * sizeof(*grown));
	if (!grown)
		return NULL;
	s->block = grown;
	memset(grown[s->head.blocks], 0, sizeof(*grown));
	memcpy(grown[s->head.blocks], device, strnlen(device, VB_COUNTER_DEVICE - 1));
	return block_at(s, s->head.blocks++);
}

static int add_block(struct sums *s, const struct vb_counter_block *from)
{
	struct vb_counter_block *to = block_of(s, from->device);

	if (!to)
		return -ENOMEM;
	for (size_t i = 0; i < sizeof(from->c) / sizeof(uint64_t); i++)
		((uint64_t *)(void *)&to->c)[i] += ((const uint64_t *)(const void *)&from->c)[i];
	return 0;
}

/* Adds a whole file. @head: what it says of itself; nothing where it is no such file. */
static int add_file(struct sums *s, int fd, struct vb_counter_head *head)
{
	const struct vb_counter_head nothing = {0};
	struct vb_counter_head found;
	char bytes[VB_COUNTER_BLOCK];
	int err = 0;

	if (pread(fd, &found, sizeof(found), 0) != sizeof(found) ||
	    found.magic != VB_COUNTER_MAGIC || found.version != VB_COUNTER_VERSION ||
	    found.blocks > VB_COUNTER_BLOCKS_MOST || found.names > VB_COUNTER_NAMES)
		found = nothing;
	*head = found;
	for (uint32_t i = 0; i < found.blocks && !err; i++) {
		if (pread(fd, bytes, sizeof(bytes), (off_t)(i + 1) * VB_COUNTER_BLOCK) !=
		    sizeof(bytes))
			break;
		bytes[VB_COUNTER_DEVICE - 1] = '\0';
		if (bytes[0])
			err = add_block(s, (struct vb_counter_block *)(void *)bytes);
	}
	return err;
}

/* What ended before. The files that it names may still be there. */
static int read_ended(int dir, struct sums *s)
{
	struct vb_counter_head head;
	char name[VB_COUNTER_DEVICE];
	int fd = openat(dir, VB_COUNTER_ENDED, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int err;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	err = add_file(s, fd, &head);
	s->head.generation = head.generation;
	for (uint32_t i = 0; i < head.names && !err; i++) {
		off_t at = (off_t)(1 + head.blocks + i) * VB_COUNTER_BLOCK;

		if (pread(fd, name, sizeof(name), at) != sizeof(name))
			break;
		name[sizeof(name) - 1] = '\0';
		if (name[0] >= '0' && name[0] <= '9' && !strchr(name, '/'))
			unlinkat(dir, name, 0);
	}
	close(fd);
	return err;
}

static int write_all(int fd, const void *bytes, size_t size)
{
	ssize_t n = write(fd, bytes, size);

	return n < 0 ? -errno : (size_t)n < size ? -ENOSPC : 0;
}

static int write_blocks(int fd, const struct sums *s)
{
	char bytes[VB_COUNTER_BLOCK] = {0};
	int err;

	memcpy(bytes, &s->head, sizeof(s->head));
	err = write_all(fd, bytes, sizeof(bytes));
	for (uint32_t i = 0; i < s->head.blocks && !err; i++)
		err = write_all(fd, s->block[i], VB_COUNTER_BLOCK);
	for (uint32_t i = 0; i < s->head.names && !err; i++) {
		memset(bytes, 0, sizeof(bytes));
		memcpy(bytes, s->name[i], VB_COUNTER_DEVICE);
		err = write_all(fd, bytes, sizeof(bytes));
	}
	return err;
}

static int write_ended(int dir, struct sums *s)
{
	int fd = openat(dir, VB_COUNTER_ENDED ".new",
			O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
	int err;

	if (fd < 0)
		return -errno;
	s->head.magic = VB_COUNTER_MAGIC;
	s->head.version = VB_COUNTER_VERSION;
	s->head.generation++;
	err = write_blocks(fd, s);
	close(fd);
	if (!err && renameat(dir, VB_COUNTER_ENDED ".new", dir, VB_COUNTER_ENDED))
		err = -errno;
	if (err)
		unlinkat(dir, VB_COUNTER_ENDED ".new", 0);
	return err;
}

/*
 * A process of another PID namespace is known by its lock alone. The lock is tried last, because
 * the process may just be about to take it.
 */
static bool is_living(int fd, const char *name)
{
	return process_named(name) || flock(fd, LOCK_SH | LOCK_NB);
}

/* Adds one file if its process has ended. Returns whether it lives. */
static bool take(int dir, const char *name, struct sums *s)
{
	struct vb_counter_head head;
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool lives;

	if (fd < 0)
		return false;
	lives = is_living(fd, name);
	if (!lives && s->head.names < VB_COUNTER_NAMES && strlen(name) < VB_COUNTER_DEVICE &&
	    !add_file(s, fd, &head))
		strcpy(s->name[s->head.names++], name);
	close(fd);
	return lives;
}

static bool is_process(const char *name)
{
	return name[0] >= '0' && name[0] <= '9';
}

bool counters_any(const char *dir)
{
	char path[PATH_MAX];
	DIR *folder = opendir(tree_path(path, sizeof(path), "%s/" VB_COUNTER_FOLDER, dir));
	bool any = false;

	for (struct dirent *e = folder ? readdir(folder) : NULL; e && !any; e = readdir(folder))
		any = is_process(e->d_name);
	if (folder)
		closedir(folder);
	return any;
}

bool counters_fold(const char *dir)
{
	char path[PATH_MAX];
	struct sums s = {0};
	DIR *folder = opendir(tree_path(path, sizeof(path), "%s/" VB_COUNTER_FOLDER, dir));
	bool living = false;

	if (!folder)
		return false;
	if (!read_ended(dirfd(folder), &s)) {
		for (struct dirent *e = readdir(folder); e; e = readdir(folder)) {
			if (is_process(e->d_name))
				living |= take(dirfd(folder), e->d_name, &s);
		}
		if (s.head.names && !write_ended(dirfd(folder), &s)) {
			for (uint32_t i = 0; i < s.head.names; i++)
				unlinkat(dirfd(folder), s.name[i], 0);
		}
	}
	closedir(folder);
	free(s.block);
	return living;
}

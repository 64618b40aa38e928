/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Adds the counter files of a view up. */
#include "view/counters_sum.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "view/counter_files.h"

enum {
	TRIES = 8,
	LOCK_TRIES = 40,
	LOCK_STEP_NS = 500000,
	BATCH = 8, /* blocks that one read takes */
	LISTING = 2048,
	MEMBERS = sizeof(struct vb_port_counters) / sizeof(uint64_t),
};

/* As the kernel gives directory entries (getdents64(2)). */
struct entry {
	uint64_t inode;
	int64_t offset;
	uint16_t length;
	uint8_t type;
	char name[];
};

/* What was read of the file of those that have ended. */
struct ended {
	uint64_t generation;
	uint32_t names;
	char name[VB_COUNTER_NAMES][VB_COUNTER_DEVICE];
};

union block {
	char bytes[VB_COUNTER_BLOCK];
	struct vb_counter_head head;
	struct vb_counter_block block;
};

static int open_at(int dir, const char *name, int flags)
{
	int fd = (int)syscall(SYS_openat, dir, name, flags | O_CLOEXEC | O_NOFOLLOW, 0);

	return fd < 0 ? -errno : fd;
}

static bool read_head(int fd, struct vb_counter_head *head)
{
	union block b;

	if (vb_sys_pread(fd, b.bytes, sizeof(b.head), 0) != sizeof(b.head))
		return false;
	*head = b.head;
	return head->magic == VB_COUNTER_MAGIC && head->version == VB_COUNTER_VERSION &&
	       head->blocks <= VB_COUNTER_BLOCKS_MOST && head->names <= VB_COUNTER_NAMES;
}

static void add(struct vb_port_counters *sum, const struct vb_port_counters *c)
{
	uint64_t *to = (uint64_t *)(void *)sum;
	const uint64_t *from = (const uint64_t *)(const void *)c;

	for (uint32_t i = 0; i < MEMBERS; i++)
		to[i] += from[i];
}

static void add_blocks(int fd, uint32_t blocks, const char *device, struct vb_port_counters *sum)
{
	union block b[BATCH];

	for (uint32_t at = 0; at < blocks;) {
		ssize_t n = vb_sys_pread(fd, b, sizeof(b), (off_t)(at + 1) * VB_COUNTER_BLOCK);
		uint32_t got = n > 0 ? (uint32_t)n / VB_COUNTER_BLOCK : 0;

		if (!got)
			return;
		for (uint32_t i = 0; i < got && at < blocks; i++, at++) {
			if (!strncmp(b[i].block.device, device, VB_COUNTER_DEVICE))
				add(sum, &b[i].block.c);
		}
	}
}

/* Of a process that is just beginning there may be no head yet. */
static void add_file(int dir, const char *name, const char *device, struct vb_port_counters *sum)
{
	struct vb_counter_head head;
	int fd = open_at(dir, name, O_RDONLY | O_NONBLOCK);

	if (fd < 0)
		return;
	if (read_head(fd, &head))
		add_blocks(fd, head.blocks, device, sum);
	vb_sys_close(fd);
}

static void add_ended(int dir, const char *device, struct ended *e, struct vb_port_counters *sum)
{
	struct vb_counter_head head;
	int fd = open_at(dir, VB_COUNTER_ENDED, O_RDONLY | O_NONBLOCK);
	union block b;

	e->generation = 0;
	e->names = 0;
	if (fd < 0)
		return;
	if (read_head(fd, &head)) {
		e->generation = head.generation;
		add_blocks(fd, head.blocks, device, sum);
		for (uint32_t i = 0; i < head.names; i++) {
			off_t at = (off_t)(1 + head.blocks + i) * VB_COUNTER_BLOCK;

			if (vb_sys_pread(fd, b.bytes, VB_COUNTER_DEVICE, at) != VB_COUNTER_DEVICE)
				break;
			memcpy(e->name[e->names++], b.block.device, VB_COUNTER_DEVICE);
		}
	}
	vb_sys_close(fd);
}

static uint64_t generation(int dir)
{
	struct vb_counter_head head;
	int fd = open_at(dir, VB_COUNTER_ENDED, O_RDONLY | O_NONBLOCK);
	uint64_t found = 0;

	if (fd < 0)
		return 0;
	if (read_head(fd, &head))
		found = head.generation;
	vb_sys_close(fd);
	return found;
}

static bool is_process(const struct ended *e, const char *name)
{
	if (name[0] < '0' || name[0] > '9')
		return false;
	for (uint32_t i = 0; i < e->names; i++) {
		if (!strncmp(e->name[i], name, VB_COUNTER_DEVICE))
			return false;
	}
	return true;
}

static int add_processes(int dir, const struct ended *e, const char *device,
			 struct vb_port_counters *sum)
{
	_Alignas(struct entry) char list[LISTING];
	long n;

	if (lseek(dir, 0, SEEK_SET) < 0)
		return -errno;
	while ((n = syscall(SYS_getdents64, dir, list, sizeof(list))) > 0) {
		for (long at = 0; at < n;) {
			const struct entry *entry = (const struct entry *)(const void *)(list + at);

			if (is_process(e, entry->name))
				add_file(dir, entry->name, device, sum);
			at += entry->length;
		}
	}
	return n < 0 ? -errno : 0;
}

/*
 * A file that is added to the ended ones while the directory is read could be counted twice or not
 * at all: then everything is read once more.
 */
static int sum_in(int dir, const char *device, struct vb_port_counters *sum)
{
	struct ended e;
	int err = -EAGAIN;

	for (int i = 0; i < TRIES && err == -EAGAIN; i++) {
		memset(sum, 0, sizeof(*sum));
		add_ended(dir, device, &e, sum);
		err = add_processes(dir, &e, device, sum);
		if (!err && generation(dir) != e.generation)
			err = -EAGAIN;
	}
	return err;
}

/* A path below the view. False: too long. */
static bool join(char path[PATH_MAX], const char *view, const char *name)
{
	size_t a = strlen(view), b = strlen(name);

	if (a + b + 2 > PATH_MAX)
		return false;
	char *slash = stpcpy(path, view);

	*slash = '/';
	stpcpy(slash + 1, name);
	return true;
}

int counters_sum(const char *view, const char *device, struct vb_port_counters *sum)
{
	char path[PATH_MAX];
	int saved = errno, err, dir;

	memset(sum, 0, sizeof(*sum));
	if (!join(path, view, VB_COUNTER_FOLDER))
		return -ENAMETOOLONG;
	dir = open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
	err = dir < 0 ? dir : sum_in(dir, device, sum);
	if (dir >= 0)
		vb_sys_close(dir);
	errno = saved;
	return err == -ENOENT ? 0 : err;
}

int counters_lock(const char *view)
{
	const struct timespec step = {0, LOCK_STEP_NS};
	char path[PATH_MAX];
	int saved = errno, fd, err = -EWOULDBLOCK;

	if (!join(path, view, VB_COUNTER_FOLDER "/" VB_COUNTER_LOCK))
		return -ENAMETOOLONG;
	fd = open_at(AT_FDCWD, path, O_RDWR | O_NONBLOCK);
	if (fd < 0) {
		errno = saved;
		return fd;
	}
	for (int i = 0; i < LOCK_TRIES && err == -EWOULDBLOCK; i++) {
		err = flock(fd, LOCK_EX | LOCK_NB) ? -errno : 0;
		if (err == -EWOULDBLOCK)
			vb_sys_nanosleep(&step);
	}
	if (err)
		vb_sys_close(fd);
	errno = saved;
	return err ? err : fd;
}

int counters_put(int fd, uint64_t value)
{
	char text[COUNTER_TEXT];
	ssize_t length = counter_text(text, value);
	struct stat st;

	if (vb_sys_pwrite(fd, text, (size_t)length, 0) != length)
		return -EIO;
	/* A number is shorter than before only if files of processes were lost. */
	if (!fstat(fd, &st) && st.st_size > length && ftruncate(fd, length))
		return -errno;
	return 0;
}

/* Splits ".../DEVICE/ports/1/FOLDER/NAME" and finds the counter. NULL: it is none. */
static const struct counter_file *parse(const char *path, char device[VB_COUNTER_DEVICE])
{
	static const char ports[] = "/ports/1/";
	const char *at = NULL, *begin;

	for (const char *next = strstr(path, ports); next; next = strstr(next + 1, ports))
		at = next;
	if (!at)
		return NULL;
	for (begin = at; begin > path && begin[-1] != '/'; begin--)
		;
	if (begin == at || at - begin >= VB_COUNTER_DEVICE)
		return NULL;
	memset(device, 0, VB_COUNTER_DEVICE);
	memcpy(device, begin, (size_t)(at - begin));
	at += sizeof(ports) - 1;
	for (unsigned int i = 0; i < counter_file_count; i++) {
		size_t length = strlen(counter_files[i].folder);

		if (!strncmp(at, counter_files[i].folder, length) && at[length] == '/' &&
		    !strcmp(at + length + 1, counter_files[i].name))
			return &counter_files[i];
	}
	return NULL;
}

static int refresh(const char *view, const char *path, const struct counter_file *file,
		   const char *device)
{
	struct vb_port_counters sum;
	int lock = counters_lock(view);
	int err, fd;

	if (lock < 0)
		return lock;
	err = counters_sum(view, device, &sum);
	fd = err ? err : (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
	if (fd >= 0) {
		err = counters_put(fd, counter_value(file, &sum));
		vb_sys_close(fd);
	}
	vb_sys_close(lock);
	return fd < 0 && !err ? -ENOENT : err;
}

int counters_refresh(const char *view, const char *path)
{
	char device[VB_COUNTER_DEVICE];
	const struct counter_file *file = parse(path, device);
	int saved = errno, err;

	if (!file)
		return 0;
	err = refresh(view, path, file, device);
	errno = saved;
	return err;
}

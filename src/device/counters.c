/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Blocks of port counters, and the file in which a view finds them. */
#include "device/counters.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/lock.h"
#include "base/random.h"
#include "base/reason.h"
#include "base/sys.h"

#define CHUNKS       16u /* each of twice the size of the one before */
#define START_FIELD  22  /* of /proc/PID/stat: when the process was started */
#define LOCK_TRIES   8
#define LOCK_STEP_NS 1000000

struct vb_counter_port {
	char device[VB_COUNTER_DEVICE];
	struct vb_counters *free;
	struct vb_counter_port *next;
};

static struct {
	pthread_mutex_t lock;
	struct vb_counter_port *ports;
	/* Blocks that were never used. */
	char *fresh;
	uint32_t num_fresh;
	/* The file; size 0: there is none. */
	bool tried;
	char path[PATH_MAX];
	struct vb_counter_head *head;
	uint64_t size;
	void *chunk[CHUNKS];
	uint32_t chunks;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The n-th mapping: the file's first bytes, then parts of twice the size. */
static uint64_t chunk_bytes(uint32_t n)
{
	return (uint64_t)sysconf(_SC_PAGESIZE) << n;
}

static bool is_own(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* A process number is used again; together with this one it is not. 0: unknown. */
static unsigned long long started(void)
{
	char text[1024];
	int fd = vb_sys_open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : vb_sys_read(fd, text, sizeof(text) - 1);
	char *at;

	if (fd >= 0)
		vb_sys_close(fd);
	text[n > 0 ? n : 0] = '\0';
	at = strrchr(text, ')'); /* the program's name may contain anything */
	for (int field = 2; at && field < START_FIELD; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

static bool has_view(void)
{
	return secure_getenv("VERBATIM_VIEW") != NULL;
}

/* Names the process's file. False: no view is to be served. */
static bool name_file(void)
{
	const char *view = secure_getenv("VERBATIM_VIEW");
	int n;

	if (!view || view[0] != '/' || !is_own(view))
		return false;
	n = snprintf(all.path, sizeof(all.path), "%s/" VB_COUNTER_FOLDER, view);
	if ((size_t)n >= sizeof(all.path) - 64 || !is_own(all.path))
		return false;
	snprintf(all.path + n, sizeof(all.path) - (size_t)n, "/%d.%llu.%08x", (int)getpid(),
		 started(), vb_random32());
	return true;
}

/* A file that may not grow so far would end the program by SIGXFSZ. */
static bool may_grow_to(uint64_t size)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && size <= limit.rlim_cur;
}

/* Storage that is not there would end the program by SIGBUS: it is taken beforehand. */
static void *map_part(int fd, uint64_t at, uint64_t bytes)
{
	void *part;

	if (vb_sys_fallocate(fd, 0, (off_t)at, (off_t)bytes))
		return NULL;
	part = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)at);
	return part == MAP_FAILED ? NULL : part;
}

static void *grow(int fd)
{
	uint64_t bytes = chunk_bytes(all.chunks);
	void *part;

	if (fd < 0)
		return NULL;
	part = map_part(fd, all.size, bytes);
	if (!part)
		return NULL;
	all.chunk[all.chunks++] = part;
	all.fresh = part;
	all.num_fresh = (uint32_t)(bytes / VB_COUNTER_BLOCK);
	all.size += bytes;
	return part;
}

/* The keeper of the view may be looking whether the file is locked. */
static bool lock_file(int fd)
{
	const struct timespec moment = {0, LOCK_STEP_NS};

	for (int i = 0; i < LOCK_TRIES; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return true;
		vb_sys_nanosleep(&moment);
	}
	return false;
}

/* Makes the file; the lock stays as long as the first part is mapped. */
static bool file_begin(void)
{
	int fd;

	all.tried = true;
	if (!name_file() || !may_grow_to(chunk_bytes(0)))
		return false;
	fd = vb_sys_open(all.path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || !lock_file(fd) || !grow(fd)) {
		vb_note(VB_REASON_SYSTEM, "the view shows no counters of this process: %s: %s",
			all.path, strerror(errno));
		if (fd >= 0)
			unlink(all.path);
		vb_sys_close(fd);
		return false;
	}
	vb_sys_close(fd);
	all.head = (struct vb_counter_head *)(void *)all.fresh;
	all.head->magic = VB_COUNTER_MAGIC;
	__atomic_store_n(&all.head->version, VB_COUNTER_VERSION, __ATOMIC_RELEASE);
	all.fresh += VB_COUNTER_BLOCK;
	all.num_fresh--;
	return true;
}

/* The file may be gone, or another one have its name. */
static bool is_same_file(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && (uint64_t)st.st_size == all.size && st.st_nlink == 1;
}

static bool file_grow(void)
{
	bool grown;
	int fd;

	if (!all.size)
		return !all.tried && file_begin();
	if (all.chunks == CHUNKS || !may_grow_to(all.size + chunk_bytes(all.chunks)))
		return false;
	fd = vb_sys_open(all.path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	grown = fd >= 0 && is_same_file(fd) && grow(fd);
	if (fd >= 0)
		vb_sys_close(fd);
	return grown;
}

static struct vb_counter_port *port_of(const char *device)
{
	struct vb_counter_port *p;

	for (p = all.ports; p && strcmp(p->device, device) != 0; p = p->next)
		;
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	snprintf(p->device, sizeof(p->device), "%s", device);
	p->next = all.ports;
	all.ports = p;
	return p;
}

static struct vb_counters *fresh_block(struct vb_counter_port *port)
{
	struct vb_counters *c;

	if (!all.num_fresh && !file_grow())
		return NULL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->port = port;
	c->block = (struct vb_counter_block *)(void *)all.fresh;
	all.fresh += VB_COUNTER_BLOCK;
	all.num_fresh--;
	memcpy(c->block->device, port->device, sizeof(port->device));
	/* Readers look at so many blocks. */
	__atomic_store_n(&all.head->blocks, all.head->blocks + 1, __ATOMIC_RELEASE);
	return c;
}

struct vb_counters *vb_counters_take(const char *device)
{
	struct vb_counter_port *port;
	struct vb_counters *c = NULL;

	if (!device || !has_view())
		return NULL;
	vb_mutex_take(&all.lock, VB_ORDER_PORT_COUNTERS);
	port = port_of(device);
	if (port && port->free) {
		c = port->free;
		port->free = c->next;
	} else if (port) {
		c = fresh_block(port);
	}
	vb_mutex_release(&all.lock);
	return c;
}

void vb_counters_give_back(struct vb_counters *c)
{
	vb_mutex_take(&all.lock, VB_ORDER_PORT_COUNTERS);
	c->next = c->port->free;
	c->port->free = c;
	vb_mutex_release(&all.lock);
}

/*
 * In a forked child: the counts are the parent's, and the child must not keep the parent's lock.
 * The addresses stay valid for what still has them.
 */
static void forked(void)
{
	for (uint32_t i = 0; i < all.chunks; i++) {
		if (mmap(all.chunk[i], chunk_bytes(i), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
			munmap(all.chunk[i], chunk_bytes(i));
	}
	memset(&all, 0, sizeof(all));
	pthread_mutex_init(&all.lock, NULL);
}

VB_FORK_HOOK(.phase = VB_FORK_ROOMS, .child = forked);

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The functions that stand between the library and the C library. Each passes the call on to the
 * next definition of its name, which is a sanitizer's where there is one, unless its turn to fail
 * has come.
 */
/* The library must see these names; the tree is built with hidden ones. */
#pragma GCC visibility push(default)

#include "failing.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EARLY_BYTES 4096
#define PIECE_MOST  ((off64_t)1 << 30)

static __thread struct {
	bool on, lasting, fired;
	enum failing_kind kind;
	unsigned int left;
} failing;

/* Of all threads. `made`: requests since it was switched on. */
static struct {
	_Atomic bool on;
	bool lasting;
	enum failing_kind kind;
	unsigned int kth;
	_Atomic unsigned int made;
} everywhere;

/* What a sanitizer allocates before a thread runs is not the library's. */
static __thread bool runs;

/* Threads that have been made, and what each is to run. */
#define THREADS 64
static struct {
	void *(*start)(void *arg);
	void *arg;
} thread_of[THREADS];
static _Atomic unsigned int threads;

void **failing_frames;

static _Atomic long blocks, mapped;
static _Atomic uint64_t largest_piece;
static _Atomic int created, asleep; /* threads: made by the library, and come so far as to wait */

/* What dlsym(3) allocates while malloc itself is looked up. */
static _Alignas(16) char early[EARLY_BYTES];
static size_t early_used;
/* dlsym(3) is declared as one that never comes back here. */
static __thread volatile bool looking_up;

static const struct {
	const char *name;
	int err;
} kinds[FAILING_KINDS] = {
	[FAILING_MEMORY] = {"memory", ENOMEM},           [FAILING_MAPS] = {"maps", ENOMEM},
	[FAILING_DESCRIPTORS] = {"descriptors", EMFILE}, [FAILING_SYSTEM] = {"system", ENOBUFS},
	[FAILING_THREADS] = {"threads", ENOMEM},
};

const char *failing_name(enum failing_kind kind)
{
	return kinds[kind].name;
}

int failing_errno(enum failing_kind kind)
{
	return kinds[kind].err;
}

void failing_start(enum failing_kind kind, unsigned int kth, bool lasting)
{
	failing.kind = kind;
	failing.left = kth;
	failing.lasting = lasting;
	failing.fired = false;
	failing.on = true;
}

bool failing_stop(void)
{
	failing.on = false;
	return failing.fired;
}

void failing_everywhere(enum failing_kind kind, unsigned int kth, bool lasting)
{
	void *frame;

	(void)!backtrace(&frame, 1); /* its first call allocates */
	runs = true;
	everywhere.kind = kind;
	everywhere.kth = kth;
	everywhere.lasting = lasting;
	everywhere.made = 0;
	everywhere.on = true;
}

unsigned int failing_everywhere_stop(void)
{
	everywhere.on = false;
	return everywhere.made;
}

struct failing_held failing_held(void)
{
	struct failing_held held = {.descriptors = -1};
	DIR *dir;

	while (asleep < created) /* what a thread gets when it starts is there */
		usleep(100);
	dir = opendir("/proc/self/fd");
	while (dir && readdir(dir))
		held.descriptors++;
	if (dir)
		closedir(dir);
	held.blocks = blocks;
	held.mapped = mapped;
	return held;
}

uint64_t failing_largest_piece(void)
{
	uint64_t bytes = largest_piece;

	largest_piece = 0;
	return bytes;
}

/* The address sanitizer allocates before it can look at what is read here. */
__attribute__((no_sanitize("address"))) static bool fails_everywhere(enum failing_kind kind)
{
	unsigned int k;

	if (!everywhere.on || everywhere.kind != kind || !runs)
		return false;
	k = ++everywhere.made;
	if (k != everywhere.kth && (k < everywhere.kth || !everywhere.lasting))
		return false;
	if (failing_frames)
		backtrace(failing_frames, FAILING_FRAMES);
	errno = kinds[kind].err;
	return true;
}

static bool fails(enum failing_kind kind)
{
	if (fails_everywhere(kind))
		return true;
	if (!failing.on || failing.kind != kind)
		return false;
	if (failing.left && --failing.left)
		return false;
	if (failing.fired && !failing.lasting)
		return false;
	failing.fired = true;
	errno = kinds[kind].err;
	return true;
}

static void *next(const char *name)
{
	void *found;

	looking_up = true;
	found = dlsym(RTLD_NEXT, name);
	looking_up = false;
	if (!found)
		abort();
	return found;
}

#define NEXT(type, name, ...)                                               \
	static type (*pass)(__VA_ARGS__);                                   \
	do {                                                                \
		if (!pass)                                                  \
			pass = (type(*)(__VA_ARGS__))(uintptr_t)next(name); \
	} while (0)

static void *count(void *block)
{
	if (block)
		blocks++;
	return block;
}

static void *early_give(size_t size)
{
	void *at = early + early_used;

	size = (size + 15) & ~(size_t)15;
	if (early_used + size > sizeof(early))
		abort();
	early_used += size;
	return at;
}

static bool is_early(const void *block)
{
	return (uintptr_t)block >= (uintptr_t)early &&
	       (uintptr_t)block < (uintptr_t)(early + sizeof(early));
}

void *malloc(size_t size)
{
	if (looking_up)
		return early_give(size);
	NEXT(void *, "malloc", size_t);
	return fails(FAILING_MEMORY) ? NULL : count(pass(size));
}

void *calloc(size_t n, size_t size)
{
	if (looking_up)
		return early_give(n * size); /* it was never used */
	NEXT(void *, "calloc", size_t, size_t);
	return fails(FAILING_MEMORY) ? NULL : count(pass(n, size));
}

void *realloc(void *block, size_t size)
{
	void *moved;

	NEXT(void *, "realloc", void *, size_t);
	if (fails(FAILING_MEMORY))
		return NULL;
	moved = pass(block, size);
	return block ? moved : count(moved);
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
	int err;

	NEXT(int, "posix_memalign", void **, size_t, size_t);
	if (fails(FAILING_MEMORY))
		return ENOMEM;
	err = pass(block, alignment, size);
	if (!err)
		count(*block);
	return err;
}

void *aligned_alloc(size_t alignment, size_t size)
{
	NEXT(void *, "aligned_alloc", size_t, size_t);
	return fails(FAILING_MEMORY) ? NULL : count(pass(alignment, size));
}

void free(void *block)
{
	/*
	 * The message of an earlier dlsym(3) that found nothing may be freed by the next: it stays.
	 */
	if (!block || is_early(block) || looking_up)
		return;
	NEXT(void, "free", void *);
	blocks--;
	pass(block);
}

/* The library is built for large files, so these are the names that it uses. */
void *mmap64(void *at, size_t bytes, int prot, int flags, int fd, off64_t offset)
{
	void *map;

	NEXT(void *, "mmap64", void *, size_t, int, int, int, off64_t);
	map = fails(FAILING_MAPS) ? MAP_FAILED : pass(at, bytes, prot, flags, fd, offset);
	if (map != MAP_FAILED && !(flags & MAP_FIXED))
		mapped += (long)bytes;
	return map;
}

int munmap(void *at, size_t bytes)
{
	int err;

	NEXT(int, "munmap", void *, size_t);
	err = pass(at, bytes);
	if (!err)
		mapped -= (long)bytes;
	return err;
}

int ftruncate64(int fd, off64_t bytes)
{
	NEXT(int, "ftruncate64", int, off64_t);
	return fails(FAILING_MAPS) ? -1 : pass(fd, bytes);
}

int eventfd(unsigned int count, int flags)
{
	NEXT(int, "eventfd", unsigned int, int);
	return fails(FAILING_DESCRIPTORS) ? -1 : pass(count, flags);
}

int epoll_create1(int flags)
{
	NEXT(int, "epoll_create1", int);
	return fails(FAILING_DESCRIPTORS) ? -1 : pass(flags);
}

int memfd_create(const char *name, unsigned int flags)
{
	NEXT(int, "memfd_create", const char *, unsigned int);
	return fails(FAILING_DESCRIPTORS) ? -1 : pass(name, flags);
}

int socket(int domain, int type, int protocol)
{
	NEXT(int, "socket", int, int, int);
	return fails(FAILING_DESCRIPTORS) ? -1 : pass(domain, type, protocol);
}

DIR *opendir(const char *path)
{
	NEXT(DIR *, "opendir", const char *);
	return fails(FAILING_DESCRIPTORS) ? NULL : pass(path);
}

int fcntl64(int fd, int command, ...)
{
	va_list args;
	long arg;

	NEXT(int, "fcntl64", int, int, ...);
	va_start(args, command);
	arg = va_arg(args, long);
	va_end(args);
	if (command == F_DUPFD_CLOEXEC && fails(FAILING_DESCRIPTORS))
		return -1;
	if (command == F_ADD_SEALS && fails(FAILING_SYSTEM))
		return -1;
	return pass(fd, command, arg);
}

int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	NEXT(int, "epoll_ctl", int, int, int, struct epoll_event *);
	if (op == EPOLL_CTL_ADD && fails(FAILING_SYSTEM))
		return -1;
	return pass(epoll, op, fd, event);
}

int bind(int fd, __CONST_SOCKADDR_ARG addr, socklen_t length)
{
	NEXT(int, "bind", int, __CONST_SOCKADDR_ARG, socklen_t);
	return fails(FAILING_SYSTEM) ? -1 : pass(fd, addr, length);
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	NEXT(int, "ioctl", int, unsigned long, ...);
	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	return fails(FAILING_SYSTEM) ? -1 : pass(fd, request, arg);
}

int listen(int fd, int backlog)
{
	NEXT(int, "listen", int, int);
	return fails(FAILING_SYSTEM) ? -1 : pass(fd, backlog);
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
	NEXT(int, "setsockopt", int, int, int, const void *, socklen_t);
	return fails(FAILING_SYSTEM) ? -1 : pass(fd, level, name, value, length);
}

static void *thread_run(void *place)
{
	unsigned int i = (unsigned int)(uintptr_t)place;

	runs = true;
	return thread_of[i].start(thread_of[i].arg);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	unsigned int place;
	int err;

	NEXT(int, "pthread_create", pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	if (fails(FAILING_THREADS))
		return EAGAIN;
	place = threads++ % THREADS;
	thread_of[place].start = start;
	thread_of[place].arg = arg;
	err = pass(thread, attr, thread_run, (void *)(uintptr_t)place);
	created += !err;
	return err;
}

/*
 * The machine's memory, and a test's patience, end somewhere: of what is larger only the size is
 * noted.
 */
static bool piece_refused(int mode, uint64_t bytes)
{
	if (mode != FALLOC_FL_KEEP_SIZE)
		return false;
	if (bytes > largest_piece)
		largest_piece = bytes;
	errno = ENOMEM;
	return bytes > PIECE_MOST;
}

/* Most of what can wait is called by number (base/sys.h). */
static bool number_fails(long number, const long *arg)
{
	switch (number) {
	case SYS_openat:
		/* the log is the test's eye */
		return !(arg[2] & O_APPEND) && fails(FAILING_DESCRIPTORS);
	case SYS_accept4:
		return fails(FAILING_DESCRIPTORS);
	case SYS_connect:
		return fails(FAILING_SYSTEM);
	case SYS_mmap:
		return fails(FAILING_MAPS);
	case SYS_fallocate:
		return fails(FAILING_MAPS) || piece_refused((int)arg[1], (uint64_t)arg[3]);
	default:
		return false;
	}
}

static void count_sleeper(long number)
{
	static __thread bool counted;

	if (number != SYS_epoll_pwait2 && number != SYS_epoll_pwait)
		return;
	asleep += !counted;
	counted = true;
}

/* It reads as many arguments as a call can have, of which the caller may have passed fewer. */
__attribute__((no_sanitize("address"))) long syscall(long number, ...)
{
	long arg[6], result;
	va_list args;

	NEXT(long, "syscall", long, ...);
	va_start(args, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	count_sleeper(number);
	if (number_fails(number, arg))
		return -1;
	result = pass(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
	if (number == SYS_mmap && result != -1)
		mapped += arg[1];
	return result;
}

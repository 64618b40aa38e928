/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Finding the functions that are replaced. */
#include "hook.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The table that HOOK() builds; the linker knows its ends. */
extern const struct hook __start_view_hooks[];
extern const struct hook __stop_view_hooks[];

/* This thread is looking for functions. Their finder may allocate, and an allocator open files. */
static __thread bool finding __attribute__((tls_model("initial-exec")));

/* What an allocator calls while it starts. */
static int raw_open(const char *path, int flags, ...)
{
	va_list ap;
	unsigned int mode;

	va_start(ap, flags);
	mode = va_arg(ap, unsigned int);
	va_end(ap);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static int raw_openat(int dirfd, const char *path, int flags, ...)
{
	va_list ap;
	unsigned int mode;

	va_start(ap, flags);
	mode = va_arg(ap, unsigned int);
	va_end(ap);
	return (int)syscall(SYS_openat, dirfd, path, flags, mode);
}

static ssize_t raw_readlink(const char *path, char *to, size_t size)
{
	return syscall(SYS_readlinkat, AT_FDCWD, path, to, size);
}

static int raw_access(const char *path, int mode)
{
	return (int)syscall(SYS_faccessat, AT_FDCWD, path, mode);
}

/* A function that this C library does not have. Nobody who was linked with it calls it. */
static long absent(void)
{
	errno = ENOSYS;
	return -1;
}

static hook_fn raw(const char *name)
{
	static const struct {
		const char *name;
		hook_fn function;
	} table[] = {
		{"open", (hook_fn)raw_open},         {"open64", (hook_fn)raw_open},
		{"openat", (hook_fn)raw_openat},     {"openat64", (hook_fn)raw_openat},
		{"readlink", (hook_fn)raw_readlink}, {"access", (hook_fn)raw_access},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (!strcmp(table[i].name, name))
			return table[i].function;
	}
	return (hook_fn)absent;
}

static hook_fn find(const struct hook *hook)
{
	void *found = NULL;
	hook_fn function;

#if HOOK_HAS_OLD
	if (hook->version)
		found = dlvsym(RTLD_NEXT, hook->name, hook->version);
#endif
	if (!found)
		found = dlsym(RTLD_NEXT, hook->name);
	/* C knows no conversion between pointers to objects and to functions; dlsym(3) demands it. */
	memcpy(&function, &found, sizeof(function));
	return function;
}

hook_fn hook_real(const struct hook *hook)
{
	hook_fn found = *hook->real;
	bool outer = finding;

	if (!found && !outer) {
		finding = true;
		found = find(hook);
		finding = outer;
	}
	return found ? found : raw(hook->name);
}

bool hook_find_all(void)
{
	if (finding)
		return false;
	finding = true;
	for (const struct hook *hook = __start_view_hooks; hook < __stop_view_hooks; hook++)
		__atomic_store_n(hook->real, find(hook), __ATOMIC_RELAXED);
	dlerror(); /* frees what it says of a function that is not there */
	finding = false;
	return true;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opening files. A program that reads a counter gets what was counted until now. */
#include "hook.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include "view/counters_sum.h"

/* As view_path(); a counter that is to be read is brought up to date before. */
static const char *path_to_open(int dir, const char *path, char room[PATH_MAX])
{
	const char *use = view_path(dir, path, room);

	if (use == room && strstr(use, "counters/"))
		counters_refresh(view.root, use);
	return use;
}

#define HOOK_OPENER(type, name, dir, params, args) \
	HOOK(type, name, params);                  \
	HOOK_BODY(type, name, path_to_open, dir, params, args)

/* The third argument of open(2) is there with these flags only; O_TMPFILE has a bit of another. */
static bool has_mode(int flags)
{
	return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

#define WITH_MODE(call)                            \
	do {                                       \
		va_list ap;                        \
		mode_t mode = 0;                   \
                                                   \
		if (has_mode(flags)) {             \
			va_start(ap, flags);       \
			mode = va_arg(ap, mode_t); \
			va_end(ap);                \
		}                                  \
		return call;                       \
	} while (0)

#define HOOK_OPEN(name)                                                                 \
	HOOK(int, name, (const char *path, int flags, ...));                            \
	HOOK_OUTLINE static int inside_##name(const char *path, int flags, mode_t mode) \
	{                                                                               \
		char room[PATH_MAX];                                                    \
                                                                                        \
		return REAL(name)(path_to_open(AT_FDCWD, path, room), flags, mode);     \
	}                                                                               \
	int hook_##name(const char *path, int flags, ...)                               \
	{                                                                               \
		WITH_MODE(view_passes(path) ? REAL(name)(path, flags, mode)             \
					    : inside_##name(path, flags, mode));        \
	}                                                                               \
	_Static_assert(1, "")

#define HOOK_OPENAT(name)                                                                          \
	HOOK(int, name, (int dirfd, const char *path, int flags, ...));                            \
	HOOK_OUTLINE static int inside_##name(int dirfd, const char *path, int flags, mode_t mode) \
	{                                                                                          \
		char room[PATH_MAX];                                                               \
                                                                                                   \
		return REAL(name)(dirfd, path_to_open(dirfd, path, room), flags, mode);            \
	}                                                                                          \
	int hook_##name(int dirfd, const char *path, int flags, ...)                               \
	{                                                                                          \
		WITH_MODE(view_passes(path) ? REAL(name)(dirfd, path, flags, mode)                 \
					    : inside_##name(dirfd, path, flags, mode));            \
	}                                                                                          \
	_Static_assert(1, "")

HOOK_OPEN(open);
HOOK_OPEN(open64);
HOOK_OPENAT(openat);
HOOK_OPENAT(openat64);

/* What a fortified program calls where the flags are no constant. */
HOOK_OPENER(int, __open_2, AT_FDCWD, (const char *path, int flags), (path, flags));
HOOK_OPENER(int, __open64_2, AT_FDCWD, (const char *path, int flags), (path, flags));
HOOK_OPENER(int, __openat_2, dirfd, (int dirfd, const char *path, int flags), (dirfd, path, flags));
HOOK_OPENER(int, __openat64_2, dirfd, (int dirfd, const char *path, int flags),
	    (dirfd, path, flags));

HOOK_OPENER(FILE *, fopen, AT_FDCWD, (const char *path, const char *mode), (path, mode));
HOOK_OPENER(FILE *, fopen64, AT_FDCWD, (const char *path, const char *mode), (path, mode));
HOOK_OPENER(FILE *, freopen, AT_FDCWD, (const char *path, const char *mode, FILE *file),
	    (path, mode, file));
HOOK_OPENER(FILE *, freopen64, AT_FDCWD, (const char *path, const char *mode, FILE *file),
	    (path, mode, file));

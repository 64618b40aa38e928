/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opening files. A program that reads a counter gets what was counted until now. */
#include "hook.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/types.h>

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
		return REAL(name)(view_path(AT_FDCWD, path, room), flags, mode);        \
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
		return REAL(name)(dirfd, view_path(dirfd, path, room), flags, mode);               \
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
HOOK_PATH(int, __open_2, (const char *path, int flags), (path, flags));
HOOK_PATH(int, __open64_2, (const char *path, int flags), (path, flags));
HOOK_AT(int, __openat_2, (int dirfd, const char *path, int flags), (dirfd, path, flags));
HOOK_AT(int, __openat64_2, (int dirfd, const char *path, int flags), (dirfd, path, flags));

HOOK_PATH(FILE *, fopen, (const char *path, const char *mode), (path, mode));
HOOK_PATH(FILE *, fopen64, (const char *path, const char *mode), (path, mode));
HOOK_PATH(FILE *, freopen, (const char *path, const char *mode, FILE *file), (path, mode, file));
HOOK_PATH(FILE *, freopen64, (const char *path, const char *mode, FILE *file), (path, mode, file));

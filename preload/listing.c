/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Listing directories, and names that match a pattern. */
#include "hook.h"

#include <dirent.h>
#include <glob.h>
#include <string.h>
#include <sys/stat.h>

HOOK_PATH(DIR *, opendir, (const char *path), (path));

typedef int (*choose_fn)(const void *);
typedef int (*compare_fn)(const void *, const void *);

HOOK_PATH(int, scandir, (const char *path, void *list, choose_fn choose, compare_fn compare),
	  (path, list, choose, compare));
HOOK_PATH(int, scandir64, (const char *path, void *list, choose_fn choose, compare_fn compare),
	  (path, list, choose, compare));
HOOK_AT(int, scandirat,
	(int dirfd, const char *path, void *list, choose_fn choose, compare_fn compare),
	(dirfd, path, list, choose, compare));
HOOK_AT(int, scandirat64,
	(int dirfd, const char *path, void *list, choose_fn choose, compare_fn compare),
	(dirfd, path, list, choose, compare));

/*
 * A pattern names its files piece by piece, so glob(3) is made to ask for each piece through the
 * functions above. It does so for programs that bring functions of their own, in which case
 * nothing has to be done here.
 */
static bool pattern_passes(const char *pattern, int flags)
{
	size_t literal;

	if ((flags & GLOB_ALTDIRFUNC) || view_passes("/sys") || (uintptr_t)pattern + 4096 < 8192)
		return true;
	literal = strcspn(pattern, "*?[{\\");
	/* The first component is written out. */
	if (memchr(pattern, '/', literal) &&
	    (pattern[0] != '/' || memchr(pattern + 1, '/', literal - 1)))
		return view_passes(pattern);
	return false;
}

static void *glob_opendir(const char *path)
{
	return opendir(path);
}

static struct dirent *glob_readdir(void *dir)
{
	return readdir(dir);
}

static void glob_closedir(void *dir)
{
	closedir(dir);
}

static int glob_lstat(const char *path, struct stat *st)
{
	return lstat(path, st);
}

static int glob_stat(const char *path, struct stat *st)
{
	return stat(path, st);
}

typedef int (*glob_error_fn)(const char *, int);
typedef int (*glob_fn)(const char *, int, glob_error_fn, glob_t *);

/* On machines of 64 bits glob64_t is glob_t. */
static int glob_through(glob_fn real, const char *pattern, int flags, glob_error_fn error,
			glob_t *found)
{
	glob_t before = *found;
	int err;

	found->gl_opendir = glob_opendir;
	found->gl_readdir = glob_readdir;
	found->gl_closedir = glob_closedir;
	found->gl_lstat = glob_lstat;
	found->gl_stat = glob_stat;
	err = real(pattern, flags | GLOB_ALTDIRFUNC, error, found);
	found->gl_opendir = before.gl_opendir;
	found->gl_readdir = before.gl_readdir;
	found->gl_closedir = before.gl_closedir;
	found->gl_lstat = before.gl_lstat;
	found->gl_stat = before.gl_stat;
	found->gl_flags &= ~GLOB_ALTDIRFUNC;
	return err;
}
_Static_assert(sizeof(glob_t) == sizeof(glob64_t), "one function serves both");

#define GLOB_BODY(name)                                                                     \
	int hook_##name(const char *pattern, int flags, glob_error_fn error, glob_t *found) \
	{                                                                                   \
		if (pattern_passes(pattern, flags))                                         \
			return REAL(name)(pattern, flags, error, found);                    \
		return glob_through(REAL(name), pattern, flags, error, found);              \
	}                                                                                   \
	_Static_assert(1, "")

#if HOOK_HAS_OLD
HOOK_OLD(int, glob_old, glob, "GLIBC_2.2.5",
	 (const char *pattern, int flags, glob_error_fn error, glob_t *found));
GLOB_BODY(glob_old);
HOOK_OLD(int, glob64_old, glob64, "GLIBC_2.2.5",
	 (const char *pattern, int flags, glob_error_fn error, glob_t *found));
GLOB_BODY(glob64_old);
#endif
HOOK_NOW(int, glob_now, glob, "GLIBC_2.27",
	 (const char *pattern, int flags, glob_error_fn error, glob_t *found));
GLOB_BODY(glob_now);
HOOK_NOW(int, glob64_now, glob64, "GLIBC_2.27",
	 (const char *pattern, int flags, glob_error_fn error, glob_t *found));
GLOB_BODY(glob64_now);

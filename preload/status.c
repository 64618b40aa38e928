/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a file is, whether it may be used, and making a directory the working one. */
#include "hook.h"

#include <stdint.h>
#include <sys/types.h>

struct stat;
struct stat64;
struct statx;
struct statfs;
struct statfs64;
struct statvfs;
struct statvfs64;

HOOK_PATH(int, stat, (const char *path, struct stat *to), (path, to));
HOOK_PATH(int, stat64, (const char *path, struct stat64 *to), (path, to));
HOOK_PATH(int, lstat, (const char *path, struct stat *to), (path, to));
HOOK_PATH(int, lstat64, (const char *path, struct stat64 *to), (path, to));
HOOK_AT(int, fstatat, (int dirfd, const char *path, struct stat *to, int flags),
	(dirfd, path, to, flags));
HOOK_AT(int, fstatat64, (int dirfd, const char *path, struct stat64 *to, int flags),
	(dirfd, path, to, flags));
HOOK_AT(int, statx, (int dirfd, const char *path, int flags, unsigned int mask, struct statx *to),
	(dirfd, path, flags, mask, to));

/* Of programs that were linked before glibc 2.33. */
HOOK_PATH(int, __xstat, (int version, const char *path, struct stat *to), (version, path, to));
HOOK_PATH(int, __xstat64, (int version, const char *path, struct stat64 *to), (version, path, to));
HOOK_PATH(int, __lxstat, (int version, const char *path, struct stat *to), (version, path, to));
HOOK_PATH(int, __lxstat64, (int version, const char *path, struct stat64 *to), (version, path, to));
HOOK_AT(int, __fxstatat, (int version, int dirfd, const char *path, struct stat *to, int flags),
	(version, dirfd, path, to, flags));
HOOK_AT(int, __fxstatat64, (int version, int dirfd, const char *path, struct stat64 *to, int flags),
	(version, dirfd, path, to, flags));

HOOK_PATH(int, statfs, (const char *path, struct statfs *to), (path, to));
HOOK_PATH(int, statfs64, (const char *path, struct statfs64 *to), (path, to));
HOOK_PATH(int, statvfs, (const char *path, struct statvfs *to), (path, to));
HOOK_PATH(int, statvfs64, (const char *path, struct statvfs64 *to), (path, to));
HOOK_PATH(long, pathconf, (const char *path, int name), (path, name));

HOOK_PATH(int, access, (const char *path, int mode), (path, mode));
HOOK_PATH(int, eaccess, (const char *path, int mode), (path, mode));
HOOK_PATH(int, euidaccess, (const char *path, int mode), (path, mode));
HOOK_AT(int, faccessat, (int dirfd, const char *path, int mode, int flags),
	(dirfd, path, mode, flags));

HOOK_PATH(ssize_t, getxattr, (const char *path, const char *name, void *to, size_t size),
	  (path, name, to, size));
HOOK_PATH(ssize_t, lgetxattr, (const char *path, const char *name, void *to, size_t size),
	  (path, name, to, size));
HOOK_PATH(ssize_t, listxattr, (const char *path, char *to, size_t size), (path, to, size));
HOOK_PATH(ssize_t, llistxattr, (const char *path, char *to, size_t size), (path, to, size));
HOOK_PATH(int, inotify_add_watch, (int fd, const char *path, uint32_t mask), (fd, path, mask));

HOOK_PATH(int, chdir, (const char *path), (path));

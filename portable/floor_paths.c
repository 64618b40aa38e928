/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * glibc 2.33: before, stat() and its like were inline calls of __xstat(). Both names of each are one
 * function, since a file's size always has 64 bits here. A library that exports one of these names is to
 * call none of them: what is hidden in one file of a link is so in all (tests/install looks).
 * Such functions are linked into the portable build where something calls them, and are not exported.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef __x86_64__
#error "struct stat is the kernel's on x86-64; other processors have not been looked at"
#endif

int fstatat64(int dir, const char *restrict path, struct stat64 *restrict st, int flags)
{
	return (int)syscall(SYS_newfstatat, dir, path, st, flags);
}

int stat64(const char *restrict path, struct stat64 *restrict st)
{
	return (int)syscall(SYS_stat, path, st);
}

int lstat64(const char *restrict path, struct stat64 *restrict st)
{
	return (int)syscall(SYS_lstat, path, st);
}

int fstatat(int dir, const char *restrict path, struct stat *restrict st, int flags)
{
	return (int)syscall(SYS_newfstatat, dir, path, st, flags);
}

int stat(const char *restrict path, struct stat *restrict st)
{
	return (int)syscall(SYS_stat, path, st);
}

int lstat(const char *restrict path, struct stat *restrict st)
{
	return (int)syscall(SYS_lstat, path, st);
}

int mknod(const char *path, mode_t mode, dev_t device)
{
	return (int)syscall(SYS_mknod, path, mode, device);
}

int mknodat(int dir, const char *path, mode_t mode, dev_t device)
{
	return (int)syscall(SYS_mknodat, dir, path, mode, device);
}

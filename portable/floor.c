/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Functions that the headers of a later glibc make programs call, by the means of glibc 2.28. They are
 * linked into the portable build where something calls them, and are not exported (portable/stubs.py).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Weak, so that a library which exports one of these names itself (a preloaded one) is not in the way. */
#define FLOOR __attribute__((weak))

#ifndef __x86_64__
#error "struct stat is the kernel's on x86-64; other processors have not been looked at"
#endif

/*
 * glibc 2.33: before, these were inline calls of __xstat() and its like. Both names of each are one
 * function, since a file's size always has 64 bits here.
 */
FLOOR int fstatat64(int dir, const char *restrict path, struct stat64 *restrict st, int flags)
{
	return (int)syscall(SYS_newfstatat, dir, path, st, flags);
}

FLOOR int stat64(const char *restrict path, struct stat64 *restrict st)
{
	return (int)syscall(SYS_stat, path, st);
}

FLOOR int lstat64(const char *restrict path, struct stat64 *restrict st)
{
	return (int)syscall(SYS_lstat, path, st);
}

FLOOR int fstat64(int fd, struct stat64 *st)
{
	return (int)syscall(SYS_fstat, fd, st);
}

FLOOR int fstatat(int dir, const char *restrict path, struct stat *restrict st, int flags)
{
	return (int)syscall(SYS_newfstatat, dir, path, st, flags);
}

FLOOR int stat(const char *restrict path, struct stat *restrict st)
{
	return (int)syscall(SYS_stat, path, st);
}

FLOOR int lstat(const char *restrict path, struct stat *restrict st)
{
	return (int)syscall(SYS_lstat, path, st);
}

FLOOR int fstat(int fd, struct stat *st)
{
	return (int)syscall(SYS_fstat, fd, st);
}

FLOOR int mknod(const char *path, mode_t mode, dev_t device)
{
	return (int)syscall(SYS_mknod, path, mode, device);
}

FLOOR int mknodat(int dir, const char *path, mode_t mode, dev_t device)
{
	return (int)syscall(SYS_mknodat, dir, path, mode, device);
}

/*
 * glibc 2.38: what C23 wants of strtol() and scanf(), 0b101 among it. The functions under their old
 * names do without.
 */
#define OLD(result, name, ...)            \
	result floor_##name(__VA_ARGS__); \
	__asm__(".symver floor_" #name ", " #name "@GLIBC_2.2.5")

OLD(long, strtol, const char *, char **, int);
OLD(long long, strtoll, const char *, char **, int);
OLD(unsigned long, strtoul, const char *, char **, int);
OLD(unsigned long long, strtoull, const char *, char **, int);
int floor_vsscanf(const char *, const char *, va_list);
__asm__(".symver floor_vsscanf, __isoc99_vsscanf@GLIBC_2.7");
int floor_vfscanf(FILE *, const char *, va_list);
__asm__(".symver floor_vfscanf, __isoc99_vfscanf@GLIBC_2.7");

#define C23(result, name)                                                    \
	result __isoc23_##name(const char *text, char **end, int base);      \
	FLOOR result __isoc23_##name(const char *text, char **end, int base) \
	{                                                                    \
		return floor_##name(text, end, base);                        \
	}

C23(long, strtol)
C23(long long, strtoll)
C23(unsigned long, strtoul)
C23(unsigned long long, strtoull)

int __isoc23_sscanf(const char *text, const char *format, ...);
FLOOR int __isoc23_sscanf(const char *text, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = floor_vsscanf(text, format, ap);
	va_end(ap);
	return n;
}

int __isoc23_fscanf(FILE *file, const char *format, ...);
FLOOR int __isoc23_fscanf(FILE *file, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = floor_vfscanf(file, format, ap);
	va_end(ap);
	return n;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * glibc 2.33: before, fstat() was an inline call of __fxstat(), by the name it has today.
 * Such functions are linked into the portable build where something calls them, and are not exported.
 */
#define _GNU_SOURCE
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef __x86_64__
#error "struct stat is the kernel's on x86-64; other processors have not been looked at"
#endif

int fstat64(int fd, struct stat64 *st)
{
	return (int)syscall(SYS_fstat, fd, st);
}

int fstat(int fd, struct stat *st)
{
	return (int)syscall(SYS_fstat, fd, st);
}

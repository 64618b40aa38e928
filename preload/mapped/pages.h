/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The calls of mmap(2) and its like, by number: this library replaces the functions of their names,
 * and would call itself.
 */
#ifndef VB_MAPPED_PAGES_H
#define VB_MAPPED_PAGES_H

#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static inline void *pages_map(void *addr, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	return (void *)syscall(SYS_mmap, addr, bytes, prot, flags, fd, offset);
}

/* New ones, zeroed, of this process alone. MAP_FAILED: there are none. */
static inline void *pages_anonymous(size_t bytes)
{
	return pages_map(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static inline void *pages_remap(void *old, size_t had, size_t bytes, int flags, void *fixed)
{
	return (void *)syscall(SYS_mremap, old, had, bytes, flags, fixed);
}

/* Puts them in the place of what is there. */
static inline int pages_move(void *from, size_t bytes, void *to)
{
	return pages_remap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED ? -1
												: 0;
}

static inline int pages_unmap(void *addr, size_t bytes)
{
	return (int)syscall(SYS_munmap, addr, bytes);
}

static inline int pages_protect(void *addr, size_t bytes, int prot)
{
	return (int)syscall(SYS_mprotect, addr, bytes, prot);
}

static inline int pages_advise(void *addr, size_t bytes, int advice)
{
	return (int)syscall(SYS_madvise, addr, bytes, advice);
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The calls of mmap(2) and its like, by number: this library replaces the functions of their names,
 * and would call itself.
 */
#ifndef VB_MAPPED_PAGES_H
#define VB_MAPPED_PAGES_H

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* syscall(2) is among the functions that this library replaces. */
static inline long pages_call(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	if (result > -4096 && result < 0) {
		errno = (int)-result;
		return -1;
	}
	return result;
#else
	return syscall(number, a, b, c, d, e, f);
#endif
}

static inline void *pages_map(void *addr, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	return (void *)pages_call(SYS_mmap, (long)addr, (long)bytes, prot, flags, fd, offset);
}

/* New ones, zeroed, of this process alone. MAP_FAILED: there are none. */
static inline void *pages_anonymous(size_t bytes)
{
	return pages_map(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static inline void *pages_remap(void *old, size_t had, size_t bytes, int flags, void *fixed)
{
	return (void *)pages_call(SYS_mremap, (long)old, (long)had, (long)bytes, flags, (long)fixed,
				  0);
}

/* Puts them in the place of what is there. */
static inline int pages_move(void *from, size_t bytes, void *to)
{
	return pages_remap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED ? -1
												: 0;
}

static inline int pages_unmap(void *addr, size_t bytes)
{
	return (int)pages_call(SYS_munmap, (long)addr, (long)bytes, 0, 0, 0, 0);
}

static inline int pages_protect(void *addr, size_t bytes, int prot)
{
	return (int)pages_call(SYS_mprotect, (long)addr, (long)bytes, prot, 0, 0, 0);
}

static inline int pages_advise(void *addr, size_t bytes, int advice)
{
	return (int)pages_call(SYS_madvise, (long)addr, (long)bytes, advice, 0, 0, 0);
}

#endif

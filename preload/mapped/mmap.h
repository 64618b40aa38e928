/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mmap(2) and the calls that change what it gave, by whatever function the program makes them. */
#ifndef VB_MAPPED_MMAP_H
#define VB_MAPPED_MMAP_H

#include <stddef.h>
#include <sys/types.h>

/* `caller`: an address in the code that asks (caller.h). */
void *mmap_any(void *addr, size_t bytes, int prot, int flags, int fd, off_t offset,
	       const void *caller);
int munmap_any(void *addr, size_t bytes);
void *mremap_any(void *old, size_t had, size_t bytes, int flags, void *fixed);
int mprotect_any(void *addr, size_t bytes, int prot);
int madvise_any(void *addr, size_t bytes, int advice);

#endif

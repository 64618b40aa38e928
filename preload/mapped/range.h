/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Blocks of memory in one range of addresses, which is a file that peers of this process map
 * (host/arena.h). The pages of a block are those of the file at the same place, mapped shared;
 * otherwise a block behaves as private anonymous memory does. What could not be kept of that gives
 * the caller ordinary memory.
 *
 * Addresses and lengths are whole pages. Every function is safe for threads; none allocates by
 * malloc().
 */
#ifndef PRELOAD_MAPPED_RANGE_H
#define PRELOAD_MAPPED_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

extern size_t page_bytes;

static inline size_t whole_pages(size_t bytes)
{
	return (bytes + page_bytes - 1) & ~(page_bytes - 1);
}

/* Whether the range can be had here; makes it at the first call. */
bool range_ready(void);

/* Whether the address, or any byte of the range, lies in it. No lock. */
bool range_has(const void *addr);
bool range_touches(const void *addr, size_t bytes);

/* A block of zeros, aligned to `align` bytes (0: a page). NULL: not here. */
void *range_alloc(size_t bytes, size_t align, int prot);
/* Frees any pages of blocks. Those that are none already are skipped. */
void range_free(void *addr, size_t bytes);
/* Makes a block longer where it is. `prot` is for the new pages. */
bool range_extend(void *addr, size_t bytes, size_t more, int prot);
/* The pages of blocks become zeros; `prot` -1: their protection stays. */
int range_zero(void *addr, size_t bytes, int prot);
/*
 * The program maps something else there: the pages are no longer the file's, and cannot be registered. To be called
 * before.
 */
bool range_lose(void *addr, size_t bytes);
/* Whether all pages are the file's and of blocks. */
bool range_holds(const void *addr, size_t bytes);
/* Reads blocks whatever their protection is; as pread(2). */
ssize_t range_read(void *to, const void *addr, size_t bytes);
/* Whether any of the pages is of no block: nothing is mapped there. */
bool range_has_hole(const void *addr, size_t bytes);
/* How large a block that begins here was asked for, for malloc(); 0: none begins here. */
size_t range_size(const void *addr);
void range_size_set(void *addr, size_t bytes);

/* MADV_DONTFORK and MADV_DOFORK: whether a child gets the pages. 0, or an errno. */
int range_keep(void *addr, size_t bytes, bool from_children);

/* fork.c: what the handlers need. */
struct range_view {
	char *base;
	size_t bytes;
	int fd;
};
/* Whether the mapping that begins here is kept from children. */
bool range_is_kept(const void *addr);
bool range_lock(struct range_view *view); /* false: there is no range; nothing is locked */
void range_unlock(void);
void range_forked(void);

#endif

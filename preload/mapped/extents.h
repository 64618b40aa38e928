/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A set of page numbers, as sorted runs of pages. Its memory is the kernel's, since it serves an
 * allocator. The caller excludes other threads.
 */
#ifndef PRELOAD_MAPPED_EXTENTS_H
#define PRELOAD_MAPPED_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct extent {
	uint64_t at, pages;
};

struct extents {
	struct extent *run; /* in ascending order, none adjacent to the next */
	size_t count, room;
};

/* Room for one more run than there are; each call below needs at most that. False: no memory. */
bool extents_ready(struct extents *set);
/* The pages are not in the set, or all are, respectively. After extents_ready(). */
void extents_add(struct extents *set, uint64_t at, uint64_t pages);
void extents_remove(struct extents *set, uint64_t at, uint64_t pages);
/* Whether any, or all, of the pages are in the set. */
bool extents_any(const struct extents *set, uint64_t at, uint64_t pages);
bool extents_all(const struct extents *set, uint64_t at, uint64_t pages);
/*
 * The first place from `from` on, and if there is none the first of all, for so many pages in a row, at a multiple of
 * `align` pages. UINT64_MAX: none.
 */
uint64_t extents_find(const struct extents *set, uint64_t from, uint64_t pages, uint64_t align);

#endif

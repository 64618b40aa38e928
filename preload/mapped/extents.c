/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sorted runs of pages in an array that grows. */
#include "extents.h"

#include <string.h>

#include "pages.h"

#define FIRST_BYTES 65536u

bool extents_ready(struct extents *set)
{
	size_t bytes = set->room * sizeof(*set->run);
	void *map;

	if (set->count + 1 < set->room)
		return true;
	map = bytes ? pages_remap(set->run, bytes, 2 * bytes, MREMAP_MAYMOVE, NULL)
		    : pages_anonymous(FIRST_BYTES);
	if (map == MAP_FAILED)
		return false;
	set->run = map;
	set->room = (bytes ? 2 * bytes : FIRST_BYTES) / sizeof(*set->run);
	return true;
}

/* The first run that ends behind `at`. */
static size_t search(const struct extents *set, uint64_t at)
{
	size_t low = 0, high = set->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (set->run[middle].at + set->run[middle].pages <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void insert(struct extents *set, size_t i, struct extent run)
{
	memmove(&set->run[i + 1], &set->run[i], (set->count - i) * sizeof(run));
	set->run[i] = run;
	set->count++;
}

static void erase(struct extents *set, size_t i)
{
	set->count--;
	memmove(&set->run[i], &set->run[i + 1], (set->count - i) * sizeof(*set->run));
}

void extents_add(struct extents *set, uint64_t at, uint64_t pages)
{
	size_t i = search(set, at);
	struct extent *run = &set->run[i];
	bool joins_before = i && run[-1].at + run[-1].pages == at;
	bool joins_behind = i < set->count && at + pages == run->at;

	if (joins_before && joins_behind) {
		run[-1].pages += pages + run->pages;
		erase(set, i);
	} else if (joins_before) {
		run[-1].pages += pages;
	} else if (joins_behind) {
		run->at = at;
		run->pages += pages;
	} else {
		insert(set, i, (struct extent){at, pages});
	}
}

void extents_remove(struct extents *set, uint64_t at, uint64_t pages)
{
	size_t i = search(set, at);
	struct extent run = set->run[i];
	uint64_t head = at - run.at, tail = run.at + run.pages - (at + pages);

	if (head && tail) {
		set->run[i].pages = head;
		insert(set, i + 1, (struct extent){at + pages, tail});
	} else if (head) {
		set->run[i].pages = head;
	} else if (tail) {
		set->run[i] = (struct extent){at + pages, tail};
	} else {
		erase(set, i);
	}
}

bool extents_any(const struct extents *set, uint64_t at, uint64_t pages)
{
	size_t i = search(set, at);

	return i < set->count && set->run[i].at < at + pages;
}

bool extents_all(const struct extents *set, uint64_t at, uint64_t pages)
{
	size_t i = search(set, at);

	return i < set->count && set->run[i].at <= at &&
	       set->run[i].at + set->run[i].pages >= at + pages;
}

static uint64_t place_in(const struct extent *run, uint64_t from, uint64_t pages, uint64_t align)
{
	uint64_t at = run->at > from ? run->at : from;

	at = (at + align - 1) / align * align;
	return at + pages <= run->at + run->pages ? at : UINT64_MAX;
}

uint64_t extents_find(const struct extents *set, uint64_t from, uint64_t pages, uint64_t align)
{
	size_t first = search(set, from);
	uint64_t at = UINT64_MAX;

	for (size_t i = first; i < set->count && at == UINT64_MAX; i++)
		at = place_in(&set->run[i], from, pages, align);
	for (size_t i = 0; i < set->count && i <= first && at == UINT64_MAX; i++)
		at = place_in(&set->run[i], 0, pages, align);
	return at;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * malloc(3) and its family. Large blocks, and those that begin at a page because the program asks
 * for it, as programs do for memory that they register, are blocks of the range. All others are the
 * next allocator's.
 */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "caller.h"
#include "next.h"
#include "range.h"

#define EXPORT __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)
#define LARGE  65536u

static void *block_alloc(size_t bytes, size_t align, const void *caller)
{
	void *block;

	if (caller_is_library(caller))
		return NULL;
	block = range_alloc(bytes, align, PROT_READ | PROT_WRITE);
	if (block)
		range_size_set(block, bytes);
	return block;
}

EXPORT void *malloc(size_t bytes)
{
	void *block = bytes >= LARGE ? block_alloc(bytes, 0, CALLER) : NULL;

	return block ? block : next_malloc(bytes);
}

EXPORT void *calloc(size_t count, size_t bytes)
{
	void *block = NULL;
	size_t all;

	if (!__builtin_mul_overflow(count, bytes, &all) && all >= LARGE)
		block = block_alloc(all, 0, CALLER);
	return block ? block : next_calloc(count, bytes);
}

EXPORT void free(void *block)
{
	if (block && range_has(block))
		range_free(block, range_size(block));
	else if (block)
		next_free(block);
}

/* Shorter or longer where it is. */
static bool block_resize(void *block, size_t bytes)
{
	size_t had = whole_pages(range_size(block)), wants = whole_pages(bytes);

	if (bytes < LARGE || wants < bytes)
		return false;
	if (wants > had && !range_extend(block, had, wants - had, PROT_READ | PROT_WRITE))
		return false;
	if (wants < had)
		range_free((char *)block + wants, had - wants);
	range_size_set(block, bytes);
	return true;
}

static void *moved(void *block, size_t had, size_t bytes, const void *caller)
{
	void *to = bytes >= LARGE ? block_alloc(bytes, 0, caller) : NULL;

	if (!to)
		to = next_malloc(bytes);
	if (to) {
		if (block)
			memcpy(to, block, had < bytes ? had : bytes);
		free(block);
	}
	return to;
}

static void *resized(void *block, size_t bytes, const void *caller)
{
	if (!block)
		return bytes >= LARGE ? moved(NULL, 0, bytes, caller) : next_malloc(bytes);
	if (!range_has(block)) {
		if (bytes < LARGE || caller_is_library(caller) || !range_ready())
			return next_realloc(block, bytes);
		return moved(block, next_usable_size(block), bytes, caller);
	}
	if (!bytes) {
		free(block);
		return NULL;
	}
	if (range_ready() && block_resize(block, bytes))
		return block;
	return moved(block, range_size(block), bytes, caller);
}

EXPORT void *realloc(void *block, size_t bytes)
{
	return resized(block, bytes, CALLER);
}

EXPORT void *reallocarray(void *block, size_t count, size_t bytes)
{
	size_t all;

	if (__builtin_mul_overflow(count, bytes, &all)) {
		errno = ENOMEM;
		return NULL;
	}
	return resized(block, all, CALLER);
}

static void *aligned(size_t align, size_t bytes, const void *caller)
{
	void *block = NULL;

	if (bytes >= LARGE || (bytes && align >= page_bytes))
		block = block_alloc(bytes, align, caller);
	return block ? block : next_memalign(align, bytes);
}

EXPORT void *memalign(size_t align, size_t bytes)
{
	return aligned(align, bytes, CALLER);
}

EXPORT void *aligned_alloc(size_t align, size_t bytes)
{
	return aligned(align, bytes, CALLER);
}

EXPORT int posix_memalign(void **block, size_t align, size_t bytes)
{
	int err = errno;
	void *at;

	if (!align || align & (align - 1) || align % sizeof(void *))
		return EINVAL;
	at = aligned(align, bytes, CALLER);
	errno = err;
	if (!at)
		return ENOMEM;
	*block = at;
	return 0;
}

EXPORT void *valloc(size_t bytes)
{
	return aligned(page_bytes, bytes, CALLER);
}

EXPORT void *pvalloc(size_t bytes)
{
	size_t pages = whole_pages(bytes ? bytes : 1);

	if (pages < bytes) {
		errno = ENOMEM;
		return NULL;
	}
	return aligned(page_bytes, pages, CALLER);
}

EXPORT size_t malloc_usable_size(void *block)
{
	if (!block)
		return 0;
	return range_has(block) ? whole_pages(range_size(block)) : next_usable_size(block);
}

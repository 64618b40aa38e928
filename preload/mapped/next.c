/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finding the next definitions. dlsym(3) itself may allocate; such calls get memory from a small
 * buffer, which is never given back.
 */
#include "next.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static struct {
	void *(*malloc)(size_t);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void *(*memalign)(size_t, size_t);
	void (*free)(void *);
	size_t (*usable_size)(void *);
	bool found;
} next;

static char early[8192];
static size_t early_used;
static __thread bool finding __attribute__((tls_model("initial-exec")));

static void *early_alloc(size_t bytes)
{
	size_t at = __atomic_fetch_add(&early_used, (bytes + 15) & ~(size_t)15, __ATOMIC_RELAXED);

	return at + bytes <= sizeof(early) ? early + at : NULL;
}

static bool is_early(const void *block)
{
	return (uintptr_t)block - (uintptr_t)early < sizeof(early);
}

/* Several threads may find them at once; they find the same. */
static bool find(void)
{
	if (__atomic_load_n(&next.found, __ATOMIC_ACQUIRE))
		return true;
	if (finding)
		return false;
	finding = true;
	*(void **)(void *)&next.malloc = dlsym(RTLD_NEXT, "malloc");
	*(void **)(void *)&next.calloc = dlsym(RTLD_NEXT, "calloc");
	*(void **)(void *)&next.realloc = dlsym(RTLD_NEXT, "realloc");
	*(void **)(void *)&next.memalign = dlsym(RTLD_NEXT, "memalign");
	*(void **)(void *)&next.free = dlsym(RTLD_NEXT, "free");
	*(void **)(void *)&next.usable_size = dlsym(RTLD_NEXT, "malloc_usable_size");
	__atomic_store_n(&next.found, true, __ATOMIC_RELEASE);
	finding = false;
	return true;
}

void *next_malloc(size_t bytes)
{
	return find() ? next.malloc(bytes) : early_alloc(bytes);
}

void *next_calloc(size_t count, size_t bytes)
{
	/* The buffer is zero, and each part of it is given out once. */
	return find() ? next.calloc(count, bytes) : early_alloc(count * bytes);
}

void *next_realloc(void *block, size_t bytes)
{
	void *moved;

	if (!is_early(block))
		return find() ? next.realloc(block, bytes) : early_alloc(bytes);
	moved = next_malloc(bytes);
	if (moved) {
		size_t rest = (size_t)(early + sizeof(early) - (char *)block);

		memcpy(moved, block, bytes < rest ? bytes : rest);
	}
	return moved;
}

void *next_memalign(size_t align, size_t bytes)
{
	return find() ? next.memalign(align, bytes) : NULL;
}

void next_free(void *block)
{
	if (!is_early(block) && find())
		next.free(block);
}

size_t next_usable_size(void *block)
{
	return find() && !is_early(block) ? next.usable_size(block) : 0;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The accounting allocator: memory comes filled with a pattern, and goes back only as it came. */
#include "parent_allocator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <infiniband/verbatim.h>

#define HUGE_BYTES ((size_t)2 << 20)
#define PATTERN    0xa5

void allocator_init(struct allocator *a)
{
	memset(a, 0, sizeof(*a));
	a->exception = -1;
}

static void complain(struct allocator *a, const char *what)
{
	fprintf(stderr, "allocator: %s\n", what);
	a->wrong++;
}

static size_t huge_size(size_t size)
{
	return (size + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1);
}

static void *block_base(const struct allocator *a, size_t size, size_t alignment)
{
	void *p = NULL;

	if (a->huge) {
		p = mmap(NULL, huge_size(size), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
		return p == MAP_FAILED ? NULL : p;
	}
	return posix_memalign(&p, alignment, size + 64) ? NULL : p;
}

static void *give(struct allocator *a, size_t size, size_t alignment, uint64_t type, bool crooked)
{
	size_t code = (size_t)(type & 7);

	for (size_t i = 0; i < sizeof(a->block) / sizeof(a->block[0]); i++) {
		struct allocator_block *b = &a->block[i];

		if (b->base)
			continue;
		b->base = block_base(a, size, alignment);
		if (!b->base)
			return NULL;
		b->given = crooked ? (char *)b->base + 8 : b->base;
		b->size = size;
		b->type = type;
		memset(b->given, PATTERN, size);
		a->of_type[code]++;
		a->bytes_of_type[code] = size;
		return b->given;
	}
	complain(a, "more blocks than the test expects");
	return NULL;
}

static void *allocate(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
		      uint64_t type)
{
	struct allocator *a = context;
	enum allocator_answer answer = a->allocs == a->exception ? a->otherwise : a->answer;

	a->allocs++;
	if (a->pd && pd != a->pd)
		complain(a, "alloc() was not given the parent domain");
	if (type >> 32 != VERBATIM_DRIVER_ID)
		complain(a, "resource_type has another driver id");
	if ((uint32_t)type < VERBATIM_RESOURCE_SEND_QUEUE || (uint32_t)type > VERBATIM_RESOURCE_CQ)
		complain(a, "resource_type has an undocumented code");
	if (!size || !alignment || (alignment & (alignment - 1)))
		complain(a, "size or alignment make no sense");
	if (answer == ANSWER_NULL)
		return NULL;
	if (answer == ANSWER_DEFAULT)
		return IBV_ALLOCATOR_USE_DEFAULT;
	return give(a, size, alignment, type, answer == ANSWER_MISALIGNED);
}

static void take_back(struct ibv_pd *pd, void *context, void *ptr, uint64_t type)
{
	struct allocator *a = context;

	a->frees++;
	if (a->pd && pd != a->pd)
		complain(a, "free() was not given the parent domain");
	for (size_t i = 0; i < sizeof(a->block) / sizeof(a->block[0]); i++) {
		struct allocator_block *b = &a->block[i];

		if (!b->base || b->given != ptr)
			continue;
		if (b->type != type)
			complain(a, "free() has another type than alloc()");
		if (a->huge)
			munmap(b->base, huge_size(b->size));
		else
			free(b->base);
		b->base = b->given = NULL;
		return;
	}
	complain(a, "free() of what alloc() never gave, or twice");
}

struct ibv_parent_domain_init_attr allocator_attr(struct allocator *a, struct ibv_pd *pd)
{
	return (struct ibv_parent_domain_init_attr){
		.pd = pd,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = allocate,
		.free = take_back,
		.pd_context = a,
	};
}

int allocator_live(const struct allocator *a)
{
	int n = 0;

	for (size_t i = 0; i < sizeof(a->block) / sizeof(a->block[0]); i++)
		n += a->block[i].base != NULL;
	return n;
}

bool allocator_holds(const struct allocator *a, uint32_t code, const void *bytes, size_t length)
{
	for (size_t i = 0; i < sizeof(a->block) / sizeof(a->block[0]); i++) {
		const struct allocator_block *b = &a->block[i];

		if (b->base && (uint32_t)b->type == code &&
		    memmem(b->given, b->size, bytes, length))
			return true;
	}
	return false;
}

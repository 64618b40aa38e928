/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An allocator for parent domains that keeps account: what was asked for, what came back, and
 * whether that was right.
 */
#ifndef TESTS_CALLS_PD_PARENT_ALLOCATOR_H
#define TESTS_CALLS_PD_PARENT_ALLOCATOR_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum allocator_answer { ANSWER_MEMORY, ANSWER_NULL, ANSWER_DEFAULT, ANSWER_MISALIGNED };

struct allocator_block {
	void *base; /* what was mapped or allocated, NULL: free */
	void *given;
	size_t size;
	uint64_t type;
};

struct allocator {
	struct ibv_pd *pd;            /* what both callbacks must be given; NULL: not known yet */
	bool huge;                    /* blocks are mapped huge pages */
	enum allocator_answer answer; /* to the calls that `exception` does not name */
	int exception; /* the number of the call from 0 that is answered otherwise, -1: none */
	enum allocator_answer otherwise;
	int allocs, frees; /* calls */
	int wrong;         /* calls with something wrong, each printed */
	int of_type[8];    /* blocks given, by code */
	size_t bytes_of_type[8];
	struct allocator_block block[64];
};

void allocator_init(struct allocator *a);
/* Attributes that name the allocator as pd_context. */
struct ibv_parent_domain_init_attr allocator_attr(struct allocator *a, struct ibv_pd *pd);
/* Blocks that were given and have not come back. */
int allocator_live(const struct allocator *a);
/*
 * Does [ptr, ptr + size) of a live block of the code contain these bytes? For telling that the
 * library really uses the memory.
 */
bool allocator_holds(const struct allocator *a, uint32_t code, const void *bytes, size_t length);

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Imported regions: a key of this process that stands for a key of the region's owner, another process or this one.
 *
 * The owner's entry is judged at every use, and its memory is reached as one-sided requests reach it, under a mark, so
 * that the owner's ibv_dereg_mr(3) revokes here as well. After its death every use is refused.
 */
#ifndef VB_MEMORY_FOREIGN_H
#define VB_MEMORY_FOREIGN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/reason.h"
#include "memory/memory.h"

struct vb_peer;

struct vb_foreign {
	struct vb_peer *owner; /* with a reference */
	uint32_t key;          /* in the owner's table */
	uint32_t pd;           /* its domain's number there */
	/* A part of it, addressed from 0 and with rights of its own; else all of it, as the owner has registered it. */
	bool part;
	uint64_t offset, length;
	uint32_t access;
};

/* Is the owner's key still what it was? Also after the owner's death, when its shared memory is nobody else's. */
bool vb_foreign_current(const struct vb_foreign *f);

/* `key` is this process's, its entry not valid yet. The record must stay until the key was withdrawn and quiesced. */
int vb_foreign_add(uint32_t key, const struct vb_foreign *record);
void vb_foreign_remove(uint32_t key);

/* How many there are. */
extern _Atomic uint32_t vb_foreign_count;

/* Is there any? One load: everything below is asked only then. */
static inline bool vb_foreign_any(void)
{
	return atomic_load_explicit(&vb_foreign_count, memory_order_relaxed) != 0;
}

bool vb_foreign_is(const struct vb_mem *mem, uint32_t key);

/* As vb_mem_check(); *addr is an address of the owner's. */
enum vb_reason vb_foreign_check(const struct vb_mem *mem, uint32_t key, uint64_t va,
				uint64_t length, uint32_t need, enum vb_access_side side,
				uint64_t *addr);

/* Checks and copies between the region and memory of ours. */
enum vb_reason vb_foreign_read(const struct vb_mem *mem, uint32_t key, uint64_t va, void *dst,
			       uint64_t length, uint32_t need, enum vb_access_side side);
enum vb_reason vb_foreign_write(const struct vb_mem *mem, uint32_t key, uint64_t va,
				const void *src, uint64_t length, uint32_t need,
				enum vb_access_side side);
enum vb_reason vb_foreign_atomic(const struct vb_mem *mem, uint32_t key, uint64_t va,
				 bool compare_swap, uint64_t swap_add, uint64_t compare,
				 uint64_t *original);

#endif

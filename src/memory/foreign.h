/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Imported regions: a key of this process that stands for a key of the region's owner. The owner is
 * another process or this one.
 *
 * The owner's entry is judged at every use. Its memory is reached as one-sided requests reach it,
 * under a mark, so the owner's ibv_dereg_mr(3) revokes the import as well. After the owner's death
 * every use is refused.
 */
#ifndef VB_MEMORY_FOREIGN_H
#define VB_MEMORY_FOREIGN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/reason.h"
#include "transport/access.h"

struct vb_mem;
struct vb_peer;

struct vb_foreign {
	struct vb_peer *owner; /* holds a reference */
	uint32_t key;          /* in the owner's key table */
	uint32_t pd;           /* number of the owner's protection domain */
	/*
	 * True: the view is a part of the region, addressed from 0 and with rights of its own.
	 * False: it is the whole region as its owner has registered it.
	 */
	bool part;
	uint64_t offset, length;
	uint32_t access;
};

/*
 * Whether the owner's key is still the one that was imported. Also answers after the owner's death,
 * when no other process can change its shared memory.
 */
bool vb_foreign_current(const struct vb_foreign *f);

/*
 * `key` is a key of this process whose entry is not valid yet. The record must stay until the key
 * was withdrawn and quiesced.
 */
int vb_foreign_add(uint32_t key, const struct vb_foreign *record);
void vb_foreign_remove(uint32_t key);

/* The number of imported regions. */
extern _Atomic uint32_t vb_foreign_count;

/* Whether there are imported regions: one load. Everything below is called only when there are. */
static inline bool vb_foreign_any(void)
{
	return atomic_load_explicit(&vb_foreign_count, memory_order_relaxed) != 0;
}

bool vb_foreign_is(const struct vb_mem *mem, uint32_t key);

/* As vb_mem_check(); *addr is an address in the owner's address space. */
enum vb_reason vb_foreign_check(const struct vb_mem *mem, uint32_t key, uint64_t va,
				uint64_t length, uint32_t need, enum vb_access_side side,
				uint64_t *addr);

/* Checks, then copies between the region and memory of this process. */
enum vb_reason vb_foreign_read(const struct vb_mem *mem, uint32_t key, uint64_t va, void *dst,
			       uint64_t length, uint32_t need, enum vb_access_side side);
enum vb_reason vb_foreign_write(const struct vb_mem *mem, uint32_t key, uint64_t va,
				const void *src, uint64_t length, uint32_t need,
				enum vb_access_side side);
enum vb_reason vb_foreign_atomic(const struct vb_mem *mem, uint32_t key, uint64_t va,
				 bool compare_swap, uint64_t swap_add, uint64_t compare,
				 uint64_t *original);

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registered memory of this process: keys are looked up and checked at every use, scatter/gather
 * lists walked.
 */
#ifndef VB_MEMORY_MEMORY_H
#define VB_MEMORY_MEMORY_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/reason.h"
#include "memory/foreign.h"
#include "memory/key_user.h"
#include "transport/access.h"

/*
 * Checks one range against one key. `need`: enum ibv_access_flags bits (local side: 0 or
 * IBV_ACCESS_LOCAL_WRITE). length > 0.
 */
enum vb_reason vb_mem_check(const struct vb_mem *mem, uint32_t key, uint64_t va, uint64_t length,
			    uint32_t need, enum vb_access_side side, uint64_t *addr);

/*
 * The remote side's check. It also logs, under the reason's code, which key, range or right is
 * wrong. `what`: "WRITE".
 */
enum vb_reason vb_mem_check_explained(const struct vb_mem *mem, const char *what, uint32_t key,
				      uint64_t va, uint64_t length, uint32_t need, uint64_t *addr);

/* The rest of a part of a scatter/gather list, which a walk has not visited yet. */
struct vb_mem_cursor {
	const struct vb_mem *mem;
	const struct ibv_sge *sge;
	uint32_t num_sge;
	uint32_t at;     /* index of the next element */
	uint64_t offset; /* offset into the elements from `at` on */
	uint64_t length; /* bytes left */
	uint32_t need;   /* 0, or IBV_ACCESS_LOCAL_WRITE */
};

/* The next pieces of the part, as vectors in this process. */
struct vb_mem_vectors {
	struct iovec *iov; /* the caller's array of `max` places; at most 64 */
	int max;
	int count;      /* vectors found */
	uint64_t bytes; /* bytes that the vectors cover */
	/*
	 * Bit i: vector i is of an on-demand region; the program may have unmapped it, so the
	 * kernel must copy.
	 */
	uint64_t paged;
	uint64_t null; /* bit i: vector i is of the null region, which has no memory */
};

/*
 * Fills the vectors and moves on. Only the keys of elements that the part touches are checked (IBA
 * 10.6.3: an element's key matters when the element is used). No vector is found where the list is
 * shorter than the part.
 */
enum vb_reason vb_mem_next(struct vb_mem_cursor *cursor, struct vb_mem_vectors *vectors);

/* True if no element of the list is an imported region: all memory is in this process. */
bool vb_mem_is_ours(const struct vb_mem *mem, const struct ibv_sge *sge, uint32_t num_sge);

/* Checks every element of the list without copying. */
enum vb_reason vb_mem_check_list(const struct vb_mem *mem, const struct ibv_sge *sge,
				 uint32_t num_sge, uint32_t need);

/*
 * True if all elements with valid keys are in plain memory; elements with other keys do not count.
 */
bool vb_mem_is_plain(const struct vb_mem *mem, const struct ibv_sge *sge, uint32_t num_sge);

/* The program may unmap the memory of such a region, so the kernel has to copy. */
static inline bool vb_mem_is_paged(const struct vb_key *k)
{
	return k->access & IBV_ACCESS_ON_DEMAND;
}

/*
 * Most parts lie in one element of an ordinary region. Returns their address. NULL: they do not, or
 * are not allowed to be used; the walk of gather and scatter finds out which, and says so.
 */
static inline void *vb_mem_whole_part(const struct vb_mem *mem, const struct ibv_sge *sge,
				      uint32_t num_sge, uint64_t offset, uint64_t length,
				      uint32_t need)
{
	if (num_sge != 1 || offset > sge->length || length > sge->length - offset ||
	    vb_foreign_any())
		return NULL;
	const struct vb_key *k = &mem->keys->key[vb_key_slot(sge->lkey)];
	uint64_t va = sge->addr + offset;

	if (!vb_access_region(k, sge->lkey, mem->pd, mem->qpn, va, length, need) ||
	    vb_mem_is_paged(k))
		return NULL;
	return (void *)(uintptr_t)(k->base + (va - k->start));
}

/*
 * Copy out of and into a list. MEMORY_GONE: the program has unmapped memory of an on-demand region.
 */
enum vb_reason vb_mem_gather(const struct vb_mem *mem, const struct ibv_sge *sge, uint32_t num_sge,
			     uint64_t offset, void *dst, uint64_t length);
enum vb_reason vb_mem_scatter(const struct vb_mem *mem, const struct ibv_sge *sge, uint32_t num_sge,
			      uint64_t offset, const void *src, uint64_t length);

#endif

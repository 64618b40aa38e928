/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registered memory of this process: keys looked up and checked at every use, scatter/gather lists walked. */
#ifndef VB_MEMORY_MEMORY_H
#define VB_MEMORY_MEMORY_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/reason.h"
#include "host/page.h"
#include "transport/access.h"

/* Where keys are looked up, and for whom. */
struct vb_mem {
	const struct vb_keyring *keys;
	uint32_t pd;
	uint32_t qpn;
	uint32_t engine; /* whose lock is held, and whose mark may be set */
};

/* One range through one key. need: enum ibv_access_flags bits (local side: 0 or IBV_ACCESS_LOCAL_WRITE). length > 0. */
enum vb_reason vb_mem_check(const struct vb_mem *mem, uint32_t key, uint64_t va, uint64_t length,
			    uint32_t need, enum vb_access_side side, uint64_t *addr);

/* The remote side's check that also says, under the reason's code, which key, range or right is wrong. `what`: "WRITE". */
enum vb_reason vb_mem_check_explained(const struct vb_mem *mem, const char *what, uint32_t key,
				      uint64_t va, uint64_t length, uint32_t need, uint64_t *addr);

/* A part of a scatter/gather list on its way through a walk: what is left of it. */
struct vb_mem_cursor {
	const struct vb_mem *mem;
	const struct ibv_sge *sge;
	uint32_t num_sge;
	uint32_t at;     /* the element that it has come to */
	uint64_t offset; /* into the elements from there on */
	uint64_t length; /* bytes that are left */
	uint32_t need;   /* 0, or IBV_ACCESS_LOCAL_WRITE */
};

/* The next pieces of such a part as vectors in this process. */
struct vb_mem_vectors {
	struct iovec *iov; /* the caller's, of `max` places; at most 64 */
	int max;
	int count;      /* of what was found */
	uint64_t bytes; /* that they cover */
	uint64_t paged; /* bit i for vector i: on demand; the program may have unmapped it, the kernel has to copy */
	uint64_t null; /* likewise: of the null region, no memory at all */
};

/*
 * Fills the vectors and moves on. Only the keys of elements that the part touches are checked (IBA 10.6.3: an element's key matters when it
 * is used). No vector is found where the list is shorter than the part.
 */
enum vb_reason vb_mem_next(struct vb_mem_cursor *cursor, struct vb_mem_vectors *vectors);

/* No element of the list is an imported region: its memory is in this process. */
bool vb_mem_is_ours(const struct vb_mem *mem, const struct ibv_sge *sge, uint32_t num_sge);

/* Every element of the list, checked without copying. */
enum vb_reason vb_mem_check_list(const struct vb_mem *mem, const struct ibv_sge *sge,
				 uint32_t num_sge, uint32_t need);

/* Do all elements lie in plain memory? Of keys that are valid; others do not count. */
bool vb_mem_is_plain(const struct vb_mem *mem, const struct ibv_sge *sge, uint32_t num_sge);

/* Copies out of and into a list. What the program has unmapped from an on-demand region: MEMORY_GONE. */
enum vb_reason vb_mem_gather(const struct vb_mem *mem, const struct ibv_sge *sge, uint32_t num_sge,
			     uint64_t offset, void *dst, uint64_t length);
enum vb_reason vb_mem_scatter(const struct vb_mem *mem, const struct ibv_sge *sge, uint32_t num_sge,
			      uint64_t offset, const void *src, uint64_t length);

#endif

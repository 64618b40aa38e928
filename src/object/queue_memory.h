/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory of a queue: the library's own, or from the allocator of a parent domain
 * (ibv_alloc_parent_domain(3)).
 */
#ifndef VB_OBJECT_QUEUE_MEMORY_H
#define VB_OBJECT_QUEUE_MEMORY_H

#include <infiniband/verbatim.h>
#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#define VB_QUEUE_ALIGNMENT 64u

struct vb_queue_memory {
	void *ptr; /* NULL: none */
	size_t bytes;
	struct ibv_pd *pd; /* its free() takes the memory back; NULL: own memory */
	uint64_t type;     /* resource_type */
};

/*
 * Zeroed memory at a multiple of VB_QUEUE_ALIGNMENT. `pd` may be NULL; it must outlive the memory.
 * Calls the program: the caller must hold no lock. -ENOMEM; -EINVAL if the allocator returned
 * memory that is not aligned.
 */
int vb_queue_memory_alloc(struct vb_queue_memory *m, struct ibv_pd *pd, size_t bytes,
			  enum verbatim_resource resource);
/* Does nothing if there is no memory. Calls the program: the caller must hold no lock. */
void vb_queue_memory_free(struct vb_queue_memory *m);

#endif

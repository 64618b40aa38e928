/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory of a queue. The library's own memory of a large queue is mapped: parts that are never
 * used cost nothing. A small queue is allocated: a mapping would cost a whole page, and a process
 * with thousands of queues would come to the bound that the kernel sets to mappings.
 */
#include "object/queue_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/reason.h"
#include "base/sys.h"
#include "object/pd.h"

#define SMALL_BYTES 4096u
#define SMALL_ALIGN 64u /* queues share no cache line */

static void *small_alloc(size_t bytes)
{
	size_t whole = (bytes + SMALL_ALIGN - 1) & ~(size_t)(SMALL_ALIGN - 1);
	void *p = aligned_alloc(SMALL_ALIGN, whole);

	return p ? memset(p, 0, whole) : NULL;
}

static void *large_alloc(size_t bytes)
{
	void *p = vb_sys_pages(bytes);

	return p == MAP_FAILED ? NULL : p;
}

static bool is_small(const struct vb_queue_memory *m)
{
	return m->bytes && m->bytes < SMALL_BYTES;
}

static int own_alloc(struct vb_queue_memory *m)
{
	void *p = is_small(m) ? small_alloc(m->bytes) : large_alloc(m->bytes);

	if (!p)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "%zu bytes for a queue: %s", m->bytes,
				 strerror(errno));
	m->ptr = p;
	return 0;
}

/*
 * The callback promises zeros. Memory that is not zeroed would be a fault hard to find, so zeros
 * are written.
 */
static int foreign_alloc(struct vb_queue_memory *m, struct ibv_pd *pd)
{
	const struct vb_pd *p = vb_pd_of(pd);
	void *ptr = p->alloc(pd, p->pd_context, m->bytes, VB_QUEUE_ALIGNMENT, m->type);

	if (ptr == IBV_ALLOCATOR_USE_DEFAULT)
		return own_alloc(m);
	if (!ptr)
		return vb_refuse(ENOMEM, VB_REASON_ALLOCATOR,
				 "the parent domain's alloc() gave NULL for %zu bytes of type %llu",
				 m->bytes, (unsigned long long)m->type);
	if ((uintptr_t)ptr % VB_QUEUE_ALIGNMENT) {
		p->free(pd, p->pd_context, ptr, m->type);
		return vb_refuse(EINVAL, VB_REASON_ALLOCATOR,
				 "the parent domain's alloc() gave %p, not a multiple of %u", ptr,
				 VB_QUEUE_ALIGNMENT);
	}
	m->ptr = memset(ptr, 0, m->bytes);
	m->pd = pd;
	return 0;
}

int vb_queue_memory_alloc(struct vb_queue_memory *m, struct ibv_pd *pd, size_t bytes,
			  enum verbatim_resource resource)
{
	*m = (struct vb_queue_memory){
		.bytes = bytes,
		.type = VERBATIM_RESOURCE_TYPE(resource),
	};
	return pd && vb_pd_of(pd)->alloc ? foreign_alloc(m, pd) : own_alloc(m);
}

void vb_queue_memory_free(struct vb_queue_memory *m)
{
	void *ptr = m->ptr;

	m->ptr = NULL;
	if (ptr && m->pd)
		vb_pd_of(m->pd)->free(m->pd, vb_pd_of(m->pd)->pd_context, ptr, m->type);
	else if (ptr && is_small(m))
		free(ptr);
	else if (ptr)
		munmap(ptr, m->bytes);
}

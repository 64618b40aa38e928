/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory regions: the public object and its entry in the process's published key table.
 *
 * Registering copies and pins nothing. A region's lkey and rkey are the same number, also after
 * ibv_rereg_mr(3).
 */
#ifndef VB_MEMORY_MR_H
#define VB_MEMORY_MR_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct vb_key;

/* Memory that the device provides. Regions are registered on pieces of it. */
struct vb_provided {
	_Atomic uint32_t users; /* regions, and the holder of the memory itself */
	/* Called when the last user is gone; NULL: nothing follows. */
	void (*end)(struct vb_provided *memory);
};

static inline void vb_provided_get(struct vb_provided *memory)
{
	atomic_fetch_add(&memory->users, 1);
}

static inline void vb_provided_put(struct vb_provided *memory)
{
	if (atomic_fetch_sub(&memory->users, 1) == 1 && memory->end)
		memory->end(memory);
}

struct vb_mr {
	struct ibv_mr mr;
	struct vb_key *entry;
	struct ibv_pd *given; /* has the region as a user: mr.pd, or a parent domain of it */
	void *memory;         /* the memory that the region covers; may differ from mr.addr */
	struct vb_provided *provided; /* the memory that the region is a piece of, or NULL */
	void *map;                    /* mapping of a dma-buf, used by the library alone, or NULL */
	size_t map_length;
	uint64_t iova;
	pthread_mutex_t lock; /* orders calls of ibv_rereg_mr(3) */
	uint32_t kind;        /* enum vb_key_kind */
	unsigned int access;  /* without the optional bits */
	bool foreign;         /* the region is imported */
	bool shared; /* other processes may have mapped the memory too (transport/access.h) */
	bool dead;   /* a failed rereg left it unusable (IBV_REREG_MR_ERR_CMD) */
};

static inline struct vb_mr *vb_mr_of(struct ibv_mr *mr)
{
	return (struct vb_mr *)(void *)mr;
}

/*
 * Drops optional bits that are unknown and judges the others (ibv_reg_mr(3)). Returns 0, -EINVAL or
 * -EOPNOTSUPP with the reason recorded.
 */
int vb_mr_check_access(unsigned int *access);

int vb_mr_register(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access,
		   struct ibv_mr **mr);
/*
 * Registers a zero-based region of memory that the device provides. The caller has counted the
 * region as a user of `provided`; the region counts itself down when it ends.
 */
int vb_mr_register_piece(struct ibv_pd *pd, void *memory, size_t length, unsigned int access,
			 struct vb_provided *provided, struct ibv_mr **mr);
struct vb_foreign;
/*
 * A view of another process's or context's region, or of a part of imported memory (`provided`,
 * with the region already counted, or NULL). Owns the record's reference when it succeeds.
 * vb_mr_deregister() ends it.
 */
int vb_mr_import(struct ibv_pd *pd, const struct vb_foreign *record, size_t length,
		 struct vb_provided *provided, struct ibv_mr **mr);
/*
 * A mapping of `length` bytes at `memory`, which is removed when the region ends. `addr` is the
 * address that programs see.
 */
struct vb_mr_mapping {
	void *map, *memory;
	size_t map_length, length;
	uint64_t iova;
	void *addr;
};

int vb_mr_register_mapping(struct ibv_pd *pd, const struct vb_mr_mapping *mapping,
			   unsigned int access, struct ibv_mr **mr);
/* mr_dmabuf.c: ibv_reg_dmabuf_mr(3). */
int vb_mr_register_dmabuf(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
			  unsigned int access, struct ibv_mr **mr);
/* ibv_alloc_null_mr(3) */
int vb_mr_alloc_null(struct ibv_pd *pd, struct ibv_mr **mr);
/* mr_advise.c: ibv_advise_mr(3) */
int vb_mr_advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		 const struct ibv_sge *sge, uint32_t num_sge);
/* Returns 0 or an enum ibv_rereg_mr_err_code. */
int vb_mr_reregister(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		     int access);
/* When it returns, no access through the region is under way any more. */
int vb_mr_deregister(struct ibv_mr *mr);

struct vb_object_type;
extern const struct vb_object_type vb_mr_type;

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Device memory (ibv_alloc_dm(3)): pieces of the arena that peers map (host/arena.h). */
#ifndef VB_MEMORY_DM_H
#define VB_MEMORY_DM_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "memory/foreign.h"
#include "memory/mr.h"
#include "host/piece.h"

struct vb_node;
struct vb_peer;

struct vb_dm {
	struct ibv_dm dm;
	struct vb_node *node; /* the memory is a piece of this node's arena */
	char *addr;
	size_t length;
	size_t charged;            /* its share of max_dm_size (vb_piece_bytes()) */
	struct vb_piece piece;     /* unused for imported memory */
	struct vb_provided memory; /* its users are regions */
	/*
	 * No queue pair may use this key. Others import the memory by it, and it dies when the
	 * memory is freed. Therefore a view never becomes one of the memory that uses the place
	 * next.
	 */
	uint32_t key;
	struct vb_key *entry;
	bool imported;
	struct vb_foreign view; /* of imported memory: the owner and its key */
	/* Of memory imported from another process: where it is mapped here. */
	void *mapping;
};

static inline struct vb_dm *vb_dm_of(struct ibv_dm *dm)
{
	return (struct vb_dm *)(void *)dm;
}

int vb_dm_alloc(struct ibv_context *ctx, const struct ibv_alloc_dm_attr *attr, struct ibv_dm **dm);
/*
 * A view of another context's memory. Owns the record's reference when it succeeds. vb_dm_free()
 * ends it.
 */
int vb_dm_import(struct ibv_context *ctx, const struct vb_foreign *view, uint64_t addr,
		 size_t length, struct ibv_dm **dm);
int vb_dm_free(struct ibv_dm *dm);
/* `to`: copies into device memory, else out of it. */
int vb_dm_copy(struct ibv_dm *dm, uint64_t offset, void *host, size_t length, bool to);
int vb_dm_register(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
		   unsigned int access, struct ibv_mr **mr);
/* Returns a descriptor of a dma-buf, or -errno. */
int vb_dm_export(struct ibv_dm *dm);

struct vb_object_type;
extern const struct vb_object_type vb_dm_type;

#endif

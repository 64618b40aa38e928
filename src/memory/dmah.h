/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * DMA handles (ibv_alloc_dmah(3)): hints for a bus that does not exist here. They are checked and
 * kept, and do not affect where data goes.
 */
#ifndef VB_MEMORY_DMAH_H
#define VB_MEMORY_DMAH_H

#include <infiniband/verbs.h>

int vb_dmah_alloc(struct ibv_context *ctx, const struct ibv_dmah_init_attr *attr,
		  struct ibv_dmah **dmah);
int vb_dmah_dealloc(struct ibv_dmah *dmah);
/* Checks the handle with which a region is being registered. */
int vb_dmah_check(struct ibv_context *ctx, struct ibv_dmah *dmah);

struct vb_object_type;
extern const struct vb_object_type vb_dmah_type;

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Look-ups in the GID table that other files of the face need.
 */
#ifndef VB_VERBS_GID_H
#define VB_VERBS_GID_H

#include <infiniband/verbs.h>

/*
 * *type gets the enum ibv_gid_type of an entry (0 if the entry is empty). -EINVAL: no such entry.
 */
int vb_gid_type(struct ibv_context *ctx, uint8_t port, int index, uint32_t *type);

/* The index of the entry with this address and enum ibv_gid_type. -ENOENT, or -EINVAL (port). */
int vb_gid_find(struct ibv_context *ctx, uint8_t port, const union ibv_gid *gid, uint32_t type);

#endif

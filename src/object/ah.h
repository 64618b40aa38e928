/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Address handles: a resolved copy of the attributes. */
#ifndef VB_OBJECT_AH_H
#define VB_OBJECT_AH_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "transport/run.h"

struct vb_ah {
	struct ibv_ah ah;
	struct ibv_ah_attr attr;
	struct vb_path path; /* sgid from the table, hop limit 0 replaced by 64 */
	bool local;          /* the destination is an address of this host */
};

static inline struct vb_ah *vb_ah_of(struct ibv_ah *ah)
{
	return (struct vb_ah *)(void *)ah;
}

/*
 * Resolves address attributes (also those of ibv_modify_qp(3)): port, is_global, sgid_index, dgid.
 * Fills *path and *local. -EINVAL with the reason recorded.
 */
int vb_ah_resolve(struct ibv_context *ctx, const struct ibv_ah_attr *attr, struct vb_path *path,
		  bool *local);

/*
 * VERBATIM_LINK=udp: processes of this host are reached as those of other hosts are, by UDP. For
 * trying programs: on loss (VERBATIM_FAULT), on the speed of the network.
 */
bool vb_ah_udp_only(void);

int vb_ah_create(struct ibv_pd *pd, const struct ibv_ah_attr *attr, struct ibv_ah **ah);
int vb_ah_destroy(struct ibv_ah *ah);

struct vb_object_type;
extern const struct vb_object_type vb_ah_type;

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The path of an id (resolve_route.c). */
#ifndef VB_RDMACM_PATH_H
#define VB_RDMACM_PATH_H

#include <infiniband/sa.h>

struct vb_cma_id;

/* The path between the id's addresses, by its options. With the id's lock. -EINVAL, -ENODEV. */
int vb_cma_path_make(const struct vb_cma_id *id, struct ibv_sa_path_rec *path);

/* Gives the id its paths, which it frees, and the state ROUTE_RESOLVED. With the id's lock. */
void vb_cma_path_use(struct vb_cma_id *id, struct ibv_sa_path_rec *paths, int count);

#endif

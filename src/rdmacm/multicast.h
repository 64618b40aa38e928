/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memberships of an id in multicast groups (multicast_join.c). */
#ifndef VB_RDMACM_MULTICAST_H
#define VB_RDMACM_MULTICAST_H

struct vb_cma_id;

/* The id's queue pair, which is about to go, leaves its groups; the id stays a member. */
void vb_cma_multicast_detach(struct vb_cma_id *id);

/* Leaves all groups, and frees what is left of them. No event of the id is with the program. */
void vb_cma_multicast_end(struct vb_cma_id *id);

#endif

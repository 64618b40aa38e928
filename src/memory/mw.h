/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory windows: a window is an entry of the key table that a bind makes valid over part of a region.
 *
 * Type 1 is bound by ibv_bind_mw(3), which picks the key's new tag; its window serves every queue pair of the protection domain.
 * Type 2 (2B) is bound by a work request that brings the tag, serves only the queue pair that it was bound on, and has to be
 * invalidated before it is bound again. A bind or an invalidation happens in the engine, when the work request's turn has come:
 * work requests name windows and regions by key, because either may be gone by then.
 *
 * One lock guards all windows and the count of windows of each region. It is taken inside an engine's lock.
 */
#ifndef VB_MEMORY_MW_H
#define VB_MEMORY_MW_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/reason.h"
#include "transport/wqe.h"

struct vb_key;

struct vb_mw {
	struct ibv_mw mw;
	struct vb_key *entry; /* its key is 0 while the window is not bound */
	uint32_t key;         /* as allocated; later ones differ in their tags */
	_Atomic uint32_t tag; /* type 1: of the latest bind that was posted */
	uint32_t pd_id;
	struct vb_key *region;     /* what it is bound to, else NULL */
	struct vb_mw **list;       /* type 2: of the queue pair that it is bound on, else NULL */
	struct vb_mw *next, *prev; /* in that list */
};

static inline struct vb_mw *vb_mw_of(struct ibv_mw *mw)
{
	return (struct vb_mw *)(void *)mw;
}

/* mw.c */
int vb_mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw **mw);
/* When it returns, nobody touches memory through the window any more. */
int vb_mw_dealloc(struct ibv_mw *mw);

/* What a window is bound on: a queue pair, and its list of windows of type 2. */
struct vb_mw_place {
	struct vb_mw **list;
	uint32_t qpn, pd_id;
};

/* mw_bind.c: what an engine does (its lock is held). */
enum vb_reason vb_mw_bind(const struct vb_mw_place *on, const struct vb_send_wqe *wqe);
enum vb_reason vb_mw_invalidate(struct vb_mw **list, uint32_t key);
/* The queue pair is being destroyed: windows bound on it are bound no more (IBA 10.6.7.2.6). */
void vb_mw_release(struct vb_mw **list);

/* mw_bind.c: the table. A window is found by its key from listing (-ENOMEM) to unlisting, which unbinds it and answers the dead key. */
int vb_mw_list(struct vb_mw *m);
uint32_t vb_mw_unlist(struct vb_mw *m);
/* Makes the region's key invalid unless windows are bound to it; false: they are, nothing has happened. */
bool vb_mw_withdraw_region(struct vb_key *region);

/* vb_send_wqe.window_rights of a bind: rights, and whether ibv_bind_mw(3) made it. */
#define VB_MW_BIND_TYPE_1 (1ull << 32)
#define VB_MW_RIGHTS                                                                   \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
	 IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT)

struct vb_object_type;
extern const struct vb_object_type vb_mw_type;

#endif

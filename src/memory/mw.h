/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory windows: a window is an entry of the key table that a bind makes valid over part of a
 * region.
 *
 * Type 1 is bound by ibv_bind_mw(3), which picks the key's new tag. Such a window serves every
 * queue pair of the protection domain. Type 2 (2B) is bound by a work request that brings the tag.
 * Such a window serves only the queue pair that it was bound on, and must be invalidated before it
 * is bound again. The engine does a bind or an invalidation when the work request's turn has come.
 * Work requests name windows and regions by key, because either may have ended by then.
 *
 * One lock guards all windows and the count of windows of each region. It is taken inside an
 * engine's lock.
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
	struct ibv_pd *given; /* has the window as a user: mw.pd, or a parent domain of it */
	struct vb_key *entry; /* its key is 0 while the window is not bound */
	uint32_t key;         /* as allocated; later keys differ in their tags */
	_Atomic uint32_t tag; /* type 1: of the latest bind that was posted */
	uint32_t pd_id;
	struct vb_key *region; /* the region that it is bound to, else NULL */
	/* Type 2: the list of the queue pair that it is bound on, else NULL. */
	struct vb_mw **list;
	struct vb_mw *next, *prev; /* in that list */
};

static inline struct vb_mw *vb_mw_of(struct ibv_mw *mw)
{
	return (struct vb_mw *)(void *)mw;
}

/* mw.c */
int vb_mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw **mw);
/* When it returns, no access through the window is under way any more. */
int vb_mw_dealloc(struct ibv_mw *mw);

/* The place that a window is bound on: a queue pair, and the list of its windows of type 2. */
struct vb_mw_place {
	struct vb_mw **list;
	uint32_t qpn, pd_id;
};

/* mw_bind.c: called by an engine, with its lock held. */
enum vb_reason vb_mw_bind(const struct vb_mw_place *on, const struct vb_send_wqe *wqe);
enum vb_reason vb_mw_invalidate(struct vb_mw **list, uint32_t key);
/*
 * Called when the queue pair is being destroyed: windows that are bound on it become unbound (IBA
 * 10.6.7.2.6).
 */
void vb_mw_release(struct vb_mw **list);

/*
 * mw_bind.c: the table. A window can be found by its key from vb_mw_list() (-ENOMEM) to
 * vb_mw_unlist(), which unbinds it and returns the key that it had.
 */
int vb_mw_list(struct vb_mw *m);
uint32_t vb_mw_unlist(struct vb_mw *m);
/*
 * Makes the region's key invalid, unless windows are bound to it. False: windows are bound, and
 * nothing has changed.
 */
bool vb_mw_withdraw_region(struct vb_key *region);

/* vb_send_wqe.window_rights of a bind: rights, and whether ibv_bind_mw(3) made the request. */
#define VB_MW_BIND_TYPE_1 (1ull << 32)
#define VB_MW_RIGHTS                                                                   \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
	 IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT)

struct vb_object_type;
extern const struct vb_object_type vb_mw_type;

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The parts of a receive work queue, for wq.c and the tables of rwq_table.c. */
#ifndef VB_RAW_WQ_PRIVATE_H
#define VB_RAW_WQ_PRIVATE_H

#include <stdatomic.h>

#include "base/lock.h"
#include "engine/cq.h"
#include "engine/recv_queue.h"
#include "host/page.h"

struct vb_wq {
	struct ibv_wq wq;
	/* Taken by posters, and by every engine whose frames come here; before cq.lock. */
	struct vb_lock lock;
	struct vb_recv_queue rq;
	struct vb_cq *cq;
	struct vb_cq_owner completions;
	enum ibv_wq_state state;
	uint32_t flags; /* enum ibv_wq_flags */
	uint32_t pd_id;
	bool broken;             /* a completion did not fit */
	_Atomic uint32_t tables; /* tables that have it */
	struct vb_event_node fatal;
	struct vb_events_got got;
};

static inline struct vb_wq *vb_wq_of(struct ibv_wq *wq)
{
	return (struct vb_wq *)(void *)wq;
}

/* False: dropped, with the reason recorded. */
bool vb_wq_receive(struct vb_wq *w, const struct vb_keyring *keys, const void *data,
		   uint32_t length, uint32_t flags, const struct vb_cqe_more *more);

#endif

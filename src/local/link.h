/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The links within a host: rings of shared memory to another process (shm), and rings within the
 * process (loop). Which of them a connected queue pair takes is known when its channel is found;
 * until then it is shm.
 */
#ifndef VB_LOCAL_LINK_H
#define VB_LOCAL_LINK_H

#include <stdbool.h>

#include "engine/engine.h"
#include "engine/engine_channel.h"
#include "engine/link.h"
#include "host/channel.h"
#include "qp/qp.h"

extern const struct vb_link vb_shm_link, vb_loop_link;

/* near.c: what was judged of the peer's memory does not hold for another channel; RESET. */
void vb_local_near_forget(struct vb_qp *qp);
void vb_local_near_free(struct vb_qp *qp);

static inline void vb_local_set_channel(struct vb_qp *qp, struct vb_channel *channel)
{
	vb_local_near_forget(qp);
	vb_engine_set_channel(qp, channel);
	qp->link = channel->loop ? &vb_loop_link : &vb_shm_link;
}

static inline void vb_local_count(struct vb_engine *e, bool loop, uint32_t bytes)
{
	*(loop ? &e->paths.loop_runs : &e->paths.shm_runs) += 1;
	*(loop ? &e->paths.loop_bytes : &e->paths.shm_bytes) += bytes;
}

#define VB_DATAGRAM_PLACES 16u

/* What a datagram queue pair remembers of its destinations, from its first datagram to release. */
struct vb_local_datagrams {
	struct vb_qp *qp;
	struct vb_local_datagrams *next, *prev; /* others of its engine */
	struct vb_channel *channel[VB_DATAGRAM_PLACES];
	uint32_t qpn[VB_DATAGRAM_PLACES];
	uint32_t slow[VB_DATAGRAM_PLACES]; /* waiting for contact was in vain: no further wait */
	/* Since when a datagram waits for contact, 0: none does. */
	uint64_t wait_since;
	void *discard; /* payload of datagrams that are dropped; allocated when first needed */
	const char *discard_why;
};

/* direct.c: link->direct and link->direct_waits. */
enum vb_direct vb_local_direct(struct vb_qp *qp, struct vb_send_wqe *wqe);
bool vb_local_direct_waits(struct vb_qp *qp, const struct vb_send_wqe *wqe, bool two_sided);
/* An executed request counts. */
void vb_direct_count(struct vb_qp *qp, const struct vb_send_wqe *wqe);

/* direct_list.c: link->direct_list. */
uint32_t vb_local_direct_list(struct vb_qp *qp, struct vb_send_wqe *first);

/* express.c: link->express. */
bool vb_local_express(struct vb_qp *qp);
/*
 * express_receive.c, with the engine's lock held: takes up to `most` slots of the channel's ring the
 * short way, and returns how many. *declined: it ends at a slot that is for the long way.
 */
uint32_t vb_local_express_receive(struct vb_engine *engine, struct vb_channel *channel,
				  uint32_t most, bool *declined);

/*
 * store.c and load.c: do the next WRITEs or READs of the send queue at once, if they are small. True
 * if any was done.
 */
bool vb_local_store(struct vb_qp *qp);
bool vb_local_load(struct vb_qp *qp);
/* lend.c: link->lend, link->fetch and link->halt. */
bool vb_local_lend(struct vb_qp *qp, struct vb_send_wqe *wqe, uint64_t offset, uint32_t length,
		   struct vb_lent *lent);
enum vb_fetch vb_local_fetch(struct vb_qp *qp, struct vb_recv_wqe *recv, uint64_t offset,
			     const struct vb_run *run, uint64_t from, enum vb_reason *reason);
void vb_local_halt(struct vb_qp *qp);
/*
 * Where something of this side was lent by the channel: stores what its receiver offers. True if
 * anything was stored.
 */
bool vb_local_help(struct vb_engine *engine, struct vb_channel *channel);

/* receive.c: link->drain and link->lost. */
bool vb_local_drain(struct vb_engine *engine, bool polled);
void vb_local_lost(struct vb_engine *engine, struct vb_channel *channel, bool peer_dead);

#endif

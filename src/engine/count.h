/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counting for the port of an engine (base/port_counters.h), where somebody can see it. All of it
 * under the engine's lock, by plain additions.
 */
#ifndef VB_ENGINE_COUNT_H
#define VB_ENGINE_COUNT_H

#include <infiniband/verbs.h>

#include "base/port_counters.h"
#include "base/reason.h"
#include "engine/engine.h"
#include "transport/env.h"
#include "transport/run.h"

static inline void vb_count_sent_packet(struct vb_engine *e, uint32_t packets, uint32_t bytes)
{
	if (!e->port)
		return;
	e->port->tx_packets += packets;
	e->port->tx_bytes += bytes;
}

static inline void vb_count_arrived_packet(struct vb_engine *e, uint32_t packets, uint32_t bytes)
{
	if (!e->port)
		return;
	e->port->rx_packets += packets;
	e->port->rx_bytes += bytes;
}

/* An acknowledgement that rides would have been a packet of its own. */
static inline uint32_t vb_count_packets(const struct vb_run *run)
{
	return run->segments + ((run->flags & VB_RUN_ACKS) != 0);
}

static inline void vb_count_sent(struct vb_engine *e, const struct vb_run *run)
{
	vb_count_sent_packet(e, vb_count_packets(run), run->length);
}

/* What has come and says more than that data was sent. */
void vb_count_request(struct vb_engine *e, const struct vb_run *run);

static inline void vb_count_arrived(struct vb_engine *e, const struct vb_run *run)
{
	if (!e->port)
		return;
	vb_count_arrived_packet(e, vb_count_packets(run), run->length);
	if (run->op != VB_OP_SEND && !(run->op == VB_OP_ACK && run->syndrome == VB_AETH_ACK))
		vb_count_request(e, run);
}

/*
 * A request that the initiator executed itself: the packets that it would have been, sent and
 * received at this port. `op`: VB_OP_WRITE, VB_OP_READ_REQUEST, or an atomic.
 */
void vb_count_direct(struct vb_engine *e, uint8_t op, uint32_t mtu, uint64_t bytes);

/* A packet that was dropped, or a request that was refused, for this reason. */
void vb_count_fault(struct vb_engine *e, enum vb_reason reason);
/* A completion that is no success. */
void vb_count_failure(struct vb_engine *e, bool is_send, enum ibv_wc_status status);
/* env->queue.count. */
void vb_count_event(struct vb_engine *e, enum vb_count what);

#endif

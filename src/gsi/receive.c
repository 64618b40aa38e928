/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What comes for queue pair 1, and for the number of this process: judged, and put into a queue. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/reason.h"
#include "gsi/mad_route.h"
#include "gsi/private.h"
#include "host/page.h"
#include "transport/run.h"
#include "udp/address.h"

static void put(struct vb_mad_queue *q, const struct vb_gsi_mad *mad, const char *whose)
{
	struct vb_mad_item *item = vb_mad_item_new(mad, vb_clock_ns());

	if (!item || !vb_mad_queue_put(q, item)) {
		vb_note(VB_REASON_MAD_FULL, "management datagram: %s do not keep up", whose);
		free(item);
		return;
	}
	vb_gsi_wake();
}

void vb_gsi_receive(const struct vb_gsi_mad *mad)
{
	put(&vb_gsi.received, mad, "connections of this process");
}

static bool is_mad(const struct vb_run *run)
{
	enum vb_reason reason = VB_REASON_NONE;

	if (run->service != VB_SERVICE_UD || run->op != VB_OP_SEND ||
	    run->length != VB_GSI_MAD_BYTES || run->segments != 1 || run->flags & VB_RUN_IMM ||
	    ~run->flags & (VB_RUN_FIRST | VB_RUN_LAST) || vb_udp_is_group(run->path.dgid))
		reason = VB_REASON_CM_OTHER;
	else if (run->qkey != VB_GSI_QKEY)
		reason = VB_REASON_DROP_QKEY;
	if (reason)
		vb_note(reason, "datagram of %u bytes for queue pair 1: %s", run->length,
			vb_reason_text(reason));
	return !reason;
}

static void mad_of(const struct vb_run *run, const void *payload, bool wire, struct vb_gsi_mad *mad)
{
	memcpy(mad->sgid, run->path.sgid, sizeof(mad->sgid));
	memcpy(mad->dgid, run->path.dgid, sizeof(mad->dgid));
	mad->flow_label = run->path.flow_label;
	mad->traffic_class = run->path.traffic_class;
	mad->hop_limit = run->path.hop_limit;
	mad->wire = wire;
	mad->src_qpn = run->src_qpn;
	mad->ifindex = 0;
	memcpy(mad->data, payload, sizeof(mad->data));
}

/* A packet has come by UDP for queue pair 1, under the lock of some engine. */
void vb_gsi_arrived(const struct vb_run *run, const uint8_t *payload)
{
	struct vb_gsi_mad mad;

	if (!is_mad(run))
		return;
	mad_of(run, payload, true, &mad);
	put(&vb_gsi.arrived, &mad, "packets for queue pair 1");
}

/*
 * What a process sends through a ring carries its own number, which the ring's owner is held to
 * (local/receive.c), and ids of the same block.
 */
static bool is_forged(const struct vb_gsi_mad *mad)
{
	struct vb_mad_route route;

	if (mad->wire)
		return mad->src_qpn != VB_QPN_SERVICES;
	vb_mad_route(mad->data, &route);
	return route.sender_id &&
	       route.sender_id >> VB_GSI_COMM_ID_BITS != mad->src_qpn >> VB_QPN_BLOCK_BITS;
}

bool vb_gsi_numbered(struct vb_engine_hook *hook, const struct vb_run *run, const void *payload,
		     bool wire)
{
	struct vb_gsi_mad mad;

	(void)hook;
	if (run->dest_qpn != atomic_load(&vb_gsi.number))
		return false;
	if (!is_mad(run))
		return true;
	mad_of(run, payload, wire, &mad);
	if (is_forged(&mad))
		vb_note(VB_REASON_DROP_FORGED, "management datagram from number 0x%x: not its own",
			mad.src_qpn);
	else
		vb_gsi_receive(&mad);
	return true;
}

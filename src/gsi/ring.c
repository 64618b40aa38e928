/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A MAD goes to another process of this host: through a ring between the engines of both. */
#include <string.h>

#include "base/lock.h"
#include "base/reason.h"
#include "engine/engine.h"
#include "engine/engine_channel.h"
#include "engine/engines.h"
#include "gsi/private.h"
#include "host/peer.h"
#include "host/slot.h"
#include "transport/run.h"

static void run_of(const struct vb_gsi_mad *mad, uint32_t number, struct vb_run *run)
{
	memset(run, 0, sizeof(*run));
	run->service = VB_SERVICE_UD;
	run->op = VB_OP_SEND;
	run->flags = VB_RUN_FIRST | VB_RUN_LAST;
	run->pkey = 0xffff;
	run->segments = 1;
	run->dest_qpn = number;
	run->src_qpn = mad->wire ? VB_QPN_SERVICES : atomic_load(&vb_gsi.number);
	run->length = VB_GSI_MAD_BYTES;
	run->qkey = VB_GSI_QKEY;
	memcpy(run->path.sgid, mad->sgid, sizeof(run->path.sgid));
	memcpy(run->path.dgid, mad->dgid, sizeof(run->path.dgid));
	run->path.flow_label = mad->flow_label;
	run->path.traffic_class = mad->traffic_class;
	run->path.hop_limit = mad->hop_limit;
}

/* Under the engine's lock. False: the ring is full. */
static bool push(struct vb_engine *e, struct vb_channel *c, const struct vb_gsi_mad *mad,
		 uint32_t number)
{
	struct vb_slot *slot;
	struct vb_run run;
	void *bulk = NULL;

	run_of(mad, number, &run);
	slot = vb_ring_reserve(&c->tx, vb_slot_bulk_bytes(&run, mad->wire), &bulk);
	if (!slot || !bulk)
		return false;
	if (mad->wire)
		vb_slot_encode_from_wire(slot, &run);
	else
		vb_slot_encode(slot, &run);
	memcpy(bulk, &run.path, sizeof(run.path));
	memcpy((uint8_t *)bulk + VB_SLOT_PATH_BYTES, mad->data, sizeof(mad->data));
	vb_ring_push(&c->tx);
	vb_engine_pushed(e, c);
	vb_engine_flush(e);
	return true;
}

/* The number may be that of a queue pair of a process without a GSI (gsi/members.c). */
bool vb_gsi_is_number(struct vb_peer *peer, uint32_t number)
{
	const struct vb_page_qp *entry = vb_peer_qp(peer, number);

	return entry && __atomic_load_n(&entry->dest_qpn, __ATOMIC_RELAXED) == VB_QPN_SERVICES &&
	       __atomic_load_n(&entry->service, __ATOMIC_RELAXED) == VB_SERVICE_UD;
}

static enum vb_mad_reach unreachable(enum vb_contact why)
{
	switch (why) {
	case VB_CONTACT_ABSENT:
	case VB_CONTACT_DEAD:
		return VB_MAD_ABSENT;
	case VB_CONTACT_REFUSED:
		return vb_gsi_drop(VB_REASON_DROP_STRAY, "its process refuses contact");
	default:
		return VB_MAD_LATER;
	}
}

enum vb_mad_reach vb_gsi_to_ring(struct vb_mad_item *item, uint32_t number)
{
	struct vb_engine *e = atomic_load(&vb_gsi.engine);
	enum vb_contact why = VB_CONTACT_ABSENT;
	enum vb_mad_reach reach = VB_MAD_LATER;
	struct vb_channel *c;

	item->tried = number;
	if (vb_node_qp_entry(e->node, number))
		return VB_MAD_ABSENT; /* a block of this process, but not its GSI's */
	vb_engine_take(e);
	c = vb_channel_find(e->node, e->index, number, &why);
	if (!c || atomic_load(&c->dead))
		reach = c ? VB_MAD_ABSENT : unreachable(why);
	else if (!vb_gsi_is_number(c->peer, number))
		reach = VB_MAD_ABSENT;
	else if (push(e, c, &item->mad, number))
		reach = VB_MAD_REACHED;
	vb_lock_release(&e->lock);
	return reach;
}

enum vb_mad_reach vb_gsi_meet(uint32_t number)
{
	struct vb_engine *e = atomic_load(&vb_gsi.engine);
	enum vb_contact why = VB_CONTACT_ABSENT;
	enum vb_mad_reach reach;
	struct vb_channel *c;

	if (vb_node_qp_entry(e->node, number))
		return VB_MAD_DROPPED; /* of this process */
	vb_engine_take(e);
	c = vb_channel_find(e->node, e->index, number, &why);
	if (c)
		reach = atomic_load(&c->dead) ? VB_MAD_ABSENT : VB_MAD_REACHED;
	else
		reach = unreachable(why);
	vb_lock_release(&e->lock);
	return reach;
}

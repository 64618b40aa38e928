/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Delivery, within the process, of packets from the wire. */
#include "remote/deliver.h"

#include "engine/count.h"
#include "engine/engine.h"
#include "engine/progress.h"
#include "qp/qp.h"
#include "remote/admit.h"
#include "remote/drop.h"
#include "remote/groups.h"
#include "remote/hand_over.h"
#include "remote/part.h"
#include "remote/stray.h"

/* Takes packets for queue pair 1; NULL: nobody does. Set before there is an engine. */
static void (*services)(const struct vb_run *run, const uint8_t *payload);

void vb_udp_deliver_services(void (*take)(const struct vb_run *run, const uint8_t *payload))
{
	services = take;
}

/* `owner`: index of the engine that serves the queue pair. */
static void deliver_to(struct vb_engine *e, uint32_t owner, const struct vb_run *run,
		       const uint8_t *payload)
{
	if (owner == e->index)
		vb_udp_admit(e, run, payload);
	else
		vb_udp_hand_over(owner, run, payload);
}

void vb_udp_deliver_process(struct vb_engine *e, const struct vb_run *run, const uint8_t *payload)
{
	uint32_t owner;

	if (vb_qp_owner(e->node, run->dest_qpn, &owner) == VB_QP_HERE)
		deliver_to(e, owner, run, payload);
	else
		vb_udp_drop(VB_REASON_DROP_QPN, run);
}

struct copies {
	struct vb_engine *engine;
	const uint8_t *payload;
};

/* No lock is taken under the groups' lock. */
static void deliver_copy(void *arg, const struct vb_run *run)
{
	const struct copies *c = arg;

	vb_udp_deliver_process(c->engine, run, c->payload);
}

void vb_udp_deliver(void *arg, const struct vb_run *run, const uint8_t *payload, uint32_t ifindex)
{
	struct vb_engine *e = arg;
	uint32_t owner;

	vb_progress_took_packets();
	if (run->dest_qpn == VB_QPN_MULTICAST) {
		struct copies c = {e, payload};

		vb_udp_group_each(run, ifindex, deliver_copy, &c);
		return;
	}
	if (run->dest_qpn == VB_QPN_SERVICES && services) {
		services(run, payload);
		return;
	}
	switch (vb_qp_owner(e->node, run->dest_qpn, &owner)) {
	case VB_QP_HERE:
		deliver_to(e, owner, run, payload);
		break;
	case VB_QP_ELSEWHERE:
		vb_udp_stray(e, run, payload);
		break;
	default:
		vb_count_arrived(e, run);
		vb_count_fault(e, VB_REASON_DROP_QPN);
		vb_udp_drop(VB_REASON_DROP_QPN, run);
		break;
	}
}

bool vb_udp_deliver_late(struct vb_engine *e)
{
	bool any = e->remote->inbox && vb_udp_handed_over(e);

	if (e->remote->strays)
		any |= vb_udp_stray_late(e);
	return any;
}

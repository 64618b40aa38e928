/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Delivery, within the process, of packets from the wire. */
#include "remote/deliver.h"

#include <string.h>

#include "engine/count.h"
#include "engine/engines.h"
#include "engine/engine.h"
#include "engine/progress.h"
#include "engine/reply.h"
#include "engine/settle.h"
#include "engine/hook.h"
#include "remote/drop.h"
#include "remote/groups.h"
#include "process/process.h"
#include "qp/qp.h"
#include "remote/inbox.h"
#include "remote/part.h"
#include "remote/stray.h"
#include "remote/udp.h"
#include "host/bell.h"
#include "udp/address.h"

/* Takes packets for queue pair 1; NULL: nobody does. Set before there is an engine. */
static void (*services)(const struct vb_run *run, const uint8_t *payload);

void vb_udp_deliver_services(void (*take)(const struct vb_run *run, const uint8_t *payload))
{
	services = take;
}

/*
 * The rules of the wire that shared memory does not need: which host may send to this queue pair.
 */
static enum vb_reason judge(const struct vb_qp *qp, const struct vb_run *run)
{
	if (!qp->remote || !qp->remote->families)
		return VB_REASON_DROP_STATE;
	if (qp->t.service == VB_SERVICE_UD)
		return VB_REASON_NONE;
	return qp->link != &vb_udp_link || memcmp(run->path.sgid, qp->path.dgid, 16)
		       ? VB_REASON_DROP_SOURCE
		       : VB_REASON_NONE;
}

void vb_udp_deliver_here(struct vb_engine *e, const struct vb_run *run, const uint8_t *payload)
{
	struct vb_qp *qp = vb_qp_lookup(e, run->dest_qpn);
	enum vb_reason reason = qp ? judge(qp, run) : VB_REASON_DROP_QPN;

	if (!qp && vb_engine_hooks_take(e, run, payload, true))
		return;
	if (reason) {
		vb_count_arrived(e, run);
		vb_count_fault(e, reason);
		vb_udp_drop(reason, run);
		return;
	}
	if (qp->t.service != VB_SERVICE_UD)
		vb_reply_heard(qp, run);
	else if (e->port && vb_udp_is_multicast(run->path.dgid))
		e->port->rx_multicast += run->segments;
	vb_qp_arrived(qp, run, payload);
}

struct hand_over {
	const struct vb_run *run;
	const uint8_t *payload;
	bool asleep;
};

/* Under the process's table lock. */
static void hand_over(struct vb_engine *e, void *arg)
{
	struct hand_over *h = arg;
	struct vb_remote_engine *r = __atomic_load_n(&e->remote, __ATOMIC_ACQUIRE);
	struct vb_udp_inbox *box = r ? __atomic_load_n(&r->inbox, __ATOMIC_ACQUIRE) : NULL;

	if (!box || !vb_udp_inbox_push(box, h->run, h->payload)) {
		vb_udp_drop(box ? VB_REASON_DROP_INBOX : VB_REASON_DROP_STATE, h->run);
		return;
	}
	h->asleep = __atomic_load_n(&e->pub->asleep, __ATOMIC_RELAXED);
	if (h->asleep)
		vb_bell_call(e->node, e->index);
}

/* `owner`: index of the engine that serves the queue pair. */
static void deliver_to(struct vb_engine *e, uint32_t owner, const struct vb_run *run,
		       const uint8_t *payload)
{
	struct hand_over h = {.run = run, .payload = payload};

	if (owner == e->index) {
		vb_udp_deliver_here(e, run, payload);
		return;
	}
	vb_process_with_engine(owner, hand_over, &h);
	if (h.asleep)
		vb_progress_expect(1);
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

static bool inbox_serve(struct vb_engine *e)
{
	const uint8_t *payload;
	const struct vb_run *run = vb_udp_inbox_peek(e->remote->inbox, &payload);
	bool any = run != NULL;

	while (run) {
		vb_udp_deliver_here(e, run, payload);
		vb_udp_inbox_pop(e->remote->inbox);
		run = vb_udp_inbox_peek(e->remote->inbox, &payload);
	}
	return any;
}

bool vb_udp_deliver_late(struct vb_engine *e)
{
	bool any = e->remote->inbox && inbox_serve(e);

	if (e->remote->strays)
		any |= vb_udp_stray_late(e);
	return any;
}

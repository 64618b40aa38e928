/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Strays: packets that the kernel gave to this process's socket, but that are for a queue pair of another process of the
 * host. They are passed on through shared memory. The first ones wait for contact with that process to be made: datagrams are not
 * sent again by anybody.
 */
#include <string.h>

#include "device/engine.h"
#include "device/process.h"
#include "device/udp_deliver.h"
#include "device/udp_inbox.h"
#include "link/slot.h"

/*
 * Numbers that nobody on the host has cost a look-up of a name each: a flood of packets with random numbers is not to become
 * a flood of those.
 */
#define ASK_PERIOD_NS 1000000ull
#define ASK_MOST      16u

/* Nobody takes longer to answer, unless it is stopped. */
#define PATIENCE_NS   100000000ull

static bool may_ask(struct vb_engine *e)
{
	uint64_t now = vb_clock_ns();

	if (now - e->stray_asked_since > ASK_PERIOD_NS) {
		e->stray_asked_since = now;
		e->stray_asked = 0;
	}
	return e->stray_asked < ASK_MOST;
}

static struct vb_channel *channel_to(struct vb_engine *e, uint32_t qpn, enum vb_contact *why)
{
	uint32_t place = (qpn ^ qpn >> 10) % VB_STRAYS;
	struct vb_channel *c = e->stray_channel[place];

	if (c && e->stray_qpn[place] == qpn &&
	    !atomic_load_explicit(&c->dead, memory_order_relaxed))
		return c;
	*why = VB_CONTACT_PENDING; /* ask later */
	if (!may_ask(e))
		return NULL;
	c = vb_channel_find(e->node, e->index, qpn, why);
	if (!c) {
		e->stray_asked++;
		return NULL;
	}
	e->stray_channel[place] = c;
	e->stray_qpn[place] = qpn;
	return c;
}

static void pass_on(struct vb_engine *e, struct vb_channel *c, const struct vb_run *run,
		    const uint8_t *payload)
{
	void *bulk = NULL;
	struct vb_slot *slot = vb_ring_reserve(&c->tx, vb_slot_bulk_bytes(run, true), &bulk);

	if (!slot || !bulk) {
		vb_udp_drop(VB_REASON_DROP_INBOX, run);
		return;
	}
	vb_slot_encode_from_wire(slot, run);
	memcpy(bulk, &run->path, sizeof(run->path));
	memcpy((uint8_t *)bulk + VB_SLOT_PATH_BYTES, payload, run->length);
	vb_ring_push(&c->tx);
	vb_engine_pushed(e, c);
	e->paths.udp_strays++;
}

static void keep(struct vb_engine *e, const struct vb_run *run, const uint8_t *payload)
{
	const uint8_t *oldest;

	if (!e->stray_box)
		e->stray_box = vb_udp_inbox_create();
	if (e->stray_box && !vb_udp_inbox_peek(e->stray_box, &oldest))
		e->stray_since = vb_clock_ns();
	if (!e->stray_box || !vb_udp_inbox_push(e->stray_box, run, payload)) {
		vb_udp_drop(VB_REASON_DROP_INBOX, run);
		return;
	}
	/* Contact takes two steps, process and channel: somebody has to ask for the second, also if nobody polls. */
	atomic_store_explicit(&e->waiting, true, memory_order_relaxed);
	if (__atomic_load_n(&e->pub->asleep, __ATOMIC_RELAXED))
		vb_progress_expect(1);
}

void vb_udp_stray(struct vb_engine *e, const struct vb_run *run, const uint8_t *payload)
{
	enum vb_contact why = VB_CONTACT_PENDING;
	const uint8_t *oldest;
	/* Behind what waits, so that packets stay in order. */
	bool queue = e->stray_box && vb_udp_inbox_peek(e->stray_box, &oldest);
	struct vb_channel *c = queue ? NULL : channel_to(e, run->dest_qpn, &why);

	if (c)
		pass_on(e, c, run, payload);
	else if (why == VB_CONTACT_PENDING)
		keep(e, run, payload);
	else
		vb_udp_drop(VB_REASON_DROP_STRAY, run);
}

bool vb_udp_stray_late(struct vb_engine *e)
{
	const uint8_t *payload;
	const struct vb_run *run = vb_udp_inbox_peek(e->stray_box, &payload);
	bool any = false;

	if (!run)
		return false;
	while (run) {
		enum vb_contact why;
		struct vb_channel *c = channel_to(e, run->dest_qpn, &why);

		if (c)
			pass_on(e, c, run, payload);
		else if (why == VB_CONTACT_PENDING && vb_clock_ns() - e->stray_since < PATIENCE_NS)
			break;
		else
			vb_udp_drop(VB_REASON_DROP_STRAY, run);
		any = true;
		vb_udp_inbox_pop(e->stray_box);
		run = vb_udp_inbox_peek(e->stray_box, &payload);
	}
	return any;
}

bool vb_udp_stray_waits(struct vb_engine *e)
{
	const uint8_t *payload;

	return vb_udp_inbox_peek(e->stray_box, &payload) != NULL;
}

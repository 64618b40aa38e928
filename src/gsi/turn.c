/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the progress thread does in each of its turns. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/reason.h"
#include "device/device.h"
#include "device/gid.h"
#include "engine/progress.h"
#include "gsi/private.h"
#include "process/process.h"

/* MADs that are handed out in one turn, so that engines have theirs. */
#define TURN_MOST 256u
/* Between attempts to join the table to pass packets on: nobody has one; its members stand still. */
#define NOBODY_NS 100000000ull
#define STILL_NS  1000000000ull

static _Thread_local bool in_progress;

/* Something waits for the progress thread, which looks in each of its turns. */
void vb_gsi_wake(void)
{
	if (!in_progress)
		vb_progress_expect(1);
}

void vb_gsi_kick(void)
{
	atomic_store(&vb_gsi.kicked, true);
	vb_gsi_wake();
}

/* Finds the processes of the packets that came by UDP. */
static void bring_arrived(void)
{
	struct vb_mad_item *list = vb_mad_queue_take_all(&vb_gsi.arrived);

	while (list) {
		struct vb_mad_item *item = list;

		list = item->next;
		(void)vb_gsi_bring(item);
	}
}

/*
 * Packets for queue pair 1 have come to a process without connections of its own. It takes part in
 * the table from then on, if there is one. Returns when that is tried next, 0: it need not be.
 */
static uint64_t join_to_pass(uint64_t now)
{
	int err;

	if (!vb_gsi.wants_table || atomic_load(&vb_gsi.commons))
		return 0;
	if (now < vb_gsi.join_after)
		return vb_gsi.join_after;
	if (!vb_mutex_try(&vb_gsi.opening, VB_ORDER_GSI))
		return now + NOBODY_NS; /* the program opens the GSI just now */
	err = vb_gsi_join(false);
	vb_mutex_release(&vb_gsi.opening);
	vb_gsi.wants_table = false;
	if (!err) {
		vb_gsi.again_at = 0;
		return 0;
	}
	vb_gsi.join_after = vb_clock_ns() + (err == -ENOENT ? NOBODY_NS : STILL_NS);
	return 0;
}

/* A process of this host says where a MAD comes from; only the wire says that of other hosts. */
static bool is_foreign(const struct vb_gsi_mad *mad)
{
	union ibv_gid gid;

	memcpy(gid.raw, mad->sgid, sizeof(gid.raw));
	return !mad->wire && !vb_gid_is_loopback(&gid) && !vb_gid_interface(&gid);
}

static void hand_out(struct vb_gsi_mad *mad)
{
	union ibv_gid gid;

	if (is_foreign(mad)) {
		vb_note(VB_REASON_DROP_FORGED,
			"management datagram from number 0x%x: not from this host", mad->src_qpn);
		return;
	}
	memcpy(gid.raw, mad->dgid, sizeof(gid.raw));
	mad->ifindex = vb_gid_interface(&gid);
	vb_gsi.events.mad(vb_gsi.events.arg, mad);
}

/* True: some are left. */
static bool hand_out_received(bool *any)
{
	for (uint32_t i = 0; i < TURN_MOST; i++) {
		struct vb_mad_item *item = vb_mad_queue_take(&vb_gsi.received);

		if (!item)
			return false;
		hand_out(&item->mad);
		free(item);
		*any = true;
	}
	return vb_mad_queue_count(&vb_gsi.received);
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a && (!b || a < b) ? a : b;
}

bool vb_gsi_device_is_gone(struct ibv_device *device)
{
	struct vb_link_state link;

	vb_device_link(vb_device_of(device), &link);
	return !link.present;
}

/* The kernel's notice of a change wakes this thread, so no loss is overlooked for long. */
static void tell_losses(void)
{
	uint32_t losses = vb_device_losses();

	if (losses == vb_gsi.losses)
		return;
	vb_gsi.losses = losses;
	if (vb_gsi.events.lost)
		vb_gsi.events.lost(vb_gsi.events.arg);
}

/* What the events' owner has to do. */
static uint64_t serve_owner(void)
{
	bool any = atomic_exchange(&vb_gsi.kicked, false);
	bool more = hand_out_received(&any);

	tell_losses();
	if (any || (vb_gsi.due && vb_clock_ns() >= vb_gsi.due))
		vb_gsi.due = vb_gsi.events.serve(vb_gsi.events.arg);
	more |= atomic_load(&vb_gsi.kicked) || vb_mad_queue_count(&vb_gsi.received);
	return more ? 1 : vb_gsi.due;
}

static uint64_t serve(void)
{
	uint64_t due = 0;

	in_progress = true;
	if (vb_mad_queue_count(&vb_gsi.arrived)) {
		if (!atomic_load(&vb_gsi.engine) && vb_mutex_try(&vb_gsi.opening, VB_ORDER_GSI)) {
			(void)vb_gsi_engine();
			vb_mutex_release(&vb_gsi.opening);
		}
		if (atomic_load(&vb_gsi.engine))
			bring_arrived();
	}
	if (vb_mad_queue_count(&vb_gsi.kept)) {
		due = join_to_pass(vb_clock_ns());
		vb_gsi_bring_kept(vb_clock_ns());
	}
	/* After those that bring MADs for this process. */
	if (atomic_load_explicit(&vb_gsi.number, memory_order_acquire))
		due = sooner(serve_owner(), due);
	if (vb_mad_queue_count(&vb_gsi.kept))
		due = sooner(vb_gsi.again_at, due);
	return due;
}

VB_PROGRESS_HOOK(.serve = serve);

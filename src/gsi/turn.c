/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the progress thread does in each of its turns. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/reason.h"
#include "base/thread.h"
#include "device/device.h"
#include "device/gid.h"
#include "engine/progress.h"
#include "gsi/private.h"
#include "process/process.h"

/* MADs that are handed out in one turn, so that engines have theirs. */
#define TURN_MOST  256u
/* Between attempts to join the table to pass packets on: nobody has one; its members stand still. */
#define NOBODY_NS  100000000ull
#define STILL_NS   1000000000ull

#define JOIN_STACK (256u << 10)

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

void vb_gsi_expect(uint64_t at)
{
	uint64_t due = atomic_load(&vb_gsi.due);

	if (at && (!due || at < due))
		vb_gsi_kick();
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

/* Joining waits for processes that stand still, which the progress thread must not. */
static void *join(void *unused)
{
	int err;

	(void)unused;
	vb_mutex_take(&vb_gsi.opening, VB_ORDER_GSI);
	err = vb_gsi_join(false);
	vb_mutex_release(&vb_gsi.opening);
	if (err)
		atomic_store(&vb_gsi.join_after,
			     vb_clock_ns() + (err == -ENOENT ? NOBODY_NS : STILL_NS));
	else
		atomic_store(&vb_gsi.joined, true);
	atomic_store(&vb_gsi.joining, false);
	vb_gsi_wake();
	return NULL;
}

/*
 * Packets for queue pair 1 have come to a process without connections of its own. It takes part in
 * the table from then on, if there is one. Returns when that is tried next, 0: it need not be.
 */
static uint64_t join_to_pass(uint64_t now)
{
	uint64_t after = atomic_load(&vb_gsi.join_after);

	if (atomic_load(&vb_gsi.joined) && atomic_exchange(&vb_gsi.joined, false))
		vb_gsi.again_at = 0;
	if (!vb_gsi.wants_table || atomic_load(&vb_gsi.commons) || atomic_load(&vb_gsi.joining))
		return 0;
	if (now < after)
		return after;
	vb_gsi.wants_table = false;
	atomic_store(&vb_gsi.joining, true);
	if (vb_thread_start("verbatim-join", JOIN_STACK, join, NULL)) {
		atomic_store(&vb_gsi.joining, false);
		atomic_store(&vb_gsi.join_after, now + STILL_NS);
	}
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

void vb_gsi_device_look(struct ibv_device *device, const uint8_t gid[16],
			struct vb_gsi_device_state *state)
{
	struct vb_link_state link;
	union ibv_gid address;

	memcpy(address.raw, gid, sizeof(address.raw));
	vb_device_link(vb_device_of(device), &link);
	state->gone = !link.present;
	state->moves = link.moves;
	state->has_address = vb_device_has(vb_device_of(device), &address);
}

/* The kernel's notice of a change wakes this thread, so no change is overlooked for long. */
static void tell_changes(void)
{
	uint32_t changes = vb_device_changes();

	if (changes == vb_gsi.changes)
		return;
	vb_gsi.changes = changes;
	if (vb_gsi.events.changed)
		vb_gsi.events.changed(vb_gsi.events.arg);
}

/*
 * The next time to call serve(), which gave `next`. A time that was planned is kept while it is ahead,
 * also where nothing is due then any more: the deadline of a connection that is made next is later,
 * so that the thread need not be woken for it. It is called once in vain when all is over.
 */
static uint64_t planned(uint64_t before, uint64_t next)
{
	return before > vb_clock_ns() ? sooner(before, next) : next;
}

/* What the events' owner has to do. */
static uint64_t serve_owner(void)
{
	bool any = atomic_exchange(&vb_gsi.kicked, false);
	bool more = hand_out_received(&any);
	uint64_t due = atomic_load(&vb_gsi.due);

	tell_changes();
	if (!more)
		vb_gsi_ended_tell();
	any |= atomic_exchange(&vb_gsi.kicked, false);
	if (any || (due && vb_clock_ns() >= due)) {
		/* A deadline that is made meanwhile is not compared with one that is over. */
		atomic_store(&vb_gsi.due, 0);
		due = planned(due, vb_gsi.events.serve(vb_gsi.events.arg));
		atomic_store(&vb_gsi.due, due);
	}
	more |= atomic_load(&vb_gsi.kicked) || vb_mad_queue_count(&vb_gsi.received);
	return more ? 1 : due;
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
	else
		vb_gsi_ended_tell();
	due = sooner(vb_gsi_ended_serve(vb_clock_ns()), due);
	due = sooner(vb_gsi_reach_serve(vb_clock_ns()), due);
	due = sooner(vb_gsi_watch_serve(vb_clock_ns()), due);
	if (vb_mad_queue_count(&vb_gsi.kept))
		due = sooner(vb_gsi.again_at, due);
	return due;
}

VB_PROGRESS_HOOK(.serve = serve);

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which other members this process keeps in contact with, so that each knows of the other's end. The
 * next two members in the order of seats, as soon as this process can, or another one has connections
 * with other hosts: then the end of each process is noticed by another one, if there is one. All
 * but vb_gsi_watch_soon() is the progress thread's.
 */
#include "base/clock.h"
#include "base/fork.h"
#include "engine/engine.h"
#include "gsi/port_table.h"
#include "gsi/private.h"
#include "process/process.h"

#define WATCHED  2u
/* Contact with a process takes as long as its thread takes to be scheduled; it may stand still. */
#define AGAIN_NS 100000000ull
#define LOOKS    30u

static _Atomic bool wanted;
static uint32_t looks; /* that are left */
static uint64_t again_at;

void vb_gsi_watch_soon(void)
{
	atomic_store(&wanted, true);
	vb_gsi_wake();
}

/* True: contact with one of them is being made. */
static bool meet_members(const struct vb_port_table *t, uint32_t own)
{
	uint32_t met = 0, pending = 0;

	for (uint32_t i = 1; i < VB_COMMONS_SEATS && met + pending < WATCHED; i++) {
		uint32_t seat = (own + i) % VB_COMMONS_SEATS;
		uint32_t number = vb_port_member(t, seat);
		enum vb_mad_reach reach = number ? vb_gsi_meet(number) : VB_MAD_DROPPED;

		met += reach == VB_MAD_REACHED;
		pending += reach == VB_MAD_LATER;
		if (reach == VB_MAD_ABSENT)
			(void)vb_gsi_reap(seat);
	}
	return pending;
}

/* This process has sockets to other hosts, or another one has connections with some. */
static bool look(void)
{
	const struct vb_port_table *t = vb_gsi_table();

	if (!t || !atomic_load(&vb_gsi.number))
		return false;
	if (!atomic_load(&vb_gsi.families) && !vb_published_any(&t->published))
		return false;
	return meet_members(t, vb_commons_seat(atomic_load(&vb_gsi.commons)));
}

uint64_t vb_gsi_watch_serve(uint64_t now)
{
	if (atomic_load_explicit(&wanted, memory_order_relaxed) && atomic_exchange(&wanted, false))
		looks = LOOKS;
	else if (!looks || now < again_at)
		return looks ? again_at : 0;
	looks = look() ? looks - 1 : 0;
	again_at = now + AGAIN_NS;
	return looks ? again_at : 0;
}

/* A new member has made contact, or contact that was asked for is there. */
static bool channel_up(uint32_t index, struct vb_channel *channel)
{
	const struct vb_engine *e = atomic_load(&vb_gsi.engine);

	(void)channel;
	if (e && e->index == index)
		vb_gsi_watch_soon();
	return false;
}

static void forked(void)
{
	atomic_store(&wanted, false);
	looks = 0;
	again_at = 0;
}

VB_PROCESS_HOOK(.channel_up = channel_up);

VB_FORK_HOOK(.phase = VB_FORK_ROOMS, .child = forked);

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* MADs that cannot be brought to their process yet: there is no contact, or its ring is full. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "gsi/mad_route.h"
#include "gsi/port_table.h"
#include "gsi/private.h"
#include "host/page.h"
#include "process/process.h"

/* Contact is made once, and takes as long as the other process's thread takes to be scheduled. */
#define PATIENCE_NS    2000000000ull
/*
 * So many in all, and for one process, so that one that stands still leaves room for the others.
 * Of what this process sends more are kept, a few for each of its connections: a message that was
 * dropped here would be missed (RTU, DREP) or sent again a second later, while its receiver is only
 * slower. Each takes 350 bytes.
 */
#define PASSED_MOST    4096u
#define PASSED_FOR_ONE 1024u
#define OWN_MOST       65536u
#define OWN_FOR_ONE    16384u
/* One for each block of numbers: no two processes share a place. */
#define KEPT_PLACES    VB_PORT_BLOCKS
/* They are tried again without news. */
#define AGAIN_NS       1000000ull

/* By the process that they wait for. */
static _Atomic uint32_t kept_for[KEPT_PLACES];
static _Atomic uint32_t passed, own;
/* MADs that were kept and are neither sent nor dropped yet; the progress thread may have them. */
static _Atomic uint32_t unsettled;

static uint32_t kept_place(uint32_t number)
{
	return number >> VB_QPN_BLOCK_BITS;
}

static _Atomic uint32_t *kept_kind(const struct vb_mad_item *item)
{
	return item->mad.wire ? &passed : &own;
}

/*
 * The process to which the MAD goes has kept ones before it: it does not overtake them, as an RTU
 * would be lost on a connection that its DREQ has ended.
 */
static bool waits_behind(struct vb_mad_item *item)
{
	struct vb_mad_route route;

	if (!atomic_load(&unsettled))
		return false;
	vb_mad_route(item->mad.data, &route);
	if (route.way != VB_MAD_BY_ID)
		return false; /* the first of its conversation */
	item->tried = route.comm_id >> VB_GSI_COMM_ID_BITS << VB_QPN_BLOCK_BITS;
	return atomic_load(&kept_for[kept_place(item->tried)]);
}

static bool has_room(const struct vb_mad_item *item)
{
	uint32_t for_one = atomic_load(&kept_for[kept_place(item->tried)]);

	if (item->mad.wire)
		return atomic_load(&passed) < PASSED_MOST && for_one < PASSED_FOR_ONE;
	return atomic_load(&own) < OWN_MOST && for_one < OWN_FOR_ONE;
}

/* It is kept, or dropped. */
static int keep(struct vb_mad_item *item)
{
	if (!has_room(item)) {
		vb_gsi_drop(VB_REASON_MAD_FULL, "too many wait for their process");
		free(item);
		return -ENOBUFS;
	}
	atomic_fetch_add(&unsettled, 1);
	atomic_fetch_add(kept_kind(item), 1);
	atomic_fetch_add(&kept_for[kept_place(item->tried)], 1);
	(void)vb_mad_queue_put(&vb_gsi.kept, item);
	vb_gsi_wake();
	return 0;
}

int vb_gsi_bring(struct vb_mad_item *item)
{
	if (waits_behind(item) || vb_gsi_pass(item) == VB_MAD_LATER)
		return keep(item);
	free(item);
	return 0;
}

/*
 * `blocked`: places of processes for which an earlier MAD still waits; the others do not overtake
 * it. True: it still waits.
 */
static bool try_again(struct vb_mad_item *item, uint64_t now, bool blocked[KEPT_PLACES])
{
	/* Counted by the process that it waited for, which may be another one now. */
	uint32_t place = kept_place(item->tried);
	bool waits = (item->tried && blocked[place]) || vb_gsi_pass(item) == VB_MAD_LATER;
	bool patient = now - item->since < PATIENCE_NS;

	if (item->tried)
		blocked[kept_place(item->tried)] |= waits;
	if (waits && patient)
		atomic_fetch_add(&kept_for[kept_place(item->tried)], 1);
	atomic_fetch_sub(&kept_for[place], 1);
	if (waits && patient)
		return true;
	if (waits)
		vb_gsi_drop(VB_REASON_DROP_STRAY, "its process does not answer");
	atomic_fetch_sub(kept_kind(item), 1);
	atomic_fetch_sub(&unsettled, 1);
	free(item);
	return false;
}

bool vb_gsi_keeps(void)
{
	return atomic_load(&unsettled);
}

void vb_gsi_bring_kept(uint64_t now)
{
	uint64_t epoch = vb_process_contact_epoch();
	bool blocked[KEPT_PLACES] = {false};
	struct vb_mad_item *list, *waiting = NULL, **end = &waiting;

	if (epoch == vb_gsi.epoch && now < vb_gsi.again_at)
		return;
	vb_gsi.epoch = epoch;
	vb_gsi.again_at = now + AGAIN_NS;
	list = vb_mad_queue_take_all(&vb_gsi.kept);
	while (list) {
		struct vb_mad_item *item = list;

		list = item->next;
		if (try_again(item, now, blocked)) {
			*end = item;
			end = &item->next;
		}
	}
	/* Before those that came meanwhile. */
	vb_mad_queue_put_back(&vb_gsi.kept, waiting, end);
}

void vb_gsi_kept_forget(void)
{
	if (!atomic_exchange(&unsettled, 0))
		return; /* all is zero, and no page of it is touched */
	memset(kept_for, 0, sizeof(kept_for));
	atomic_store(&passed, 0);
	atomic_store(&own, 0);
}

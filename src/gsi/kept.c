/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* MADs that cannot be brought to their process yet: there is no contact, or its ring is full. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "gsi/private.h"
#include "host/page.h"
#include "process/process.h"

/* Contact is made once, and takes as long as the other process's thread takes to be scheduled. */
#define PATIENCE_NS  2000000000ull
/* MADs for one process that are kept, so that one that stands still leaves room for the others. */
#define KEPT_FOR_ONE 1024u
#define KEPT_PLACES  256u
/* They are tried again without news. */
#define AGAIN_NS     1000000ull

static _Atomic uint32_t kept_for[KEPT_PLACES];
/* MADs that were kept and are neither sent nor dropped yet; the progress thread may have them. */
static _Atomic uint32_t unsettled;

static uint32_t kept_place(uint32_t number)
{
	return (number >> VB_QPN_BLOCK_BITS) % KEPT_PLACES;
}

/* It is kept, or dropped. */
static int keep(struct vb_mad_item *item)
{
	_Atomic uint32_t *count = &kept_for[kept_place(item->tried)];

	if (atomic_fetch_add(count, 1) < KEPT_FOR_ONE && vb_mad_queue_put(&vb_gsi.kept, item)) {
		vb_gsi_wake();
		return 0;
	}
	atomic_fetch_sub(count, 1);
	atomic_fetch_sub(&unsettled, 1);
	vb_gsi_drop(VB_REASON_MAD_FULL, "too many wait for their process");
	free(item);
	return -ENOBUFS;
}

int vb_gsi_bring(struct vb_mad_item *item)
{
	if (vb_gsi_pass(item) == VB_MAD_LATER) {
		atomic_fetch_add(&unsettled, 1);
		return keep(item);
	}
	free(item);
	return 0;
}

/*
 * `blocked`: places of processes for which an earlier MAD still waits; the others do not overtake
 * it.
 */
static void try_again(struct vb_mad_item *item, uint64_t now, bool blocked[KEPT_PLACES])
{
	/* Counted by the process that it waited for, which may be another one now. */
	uint32_t place = kept_place(item->tried);
	bool waits = (item->tried && blocked[place]) || vb_gsi_pass(item) == VB_MAD_LATER;

	if (item->tried)
		blocked[kept_place(item->tried)] |= waits;
	atomic_fetch_sub(&kept_for[place], 1);
	if (waits && now - item->since < PATIENCE_NS) {
		keep(item);
		return;
	}
	if (waits)
		vb_gsi_drop(VB_REASON_DROP_STRAY, "its process does not answer");
	atomic_fetch_sub(&unsettled, 1);
	free(item);
}

bool vb_gsi_keeps(void)
{
	return atomic_load(&unsettled);
}

void vb_gsi_bring_kept(uint64_t now)
{
	uint64_t epoch = vb_process_contact_epoch();
	bool blocked[KEPT_PLACES] = {false};
	struct vb_mad_item *list;

	if (epoch == vb_gsi.epoch && now < vb_gsi.again_at)
		return;
	vb_gsi.epoch = epoch;
	vb_gsi.again_at = now + AGAIN_NS;
	list = vb_mad_queue_take_all(&vb_gsi.kept);
	while (list) {
		struct vb_mad_item *item = list;

		list = item->next;
		try_again(item, now, blocked);
	}
}

void vb_gsi_kept_forget(void)
{
	memset(kept_for, 0, sizeof(kept_for));
	atomic_store(&unsettled, 0);
}

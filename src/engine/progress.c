/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What engines and rooms above leave to the progress thread. */
#include "engine/progress.h"

#include <stdatomic.h>

#include "process/process.h"

static struct vb_progress_hook *hooks;

void vb_progress_register(struct vb_progress_hook *hook)
{
	hook->next = hooks;
	hooks = hook;
}

void vb_progress_arm(void)
{
	for (const struct vb_progress_hook *h = hooks; h; h = h->next) {
		if (h->arm)
			h->arm();
	}
}

bool vb_progress_rang(void)
{
	bool packet = false;

	for (const struct vb_progress_hook *h = hooks; h; h = h->next)
		packet |= h->rang && h->rang();
	return packet;
}

uint64_t vb_progress_serve(void)
{
	uint64_t earliest = 0;

	for (const struct vb_progress_hook *h = hooks; h; h = h->next) {
		uint64_t due = h->serve ? h->serve() : 0;

		if (due && (!earliest || due < earliest))
			earliest = due;
	}
	return earliest;
}

/* In the progress thread: since the last pass a queue pair began to wait, or waits on. */
static _Thread_local bool in_progress, room_wanted;

static _Atomic uint64_t taken_by_pollers;

void vb_progress_took_packets(void)
{
	if (!in_progress)
		atomic_store_explicit(
			&taken_by_pollers,
			atomic_load_explicit(&taken_by_pollers, memory_order_relaxed) + 1,
			memory_order_relaxed);
}

uint64_t vb_progress_taken_by_pollers(void)
{
	return atomic_load_explicit(&taken_by_pollers, memory_order_relaxed);
}

void vb_progress_enter(void)
{
	in_progress = true;
}

bool vb_progress_room_wanted(void)
{
	bool wanted = room_wanted;

	room_wanted = false;
	return wanted;
}

/*
 * The progress thread itself need not be woken, and must not be: it would look again at once and
 * for ever, while the peer that it waits for needs the processor.
 */
void vb_progress_wait_for_room(void)
{
	if (in_progress)
		room_wanted = true;
	else
		vb_progress_expect(1);
}

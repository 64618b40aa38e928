/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packets for another engine of the process (hand_over.h). */
#include "remote/hand_over.h"

#include <sched.h>

#include "base/clock.h"
#include "base/reason.h"
#include "engine/engine.h"
#include "engine/engine_channel.h"
#include "engine/engines.h"
#include "engine/progress.h"
#include "host/bell.h"
#include "process/process.h"
#include "remote/admit.h"
#include "remote/drop.h"
#include "remote/inbox.h"
#include "remote/part.h"

/* An inbox with less room is full: a batch of datagrams, whose packets take more room there. */
#define RESERVE     (256u << 10)
#define FULL_MOST   8u
/*
 * The thread that polls the engine computes, or lost its processor while it was in the engine. If it
 * stands still, the other engines of the process have to go on.
 */
#define PATIENCE_NS 20000000ull

/* Engines whose inbox is full. Under the drain lock. */
static struct {
	uint32_t engine[FULL_MOST];
	uint32_t count;
	uint64_t since;
} full;

struct handed {
	const struct vb_run *run;
	const uint8_t *payload;
	bool asleep, full;
};

static struct vb_udp_inbox *inbox_of(struct vb_engine *e)
{
	struct vb_remote_engine *r = __atomic_load_n(&e->remote, __ATOMIC_ACQUIRE);

	return r ? __atomic_load_n(&r->inbox, __ATOMIC_ACQUIRE) : NULL;
}

/* Under the process's table lock. */
static void push(struct vb_engine *e, void *arg)
{
	struct vb_udp_inbox *box = inbox_of(e);
	struct handed *h = arg;

	if (!box || !vb_udp_inbox_push(box, h->run, h->payload)) {
		vb_udp_drop(box ? VB_REASON_DROP_INBOX : vb_udp_no_part(e->node, h->run->dest_qpn),
			    h->run);
		return;
	}
	h->full = vb_udp_inbox_room(box) < RESERVE;
	h->asleep = __atomic_load_n(&e->pub->asleep, __ATOMIC_RELAXED);
	if (h->asleep)
		vb_bell_call(e->node, e->index);
}

static void full_add(uint32_t index)
{
	for (uint32_t i = 0; i < full.count; i++) {
		if (full.engine[i] == index)
			return;
	}
	if (full.count < FULL_MOST)
		full.engine[full.count++] = index;
}

void vb_udp_hand_over(uint32_t owner, const struct vb_run *run, const uint8_t *payload)
{
	struct handed h = {.run = run, .payload = payload};

	vb_process_with_engine(owner, push, &h);
	if (h.full)
		full_add(owner);
	if (h.asleep)
		vb_progress_expect(1);
}

bool vb_udp_handed_over(struct vb_engine *e)
{
	const uint8_t *payload;
	const struct vb_run *run = vb_udp_inbox_peek(e->remote->inbox, &payload);
	bool any = run != NULL;

	while (run) {
		vb_udp_admit(e, run, payload);
		vb_udp_inbox_pop(e->remote->inbox);
		run = vb_udp_inbox_peek(e->remote->inbox, &payload);
	}
	return any;
}

/*
 * Its thread computes between two polls, while this one empties the socket: this one takes the
 * packets in, if no thread is in that engine. True: there is room.
 */
static bool make_room(uint32_t index)
{
	struct vb_engine *e = vb_engines_hold(index);
	struct vb_udp_inbox *box = e ? inbox_of(e) : NULL;
	bool room = !box || vb_udp_inbox_room(box) >= RESERVE;

	if (!room && vb_engine_try(e)) {
		(void)vb_udp_handed_over(e);
		vb_engine_flush(e);
		vb_lock_release(&e->lock);
		room = true;
	}
	if (e)
		vb_engines_release(e);
	return room;
}

static bool patient(void)
{
	uint64_t now = vb_clock_ns();

	if (!full.since)
		full.since = now;
	return now - full.since < PATIENCE_NS;
}

bool vb_udp_hand_over_may(void)
{
	uint32_t left = 0;

	if (!full.count)
		return true;
	for (uint32_t i = 0; i < full.count; i++) {
		if (!make_room(full.engine[i]))
			full.engine[left++] = full.engine[i];
	}
	full.count = left;
	if (!left)
		full.since = 0;
	else if (patient())
		sched_yield(); /* to the thread that is in the engine */
	return !left || !patient();
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A thread that polls in vain gives its processor away.
 *
 * Where more threads poll than there are processors, the process that is to answer may wait for the
 * processor of the one that polls for the answer: each message then takes the time that the scheduler
 * gives to a thread, some 3 ms. A thread that has polled in vain for a while therefore calls
 * sched_yield(2). How often it does depends on what the call did before (give_way.c): a thread that has
 * its processor for itself hardly ever does. A poll that finds something reads no clock and makes no
 * call.
 */
#ifndef VB_ENGINE_GIVE_WAY_H
#define VB_ENGINE_GIVE_WAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/seldom.h"
#include "engine/engine.h"

/* Of a thread. */
struct vb_give_way {
	int32_t left;  /* empty polls until it gives way */
	int32_t after; /* empty polls in a row after which it does */
};

extern _Thread_local __attribute__((tls_model("initial-exec"))) struct vb_give_way vb_give_way;

/* Pure: the next `after`, when sched_yield(2) has taken so long. */
int32_t vb_give_way_next(int32_t after, uint64_t took_ns);
void vb_give_way_now(void);

/* A poll of an engine that reads sockets counts as so many: most such polls make a system call. */
#define VB_GIVE_WAY_CALL 16

/*
 * The calling thread has polled, and holds no lock: it has found nothing, or something. `engine`: one
 * that was driven, or NULL. True: it gave way, and other threads may have had the processor for
 * milliseconds. The poll then has to look again before it tells the program that there is nothing.
 */
static inline bool vb_polled_in_vain(const struct vb_engine *engine)
{
	bool called = engine && __atomic_load_n(&engine->reads, __ATOMIC_RELAXED);

	vb_give_way.left -= called ? VB_GIVE_WAY_CALL : 1;
	if (!VB_SELDOM(vb_give_way.left <= 0))
		return false;
	vb_give_way_now();
	return true;
}

static inline void vb_polled_well(void)
{
	vb_give_way.left = vb_give_way.after;
}

#endif

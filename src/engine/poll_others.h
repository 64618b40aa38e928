/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A poller that finds nothing looks at engines that no thread polls now.
 *
 * What it waits for may depend on another engine of its process: one that it polled itself a moment
 * ago, or that was polled by another thread, which now waits for this one. The lease of such an
 * engine runs on for milliseconds, in which no thread would drive it and no sender would ring for
 * it. Engines that other threads poll are left alone: looking would take their cache lines away.
 */
#ifndef VB_ENGINE_POLL_OTHERS_H
#define VB_ENGINE_POLL_OTHERS_H

#include "engine/engines.h"

struct vb_engine;

/*
 * The calling thread polled a queue that `engine` feeds, and took entries: the engine counts as
 * polled by it.
 */
void vb_poll_others_found(struct vb_engine *engine);

/* vb_poll_others() with more than one engine in the process. */
void vb_poll_others_of(struct vb_engine *engine);

/* The calling thread polled a queue that `engine` feeds, and found no entry. No lock is held. */
static inline void vb_poll_others(struct vb_engine *engine)
{
	if (vb_engines_count() > 1)
		vb_poll_others_of(engine);
}

static inline void vb_poll_found(struct vb_engine *engine)
{
	if (vb_engines_count() > 1)
		vb_poll_others_found(engine);
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Engines that fall asleep together. Each of them has to look once more after its senders have passed
 * a barrier, which interrupts every processor on which a process of the library runs. A process may
 * have an engine for each of thousands of queues, so one barrier serves for many.
 *
 * The progress thread's.
 */
#ifndef VB_ENGINE_DOZE_H
#define VB_ENGINE_DOZE_H

#include <stdbool.h>
#include <stdint.h>

struct vb_engine;
struct vb_node;

#define VB_DOZE_MOST 256u

struct vb_doze {
	uint32_t count;
	bool owes; /* a barrier */
	uint32_t engine[VB_DOZE_MOST];
};

static inline bool vb_doze_is_full(const struct vb_doze *doze)
{
	return doze->count == VB_DOZE_MOST;
}

/* Under the engine's lock: it says that it sleeps. Not if the doze is full. */
void vb_doze_add(struct vb_doze *doze, struct vb_engine *engine);

/*
 * Without a lock: all of them sleep, and have looked once more. Returns false if another thread was in
 * one of them, which was called instead (host/bell.h): it is to be looked at soon.
 */
bool vb_doze_end(struct vb_doze *doze, struct vb_node *node);

#endif

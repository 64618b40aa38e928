/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engines of the process: found by index, walked, and which of them the progress thread
 * watches.
 *
 * No walk holds a lock while it is at an engine. The engine is held instead, so that a walk that
 * stands still there holds up only a thread that destroys that engine. The memory of an engine is
 * never freed, only used for another engine. So a poller may look at an engine that it has polled
 * before without asking whether it still exists (poll_others.c).
 */
#ifndef VB_ENGINE_ENGINES_H
#define VB_ENGINE_ENGINES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

struct vb_channel;
struct vb_engine;

#define VB_ENGINES_WORD 64u /* engines in a word of the tables of bits */

/*
 * Zeroed, except for the members that outlive engines. `leans`: the lock may be biased; then only
 * its owner may look at such an engine. NULL: no memory.
 */
struct vb_engine *vb_engines_new(bool leans);
void vb_engines_give_back(struct vb_engine *engine);

void vb_engines_add(struct vb_engine *engine);
/* Waits until no walk holds the engine. */
void vb_engines_remove(struct vb_engine *engine);
/* How many engines exist, for callers to which a rough answer is enough. */
uint32_t vb_engines_count(void);

/* The engine of that index, which stays until it is released. NULL: there is none. */
struct vb_engine *vb_engines_hold(uint32_t index);
void vb_engines_release(struct vb_engine *engine);

/* All indices are below this. */
uint32_t vb_engines_top(void);
/*
 * Calls fn for every engine, which stays meanwhile. fn may take engine locks; the caller holds
 * none.
 */
void vb_process_each_engine(void (*fn)(struct vb_engine *engine, void *arg), void *arg);
/*
 * Calls fn for the engine of that index, if there is one; it stays meanwhile. fn takes no lock of
 * the process.
 */
void vb_process_with_engine(uint32_t index, void (*fn)(struct vb_engine *engine, void *arg),
			    void *arg);
/*
 * Under the engine's lock: takes the channels that were adopted for the engine since the last call.
 */
struct vb_channel *vb_process_take_inbox(struct vb_engine *engine);
/* Gives the channel to that engine. False: there is no such engine. */
bool vb_engines_adopt(uint32_t index, struct vb_channel *channel);

/*
 * Passes through every engine's lock: a thread that held one before the call has released it after
 * the call.
 */
void vb_engines_pass_through(void);

/*
 * Under the engine's lock, before keys are looked up: from now on vb_engines_pass_through() waits
 * for this engine. It leaves out engines that nobody has used since it passed them last, because a
 * process may have thousands.
 */
void vb_engines_use(struct vb_engine *engine);
static inline void vb_engine_uses_keys(struct vb_engine *e)
{
	if (!e->used)
		vb_engines_use(e);
}

/* The lock of an engine, in order to do its work. */
static inline void vb_engine_take(struct vb_engine *e)
{
	vb_lock_take(&e->lock);
	vb_engine_uses_keys(e);
}

static inline bool vb_engine_try(struct vb_engine *e)
{
	if (!vb_lock_try(&e->lock))
		return false;
	vb_engine_uses_keys(e);
	return true;
}

/*
 * The progress thread is to watch the engine: it was woken, or a timer was set. Cheap where that is
 * known.
 */
void vb_engines_watch(const struct vb_engine *engine);
/*
 * The watched engines among 64 * word and following. unwatch ends the watch of some. Progress
 * thread.
 */
uint64_t vb_engines_watched(uint32_t word);
void vb_engines_unwatch(uint32_t index);

/* The engine was woken, or put to sleep. */
void vb_engines_set_awake(const struct vb_engine *engine, bool awake);
/*
 * Engines that are awake, for pollers that look at others' engines: the next one from `index` on,
 * in a circle. NULL: none.
 */
struct vb_engine *vb_engines_awake(uint32_t *index);

/*
 * The program ends by exit(3): calls fn for every engine. Waits only shortly for the table; fn waits
 * for nothing.
 */
void vb_engines_each_at_exit(void (*fn)(struct vb_engine *engine));

#endif

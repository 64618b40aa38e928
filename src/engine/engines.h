/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engines of the process: found by index, walked, and which of them the progress thread is to watch.
 *
 * No walk holds a lock while it is at an engine: the engine is held instead, so that what stands still there holds up nobody but who
 * destroys that engine. The memory of an engine is never given back, only used for another one, so that pollers may look at one that
 * they have polled before without asking whether it is still there (poll_others.c).
 */
#ifndef VB_ENGINE_ENGINES_H
#define VB_ENGINE_ENGINES_H

#include <stdbool.h>
#include <stdint.h>

struct vb_channel;
struct vb_engine;

#define VB_ENGINES_WORD 64u /* engines of a word of the tables of bits */

/* Zeroed, but for what outlives engines. leans: its lock will; nobody but its owner may look at such a one. NULL: no memory. */
struct vb_engine *vb_engines_new(bool leans);
void vb_engines_give_back(struct vb_engine *engine);

void vb_engines_add(struct vb_engine *engine);
/* Waits until nobody holds it. */
void vb_engines_remove(struct vb_engine *engine);
/* How many there are, for who can do with a rough answer. */
uint32_t vb_engines_count(void);

/* The engine of that index stays until it is released; NULL if there is none. */
struct vb_engine *vb_engines_hold(uint32_t index);
void vb_engines_release(struct vb_engine *engine);

/* Indices are below this. */
uint32_t vb_engines_top(void);
/* Calls fn for every engine, which stays meanwhile. fn may take engine locks; the caller holds none. */
void vb_process_each_engine(void (*fn)(struct vb_engine *engine, void *arg), void *arg);
/* Calls fn for the engine of that index, if there is one; it stays meanwhile. fn takes no lock of the process. */
void vb_process_with_engine(uint32_t index, void (*fn)(struct vb_engine *engine, void *arg),
			    void *arg);
/* Takes what was adopted for the engine since last time (under its lock). */
struct vb_channel *vb_process_take_inbox(struct vb_engine *engine);
/* The channel is for that engine. False: there is none. */
bool vb_engines_adopt(uint32_t index, struct vb_channel *channel);

/* Passes through every engine's lock: who held one before the call has let go after it. */
void vb_engines_pass_through(void);

/* The progress thread is to watch the engine: it was woken, or a timer was set. Cheap where that is known. */
void vb_engines_watch(const struct vb_engine *engine);
/* Those of engines 64 * word and following that are watched; unwatch takes some of them away. Progress thread. */
uint64_t vb_engines_watched(uint32_t word);
void vb_engines_unwatch(uint32_t index);

/* The engine was woken or put to sleep. */
void vb_engines_set_awake(const struct vb_engine *engine, bool awake);
/* Awake engines, for pollers that look after others': the next one from `index` on, in a circle. NULL: none. */
struct vb_engine *vb_engines_awake(uint32_t *index);

void vb_engines_at_exit(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What engines and rooms above leave to the progress thread (progress_thread.c). */
#ifndef VB_ENGINE_PROGRESS_H
#define VB_ENGINE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Each function may be NULL. The progress thread calls them, in no order. */
struct vb_progress_hook {
	/*
	 * In each turn: does what is due. Returns when it is to be called again (CLOCK_MONOTONIC
	 * ns), 0: no such time.
	 */
	uint64_t (*serve)(void);
	/*
	 * Sockets that are read by the engines which hold them (vb_engine.reads): the next packet
	 * is to wake the thread.
	 */
	void (*arm)(void);
	bool (*rang)(void); /* a packet has come since then, and no thread has taken it yet */
	struct vb_progress_hook *next;
};

void vb_progress_register(struct vb_progress_hook *hook);

/* Registers the hook of this file when the library is loaded: VB_PROGRESS_HOOK(.serve = ...); */
#define VB_PROGRESS_HOOK(...)                                            \
	static struct vb_progress_hook progress_hook;                    \
	__attribute__((constructor)) static void progress_hook_add(void) \
	{                                                                \
		vb_progress_register(&progress_hook);                    \
	}                                                                \
	static struct vb_progress_hook progress_hook = {__VA_ARGS__}

/* No thread polls any more: what arrives is to wake the progress thread. Any thread. */
void vb_progress_arm(void);

/*
 * A queue pair waits for room or for contact, and no thread polls its engine: it is looked at soon,
 * and then at growing intervals.
 */
void vb_progress_wait_for_room(void);

/*
 * A thread has taken packets out of a socket, and holds a lock that is the same for all of them. By
 * this the progress thread knows whether pollers take them.
 */
void vb_progress_took_packets(void);
/* So many times that was not the progress thread. */
uint64_t vb_progress_taken_by_pollers(void);

/* For the progress thread: it is the calling thread from now on. */
void vb_progress_enter(void);
/* Calls all `serve`; the earliest time that one gave, 0: none did. */
uint64_t vb_progress_serve(void);
/* Calls all `rang`; whether one did. */
bool vb_progress_rang(void);
/* Whether vb_progress_wait_for_room() was called in this thread since the last call. */
bool vb_progress_room_wanted(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The progress thread, and what rooms above have it look after beside the engines. */
#ifndef VB_ENGINE_PROGRESS_H
#define VB_ENGINE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct vb_node;

/* Each function may be NULL, and is called by the progress thread, in no order. */
struct vb_progress_hook {
	/* In each turn: does what is due. When it is to be called again (CLOCK_MONOTONIC ns), 0: no such time. */
	uint64_t (*serve)(void);
	/* Sockets whose packets those engines read that hold them (vb_engine.reads): have the thread woken by the next one. */
	void (*arm)(void);
	bool (*rang)(void); /* one has come since then, and nobody has taken it yet */
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

/* Nobody polls any more: what arrives wakes the progress thread. Any thread. */
void vb_progress_arm(void);

/* All that the progress thread does; never returns. */
void vb_progress_main(struct vb_node *node);

/* A queue pair of an engine that nobody polls waits for room or for contact: looked at soon, and then less and less often. */
void vb_progress_wait_for_room(void);

#endif

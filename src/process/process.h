/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The process's one node on its host and its progress thread, started when first needed, and the
 * hooks for events of the node.
 */
#ifndef VB_PROCESS_PROCESS_H
#define VB_PROCESS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "host/node.h"

/*
 * The node. The first call starts it (page and tables only: no thread, no socket). -errno with the
 * reason recorded.
 */
int vb_process_node(struct vb_node **node);
/*
 * The node if it was started, else NULL. Takes no lock; for paths where the existence of an object
 * proves that it was.
 */
struct vb_node *vb_process_node_started(void);
/* Starts the progress thread (first queue pair). 0 or -errno. */
int vb_process_start_progress(void);
/*
 * A key or a QP was made invalid in the page. When this returns, no engine of this process and no
 * living peer still uses it. key != 0: the key; else the queue pair. Must be called without an
 * engine's lock.
 */
void vb_process_quiesce(uint32_t qpn, uint32_t key);

/*
 * Grows when contact with a process was made, failed or ended: a queue pair that waits for a
 * channel then asks again.
 */
uint64_t vb_process_contact_epoch(void);

/*
 * What rooms above do when something happens to the process. Each function may be NULL. Unless
 * said, functions run in the progress thread.
 */
struct vb_process_hook {
	bool (*channel_up)(uint32_t engine, struct vb_channel *channel); /* true: taken */
	void (*channel_down)(uint32_t engine, struct vb_channel *channel);
	void (*peer_gone)(struct vb_peer *peer);
	/* Contact was made, failed or ended; after the functions above. */
	void (*contact_changed)(void);
	/*
	 * Any thread. When it returns, every thread that checked a key before has finished with it.
	 */
	void (*pass_through)(void);
	void (*at_exit)(void); /* exit(3): the thread that called it */
	void (*progress_starts)(struct vb_node *node);
	/* The whole work of the progress thread; one hook has it. */
	void (*progress)(struct vb_node *node);
	struct vb_process_hook *next;
};

void vb_process_register(struct vb_process_hook *hook);

/* Registers the hook of this file when the library is loaded: VB_PROCESS_HOOK(.peer_gone = ...); */
#define VB_PROCESS_HOOK(...)                                            \
	static struct vb_process_hook process_hook;                     \
	__attribute__((constructor)) static void process_hook_add(void) \
	{                                                               \
		vb_process_register(&process_hook);                     \
	}                                                               \
	static struct vb_process_hook process_hook = {__VA_ARGS__}

/*
 * A timer or a sleeping engine was armed for `at` (CLOCK_MONOTONIC ns): wakes the progress thread
 * if it would sleep longer.
 */
void vb_progress_expect(uint64_t at);
/*
 * Progress thread: from here to vb_progress_plan() the thread sees everything that is armed, or
 * vb_progress_plan() fails.
 */
void vb_progress_look(void);
/*
 * The thread will look again at `until`; UINT64_MAX: only when woken. False: something was armed
 * meanwhile.
 */
bool vb_progress_plan(uint64_t until);

#endif

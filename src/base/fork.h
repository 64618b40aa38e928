/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What happens when the program forks. The parent goes on undisturbed. In the child nothing that was inherited works (engines, rings
 * and the progress thread are the parent's). Each file that holds something of the whole process, a lock or a list, registers
 * here what is to be done with it.
 */
#ifndef VB_BASE_FORK_H
#define VB_BASE_FORK_H

#include <stdint.h>

/*
 * `child` and `parent` run from the first phase to the last, `before` from the last to the first. Within a phase the order is not
 * defined: what must see another hook's work is of a later phase.
 */
enum vb_fork_phase {
	VB_FORK_NODE, /* the connection with other processes; closes the descriptors that the child inherited */
	VB_FORK_ROOMS,    /* locks and lists, each by itself */
	VB_FORK_CONTEXTS, /* the list of contexts, and what each of them holds */
	VB_FORK_DEVICES,  /* the list of devices: its lock is taken before that of the contexts */
	VB_FORK_PHASES
};

/* Each function may be NULL. In the child: one thread; locks may be held by threads that do not exist there. */
struct vb_fork_hook {
	enum vb_fork_phase phase;
	void (*before)(void);
	void (*parent)(void);
	void (*child)(void);
	struct vb_fork_hook *next; /* of its phase */
};

void vb_fork_register(struct vb_fork_hook *hook);

/* Registers the hook of this file when the library is loaded: VB_FORK_HOOK(.phase = ..., .child = ...); */
#define VB_FORK_HOOK(...)                                            \
	static struct vb_fork_hook fork_hook;                        \
	__attribute__((constructor)) static void fork_hook_add(void) \
	{                                                            \
		vb_fork_register(&fork_hook);                        \
	}                                                            \
	static struct vb_fork_hook fork_hook = {__VA_ARGS__}

/* Has the hooks called from now on (pthread_atfork(3)). Once, and before a thread can hold a lock that a hook takes. */
void vb_fork_prepare(void);

/* How many forks lie between this process and the first: what was made under another number is a parent's. */
uint32_t vb_fork_generation(void);

#endif

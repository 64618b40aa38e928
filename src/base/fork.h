/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What happens when the program forks. The parent goes on undisturbed. In the child nothing that
 * was inherited works: engines, rings and the progress thread are the parent's. Each file that
 * holds something of the whole process, a lock or a list, registers here what is to be done with
 * it.
 */
#ifndef VB_BASE_FORK_H
#define VB_BASE_FORK_H

#include <stdint.h>

#include "base/export.h"
/*
 * `child` and `parent` run from the first phase to the last, `before` from the last to the first.
 * Within a phase the order is not defined: a hook that must see another hook's work is of a later
 * phase.
 */
enum vb_fork_phase {
	/* The connections to other processes; closes the descriptors that the child inherited. */
	VB_FORK_NODE,
	VB_FORK_ROOMS,    /* locks and lists, each independent of the others */
	VB_FORK_CONTEXTS, /* the list of contexts, and what each of them holds */
	/* The list of devices: its lock is taken before the lock of the contexts. */
	VB_FORK_DEVICES,
	VB_FORK_PHASES
};

/*
 * Each function may be NULL. A child has one thread, and a lock may be held by a thread that does
 * not exist there.
 */
struct vb_fork_hook {
	enum vb_fork_phase phase;
	void (*before)(void);
	void (*parent)(void);
	void (*child)(void);
	struct vb_fork_hook *next; /* of its phase */
};

VB_SHARED void vb_fork_register(struct vb_fork_hook *hook);

/*
 * Registers the hook of a file when the library is loaded:
 * VB_FORK_HOOK(.phase = ..., .child = ...);
 */
#define VB_FORK_HOOK(...)                                            \
	static struct vb_fork_hook fork_hook;                        \
	__attribute__((constructor)) static void fork_hook_add(void) \
	{                                                            \
		vb_fork_register(&fork_hook);                        \
	}                                                            \
	static struct vb_fork_hook fork_hook = {__VA_ARGS__}

/*
 * From this call on the hooks are called at each fork (pthread_atfork(3)). Called once, before a
 * thread can hold a lock that a hook takes.
 */
VB_SHARED void vb_fork_prepare(void);

/*
 * How many forks lie between this process and the first one. An object that was made under another
 * number belongs to a parent.
 */
VB_SHARED uint32_t vb_fork_generation(void);

#endif

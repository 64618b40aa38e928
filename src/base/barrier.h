/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Barriers for two sides of which one comes often and the other seldom (membarrier(2)).
 *
 * Each side stores something, then looks at what the other one stores, and at least one of them has to
 * see the other. With a full fence between store and look on both sides, that is so. The side that comes
 * seldom can make it so for both: between its store and its look it makes all threads of the others pass
 * a full barrier. The side that comes often then only keeps the compiler from changing the order.
 */
#ifndef VB_BASE_BARRIER_H
#define VB_BASE_BARRIER_H

#include <stdbool.h>

enum vb_barrier {
	VB_BARRIER_PRIVATE, /* the threads of this process */
	VB_BARRIER_GLOBAL,  /* and those of every process of the machine that has allowed it */
};

/*
 * Allows it for this process: its own threads pass such barriers, and it may ask for them. Once for a
 * process; a forked child allows it anew. False: the kernel, or a filter of system calls, refuses.
 */
bool vb_barrier_allow(enum vb_barrier kind);

/*
 * On return, all threads concerned have passed a full barrier since the call. Where a filter of the
 * process has forbidden the call since it was allowed, waiting takes its place: some 1 ms, in which
 * processors store what they hold.
 */
void vb_barrier_pass(enum vb_barrier kind);

/* The side that comes often. `fences`: the other side cannot use vb_barrier_pass(). */
static inline void vb_barrier_light(bool fences)
{
	if (fences)
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	else
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lock for short critical sections on the fast path: taken with one atomic exchange, released
 * with one plain store.
 *
 * A release wakes no thread: waking would cost as much as taking a mutex. A thread that waits looks
 * again and again: first with pauses, then with sched_yield(2), then with sleeps, so that a holder
 * that was preempted on the same core gets to run. The lock is not recursive and not fair, with one
 * exception: vb_lock_try() fails while a thread waits. A poller that tries in a loop holds the lock
 * nearly all the time, and would keep the progress thread waiting for a second on a busy machine.
 * Locks that may be held for long (a CQ's iteration) are mutexes. A lock may lean towards one
 * thread (bias.h).
 */
#ifndef VB_BASE_LOCK_H
#define VB_BASE_LOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bias.h"

struct vb_lock {
	uint32_t held;
	uint32_t waiting;     /* threads in vb_lock_wait(); vb_lock_try() lets them go first */
	struct vb_bias *bias; /* NULL: the lock has no bias */
};

/* Waits until the lock is free (lock.c). */
void vb_lock_wait(struct vb_lock *lock);
/* To be called after the turn-th vain look: a pause, then sched_yield(2), then a sleep. */
void vb_lock_relax(int turn);

static inline bool vb_lock_try(struct vb_lock *lock)
{
	if (lock->bias && vb_bias_enter(lock->bias))
		return true;
	return !__atomic_load_n(&lock->held, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&lock->waiting, __ATOMIC_RELAXED) &&
	       !__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE) &&
	       (!lock->bias || vb_bias_tried(lock));
}

static inline void vb_lock_take(struct vb_lock *lock)
{
	if (lock->bias && vb_bias_enter(lock->bias))
		return;
	if (__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE))
		vb_lock_wait(lock);
	if (lock->bias)
		vb_bias_taken(lock);
}

static inline void vb_lock_release(struct vb_lock *lock)
{
	if (lock->bias && vb_bias_leave(lock->bias))
		return;
	__atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
}

#endif

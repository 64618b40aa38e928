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
 * Locks that may be held for long (a CQ's iteration) are mutexes. A lock may have a bias towards one
 * thread (bias.h).
 */
#ifndef VB_BASE_LOCK_H
#define VB_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bias.h"
#include "base/lock_order.h"
#include "base/seldom.h"

struct vb_lock {
#ifdef VB_CHECK_LOCKS
	uint16_t held;
	uint16_t order; /* enum vb_lock_order */
#else
	uint32_t held;
#endif
	uint32_t waiting;     /* threads in vb_lock_wait(); vb_lock_try() lets them go first */
	struct vb_bias *bias; /* NULL: the lock has no bias */
};

/* Zeroes are a lock, too: one without a place in the order of locks. */
#ifdef VB_CHECK_LOCKS
#define VB_LOCK_AT(place)        \
	{                        \
		.order = (place) \
	}
#define VB_LOCK_ORDER(lock) ((enum vb_lock_order)(lock)->order)
#else
#define VB_LOCK_AT(place) \
	{                 \
		0         \
	}
#define VB_LOCK_ORDER(lock) VB_ORDER_NONE
#endif

/* A zeroed lock is given its place. */
static inline void vb_lock_place(struct vb_lock *lock, enum vb_lock_order order)
{
	(void)lock;
	(void)order;
#ifdef VB_CHECK_LOCKS
	lock->order = (uint16_t)order;
#endif
}

/* lock_bias.c */
/*
 * vb_bias_allow() lets a lock that no thread uses yet have a bias. It returns 0 also where the
 * kernel refuses membarrier(2): the lock then stays an ordinary one. -ENOMEM. vb_bias_forget()
 * frees what it made, when no thread uses the lock any more.
 */
int vb_bias_allow(struct vb_lock *lock);
void vb_bias_forget(struct vb_lock *lock);

/*
 * To be called when the lock's `held` was just taken: ends the bias towards another thread, or
 * begins one. vb_bias_tried() returns false when the attempt failed; `held` is free then.
 */
void vb_bias_taken(struct vb_lock *lock);
bool vb_bias_tried(struct vb_lock *lock);

/* Waits until the lock is free (lock.c). */
void vb_lock_wait(struct vb_lock *lock);
/* To be called after the turn-th vain look: a pause, then sched_yield(2), then a sleep. */
void vb_lock_relax(int turn);

static inline bool vb_lock_try(struct vb_lock *lock)
{
	bool taken = (VB_SELDOM(lock->bias) && vb_bias_enter(lock->bias)) ||
		     (!__atomic_load_n(&lock->held, __ATOMIC_RELAXED) &&
		      !__atomic_load_n(&lock->waiting, __ATOMIC_RELAXED) &&
		      !__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE) &&
		      (!lock->bias || vb_bias_tried(lock)));

	if (taken)
		vb_lock_check_taken(lock, VB_LOCK_ORDER(lock));
	return taken;
}

static inline void vb_lock_take(struct vb_lock *lock)
{
	vb_lock_check_wait(lock, VB_LOCK_ORDER(lock));
	vb_lock_check_taken(lock, VB_LOCK_ORDER(lock));
	if (VB_SELDOM(lock->bias) && vb_bias_enter(lock->bias))
		return;
	if (VB_SELDOM(__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE)))
		vb_lock_wait(lock);
	if (VB_SELDOM(lock->bias))
		vb_bias_taken(lock);
}

static inline void vb_lock_release(struct vb_lock *lock)
{
	vb_lock_check_released(lock);
	if (VB_SELDOM(lock->bias) && vb_bias_leave(lock->bias))
		return;
	__atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
}

/* Mutexes of the C library, with their place in the order. */
static inline void vb_mutex_take(pthread_mutex_t *mutex, enum vb_lock_order order)
{
	vb_lock_check_wait(mutex, order);
	pthread_mutex_lock(mutex);
	vb_lock_check_taken(mutex, order);
}

static inline bool vb_mutex_try(pthread_mutex_t *mutex, enum vb_lock_order order)
{
	if (pthread_mutex_trylock(mutex))
		return false;
	vb_lock_check_taken(mutex, order);
	return true;
}

static inline void vb_mutex_release(pthread_mutex_t *mutex)
{
	vb_lock_check_released(mutex);
	pthread_mutex_unlock(mutex);
}

#endif

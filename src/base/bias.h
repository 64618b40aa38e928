/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lock with a bias towards one thread: that thread, the owner, takes it with plain loads and
 * stores, without an atomic operation. Other threads take the lock as before. The first of them
 * ends the bias by a membarrier(2), which makes the owner's stores visible. From then on the lock
 * is an ordinary one, until one thread has taken it often enough in a row again. Correctness
 * therefore does not depend on a promise that only one thread uses the lock; only the speed does. A
 * lock whose biases mostly end soon has several users, and gives up for good.
 *
 * `owner` changes only under `held`. The owner stores `inside` of its seat, then looks whether the
 * seat is still `owner`. The thread that ends the bias stores `owner`, makes every thread of the
 * process pass a full barrier, then looks at `inside`. One of the two sees the other. A seat
 * belongs to one thread for good, so a thread that looks late does not disturb a later owner.
 */
#ifndef VB_BASE_BIAS_H
#define VB_BASE_BIAS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VB_BIAS_SEATS 4 /* a lock is biased towards at most this many threads in its life */

struct vb_bias_seat {
	uintptr_t thread; /* 0: free */
	uint32_t inside;  /* the thread holds the lock, or is looking whether it may take it */
};

struct vb_bias {
	_Alignas(64) struct vb_bias_seat *owner; /* the seat of the owner, or NULL */
	/* These belong to the holder of the lock. */
	struct vb_bias_seat *holder; /* the holder came without `held`, from this seat */
	uint64_t entries;            /* of the present owner */
	uintptr_t last; /* the thread that took `held` before, and how often in a row */
	uint32_t streak;
	uint32_t ended_soon; /* how many more biases ended soon than lasted */
	bool given_up;       /* no bias begins any more: no thread is or will be inside */
	/* Length of the streak that makes an owner; grows each time that a bias ended soon. */
	uint32_t needed;
	_Alignas(64) struct vb_bias_seat seat[VB_BIAS_SEATS];
};

/* Identifies the calling thread: threads that are alive at the same time differ in it. */
static inline uintptr_t vb_bias_self(void)
{
#if defined(__has_builtin)
#if __has_builtin(__builtin_thread_pointer)
	return (uintptr_t)__builtin_thread_pointer();
#else
	return (uintptr_t)pthread_self();
#endif
#else
	return (uintptr_t)pthread_self();
#endif
}

static inline bool vb_bias_enter(struct vb_bias *b)
{
	struct vb_bias_seat *seat = __atomic_load_n(&b->owner, __ATOMIC_ACQUIRE);

	if (!seat || seat->thread != vb_bias_self())
		return false;
	__atomic_store_n(&seat->inside, 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&b->owner, __ATOMIC_RELAXED) != seat) {
		__atomic_store_n(&seat->inside, 0, __ATOMIC_RELEASE);
		return false;
	}
	b->holder = seat;
	b->entries++;
	return true;
}

/* True: the lock is released, and nothing else is to be done. */
static inline bool vb_bias_leave(struct vb_bias *b)
{
	struct vb_bias_seat *seat = b->holder;

	if (!seat)
		return false;
	b->holder = NULL;
	__atomic_store_n(&seat->inside, 0, __ATOMIC_RELEASE);
	return true;
}

#endif

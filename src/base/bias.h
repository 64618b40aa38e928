/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lock that leans towards one thread: that thread takes it with plain loads and stores, without an atomic operation. Others
 * may take it as ever; the first that does ends the inclination by a membarrier(2), which makes the favoured thread's stores
 * visible, and from then on the lock is an ordinary one until one thread has taken it often enough in a row again. So nothing
 * depends on a promise that only one thread uses the lock, only the speed does. A lock whose inclinations mostly end soon has several
 * users, and gives up for good.
 *
 * `owner` changes only under `held`. A favoured thread stores `inside` of its seat, then looks whether the seat is still `owner`; who ends
 * the inclination stores `owner`, makes every thread of the process pass a full barrier, then looks at `inside`: one of the two
 * sees the other. A seat is one thread's for good, so that a thread which looks late disturbs no later owner.
 */
#ifndef VB_BASE_BIAS_H
#define VB_BASE_BIAS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vb_lock;

#define VB_BIAS_SEATS 4 /* threads that a lock has ever leant towards; it leans towards no more */

struct vb_bias_seat {
	uintptr_t thread; /* 0: free */
	uint32_t inside;  /* the thread holds the lock, or is looking whether it may */
};

struct vb_bias {
	_Alignas(64) struct vb_bias_seat *owner; /* the favoured thread's, or NULL */
	/* The holder's own. */
	struct vb_bias_seat *holder; /* it came without `held`, from this seat */
	uint64_t entries;            /* of the present owner */
	uintptr_t last;              /* who took `held` before, and how often in a row */
	uint32_t streak;
	uint32_t regrets; /* how many more ended soon than were right */
	bool given_up;    /* it leans no more: nobody is or will be inside */
	uint32_t needed; /* so many make it the owner: more each time that an inclination was ended soon */
	_Alignas(64) struct vb_bias_seat seat[VB_BIAS_SEATS];
};

/*
 * Lets the lock, which nobody uses yet, lean. 0 also where the kernel refuses membarrier(2): the lock stays as it is. -ENOMEM.
 * vb_bias_forget() is for when nobody uses it any more.
 */
int vb_bias_allow(struct vb_lock *lock);
void vb_bias_forget(struct vb_lock *lock);

/* The lock's `held` was just taken: ends the inclination to another thread, or begins one. False: `try` failed, `held` is free. */
void vb_bias_taken(struct vb_lock *lock);
bool vb_bias_tried(struct vb_lock *lock);

/* Who is asking: threads that are alive at once differ in it. */
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

/* True: that was all. */
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

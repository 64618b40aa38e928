/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A biased lock: when the bias towards a thread begins and when it ends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/barrier.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/reason.h"

#define STREAK_FIRST    64u /* a membarrier(2) costs as much as some hundred atomic operations */
#define STREAK_MOST     (1u << 16)
#define WORTH           16u /* a bias that lasted this many streaks has paid for its end */
/* The lock gives up when this many more biases ended soon than lasted. */
#define ENDED_SOON_MOST 8u

static bool registered;

static void register_process(void)
{
	registered = vb_barrier_allow(VB_BARRIER_PRIVATE);
	if (!registered)
		vb_log(VB_LOG_INFO, "membarrier: %s: thread domains take locks as other objects do",
		       strerror(errno));
}

int vb_bias_allow(struct vb_lock *lock)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct vb_bias *b;

	pthread_once(&once, register_process);
	if (!registered)
		return 0;
	if (posix_memalign((void **)&b, _Alignof(struct vb_bias), sizeof(*b)))
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "no memory for a lock with a bias");
	memset(b, 0, sizeof(*b));
	b->needed = STREAK_FIRST;
	lock->bias = b;
	return 0;
}

void vb_bias_forget(struct vb_lock *lock)
{
	free(lock->bias);
	lock->bias = NULL;
}

/* The caller holds `held`. */
static void bias_end(struct vb_bias *b)
{
	__atomic_store_n(&b->owner, NULL, __ATOMIC_RELAXED);
	vb_barrier_pass(VB_BARRIER_PRIVATE);
}

/*
 * The caller holds the lock, and a bias has just ended. Decides whether that bias was worth its
 * end.
 */
static void bias_judge(struct vb_bias *b)
{
	if (b->entries >= (uint64_t)b->needed * WORTH) {
		b->needed = STREAK_FIRST;
		b->ended_soon -= b->ended_soon > 0;
	} else {
		b->needed = b->needed < STREAK_MOST ? b->needed * 2 : b->needed;
		b->given_up = ++b->ended_soon >= ENDED_SOON_MOST;
	}
	b->entries = 0;
}

static struct vb_bias_seat *seat_of(struct vb_bias *b, uintptr_t thread)
{
	for (int i = 0; i < VB_BIAS_SEATS; i++) {
		if (!b->seat[i].thread)
			b->seat[i].thread = thread;
		if (b->seat[i].thread == thread)
			return &b->seat[i];
	}
	return NULL;
}

static void bias_begin(struct vb_lock *lock, uintptr_t self)
{
	struct vb_bias *b = lock->bias;
	struct vb_bias_seat *seat = seat_of(b, self);

	b->streak = 0;
	if (!seat)
		return;
	b->entries = 1;
	b->holder = seat;
	__atomic_store_n(&seat->inside, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&b->owner, seat, __ATOMIC_RELEASE);
	__atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
}

static void count_streak(struct vb_lock *lock)
{
	struct vb_bias *b = lock->bias;
	uintptr_t self = vb_bias_self();

	if (b->entries)
		bias_judge(b);
	if (b->given_up)
		return;
	if (b->last != self) {
		b->last = self;
		b->streak = 0;
	} else if (++b->streak >= b->needed) {
		bias_begin(lock, self);
	}
}

/* True while a former owner is inside, or still compares itself with `owner` and will leave. */
static bool somebody_inside(const struct vb_bias *b)
{
	bool inside = false;

	for (int i = 0; i < VB_BIAS_SEATS; i++)
		inside |= __atomic_load_n(&b->seat[i].inside, __ATOMIC_ACQUIRE) != 0;
	return inside;
}

void vb_bias_taken(struct vb_lock *lock)
{
	struct vb_bias *b = lock->bias;

	if (b->given_up)
		return;
	if (__atomic_load_n(&b->owner, __ATOMIC_RELAXED))
		bias_end(b);
	for (int turn = 0; somebody_inside(b); turn++)
		vb_lock_relax(turn);
	count_streak(lock);
}

bool vb_bias_tried(struct vb_lock *lock)
{
	struct vb_bias *b = lock->bias;

	if (b->given_up)
		return true;
	if (__atomic_load_n(&b->owner, __ATOMIC_RELAXED))
		bias_end(b);
	if (somebody_inside(b)) {
		__atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
		return false;
	}
	count_streak(lock);
	return true;
}

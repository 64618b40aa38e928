/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Waiting for a lock: 200 pauses, then sched_yield(2), then sleeps. The numbers are those of the
 * poll loop, where an early yield costs microseconds.
 */
#include "base/lock.h"

#include <sched.h>
#include <time.h>

#include "base/pause.h"
#include "base/sys.h"

#define PAUSES   200
#define YIELDS   50
#define SLEEP_NS 50000

void vb_lock_relax(int turn)
{
	struct timespec t = {0, SLEEP_NS};

	if (turn < PAUSES)
		vb_pause();
	else if (turn < PAUSES + YIELDS)
		sched_yield();
	else
		vb_sys_nanosleep(&t);
}

void vb_lock_wait(struct vb_lock *lock)
{
	__atomic_fetch_add(&lock->waiting, 1, __ATOMIC_RELAXED);
	for (int turn = 0; __atomic_load_n(&lock->held, __ATOMIC_RELAXED) ||
			   __atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE);
	     turn++)
		vb_lock_relax(turn);
	__atomic_fetch_sub(&lock->waiting, 1, __ATOMIC_RELAXED);
}

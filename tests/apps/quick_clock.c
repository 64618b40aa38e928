/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Preloaded into perftest's programs (pairs.py): gettimeofday(2) that goes faster than time.
 *
 * For each size that they report, both sides measure how fast the processor's counter runs, and turn
 * 0.22 s of gettimeofday() without a pause for it. It is all that they ask this clock for: what they
 * send, and how long that takes, they measure by the counter. What they print as microseconds and
 * MB/s is wrong by the same factor, and no test looks at it.
 */
#include <stdatomic.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

#define TIMES  32
#define SECOND 1000000000ull

/* The program must see it; the tree is built with hidden names. */
#pragma GCC visibility push(default)

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	static _Atomic uint64_t first;
	uint64_t begun = 0, at = now();

	(void)zone;
	if (atomic_compare_exchange_strong(&first, &begun, at))
		begun = at;
	if (at > begun)
		at = begun + (at - begun) * TIMES;
	tv->tv_sec = (time_t)(at / SECOND);
	tv->tv_usec = (suseconds_t)(at % SECOND / 1000);
	return 0;
}

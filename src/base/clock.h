/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The clock that everything is timed by: monotonic, in ns. */
#ifndef VB_BASE_CLOCK_H
#define VB_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t vb_clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

#endif

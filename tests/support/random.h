/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A small generator for tests that spread points in time or in a range; not for secrets. */
#ifndef TESTS_SUPPORT_RANDOM_H
#define TESTS_SUPPORT_RANDOM_H

#include <stdint.h>

/* The next number (xorshift64). *state must not be 0; the same seed gives the same numbers. */
static inline uint64_t random_next(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	return x;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What messages are filled with: no two of a run alike, and no two neighbouring packets of one. */
#include "exchange.h"

uint32_t random_next(uint32_t *state)
{
	uint32_t x = *state ? *state : 0x9e3779b9u;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	*state = x;
	return x;
}

static uint32_t start_of(uint32_t seed, uint32_t index)
{
	uint32_t state = seed * 2654435761u ^ (index + 1) * 40503u;

	return random_next(&state);
}

static uint8_t byte_of(uint32_t start, uint32_t i)
{
	uint32_t x = (start + i) * 2654435761u;

	return (uint8_t)(x >> 24 ^ i >> 10);
}

void pattern_fill(uint8_t *to, uint32_t length, uint32_t seed, uint32_t index)
{
	uint32_t start = start_of(seed, index);

	for (uint32_t i = 0; i < length; i++)
		to[i] = byte_of(start, i);
}

uint32_t pattern_check(const uint8_t *from, uint32_t length, uint32_t seed, uint32_t index)
{
	uint32_t start = start_of(seed, index);

	for (uint32_t i = 0; i < length; i++)
		if (from[i] != byte_of(start, i))
			return i;
	return length;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table of ports: the next free number. */
#include "gsi/port_bits.h"

static void bit_store(uint64_t *word, uint32_t number, bool set)
{
	uint64_t bit = 1ull << number % 64, now = word[number / 64];

	__atomic_store_n(&word[number / 64], set ? now | bit : now & ~bit, __ATOMIC_RELEASE);
}

void vb_port_bits_set(struct vb_port_bits bits, uint32_t number, bool taken)
{
	if (!taken)
		bit_store(bits.full, number / 64, false);
	bit_store(bits.word, number, taken);
	if (taken && bits.word[number / 64] == UINT64_MAX)
		bit_store(bits.full, number / 64, true);
}

/* The first bit of from .. to that is 0. */
static uint32_t clear_bit(const uint64_t *word, uint32_t from, uint32_t to)
{
	for (uint32_t i = from / 64; i <= to / 64; i++) {
		uint64_t left = ~__atomic_load_n(&word[i], __ATOMIC_RELAXED);

		if (i == from / 64)
			left &= UINT64_MAX << from % 64;
		if (left) {
			uint32_t found = i * 64 + (uint32_t)__builtin_ctzll(left);

			return found <= to ? found : VB_PORT_BITS_NONE;
		}
	}
	return VB_PORT_BITS_NONE;
}

uint32_t vb_port_bits_free(struct vb_port_bits bits, uint32_t from, uint32_t to)
{
	uint32_t end = from | 63, found = clear_bit(bits.word, from, end < to ? end : to);
	uint32_t next = from / 64 + 1;

	while (found == VB_PORT_BITS_NONE && next <= to / 64) {
		next = clear_bit(bits.full, next, to / 64);
		if (next == VB_PORT_BITS_NONE)
			break;
		if (bits.word[next] == UINT64_MAX)
			bit_store(bits.full, next, true);
		end = next * 64 + 63;
		found = clear_bit(bits.word, next * 64, end < to ? end : to);
		next++;
	}
	return found;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SipHash-2-4: two rounds for each word of the message, four at the end. */
#include "base/siphash.h"

#define ROUNDS_A_WORD 2
#define ROUNDS_LAST   4

struct state {
	uint64_t v[4];
};

static uint64_t little_endian(const uint8_t *at, size_t bytes)
{
	uint64_t word = 0;

	for (size_t i = 0; i < bytes; i++)
		word |= (uint64_t)at[i] << 8 * i;
	return word;
}

static uint64_t rotate(uint64_t word, int bits)
{
	return word << bits | word >> (64 - bits);
}

/* One half of a round: adds, rotates and mixes the pairs (a, b) and (c, d). */
static void half_round(uint64_t *a, uint64_t *b, uint64_t *c, uint64_t *d, int first, int second)
{
	*a += *b;
	*c += *d;
	*b = rotate(*b, first) ^ *a;
	*d = rotate(*d, second) ^ *c;
	*a = rotate(*a, 32);
}

static void rounds(struct state *s, int count)
{
	uint64_t *v = s->v;

	for (int i = 0; i < count; i++) {
		half_round(&v[0], &v[1], &v[2], &v[3], 13, 16);
		half_round(&v[2], &v[1], &v[0], &v[3], 17, 21);
	}
}

static void word_take(struct state *s, uint64_t word)
{
	s->v[3] ^= word;
	rounds(s, ROUNDS_A_WORD);
	s->v[0] ^= word;
}

uint64_t vb_siphash(const uint8_t key[VB_SIPHASH_KEY_BYTES], const void *data, size_t length)
{
	const uint8_t *at = data;
	uint64_t k0 = little_endian(key, 8), k1 = little_endian(key + 8, 8);
	/* The constants are the letters "somepseudorandomlygeneratedbytes". */
	struct state s = {{k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du,
			   k0 ^ 0x6c7967656e657261u, k1 ^ 0x7465646279746573u}};
	size_t left = length;

	for (; left >= 8; left -= 8, at += 8)
		word_take(&s, little_endian(at, 8));
	word_take(&s, (uint64_t)length << 56 | little_endian(at, left));
	s.v[2] ^= 0xff;
	rounds(&s, ROUNDS_LAST);
	return s.v[0] ^ s.v[1] ^ s.v[2] ^ s.v[3];
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * CRC-32 by carry-less multiplication. A message is a polynomial, and only its remainder matters:
 * a block that stands D bits before another is multiplied by the remainder of x^D, which shortens
 * it, and added to that other block. The last 128 bits are brought down to 32 by Barrett's
 * reduction.
 *
 * Bits are reflected: bit 0 is the highest coefficient. The product of two reflected polynomials is
 * one bit short, so each constant is the reflected remainder, shifted left by one.
 */
#ifdef __x86_64__

#include <immintrin.h>

#include "wire/crc.h"

#define FOLD        __attribute__((target("pclmul,sse4.1")))
#define FOLD_DOUBLE __attribute__((target("pclmul,sse4.1,avx2,vpclmulqdq")))
#define FOLD_WIDE   __attribute__((target("pclmul,sse4.1,avx512f,vpclmulqdq")))

/*
 * Remainders of x^(D+32) and x^(D-32), for the two halves of a block of 128 bits that moves by D:
 * the first half stands 64 bits further ahead, and a product of 64 and 33 bits is 32 bits short of
 * 128.
 */
#define MOVE_128    0x1751997d0, 0x0ccaa009e
#define MOVE_256    0x0f1da05aa, 0x15a546366
#define MOVE_384    0x03db1ecdc, 0x174359406
#define MOVE_512    0x154442bd4, 0x1c6e41596
#define MOVE_768    0x0df068dc2, 0x18cb44e58
#define MOVE_1024   0x1e88ef372, 0x14a7fe880
#define MOVE_1536   0x1821d8bc0, 0x12e958ac4
#define MOVE_2048   0x11542778a, 0x1322d1430
#define X_64        0x163cd6124
#define X_96        0x0ccaa009e
#define POLYNOMIAL  0x1db710641
#define RECIPROCAL  0x1f7011641 /* x^64 divided by the polynomial */

#define FIRST_HALF  0x00
#define SECOND_HALF 0x11

enum { BLOCK = 16, TWO = 2 * BLOCK, FOUR = 4 * BLOCK, TWO_FOUR = 4 * TWO, WIDE_FOUR = 4 * FOUR };

static inline FOLD __m128i load(const uint8_t *at)
{
	return _mm_loadu_si128((const __m128i *)at);
}

static inline FOLD __m128i pair(uint64_t first, uint64_t second)
{
	return _mm_set_epi64x((long long)second, (long long)first);
}

static inline FOLD __m128i move(__m128i block, __m128i by)
{
	return _mm_xor_si128(_mm_clmulepi64_si128(block, by, FIRST_HALF),
			     _mm_clmulepi64_si128(block, by, SECOND_HALF));
}

static FOLD uint32_t reduce(__m128i block)
{
	const __m128i low32 = _mm_set_epi32(0, 0, 0, -1);
	__m128i quotient;

	block = _mm_xor_si128(_mm_srli_si128(block, 8),
			      _mm_clmulepi64_si128(block, pair(X_96, 0), FIRST_HALF));
	block = _mm_xor_si128(_mm_srli_si128(block, 4),
			      _mm_clmulepi64_si128(_mm_and_si128(block, low32), pair(X_64, 0),
						   FIRST_HALF));
	quotient =
		_mm_clmulepi64_si128(_mm_and_si128(block, low32), pair(RECIPROCAL, 0), FIRST_HALF);
	quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low32), pair(POLYNOMIAL, 0),
					FIRST_HALF);
	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(block, quotient), 1);
}

/* Adds the rest of the message, which is shorter than four blocks, to what is folded already. */
static FOLD uint32_t finish(__m128i block, const uint8_t *data, size_t length)
{
	const __m128i by = pair(MOVE_128);

	for (; length >= BLOCK; data += BLOCK, length -= BLOCK)
		block = _mm_xor_si128(move(block, by), load(data));
	return vb_crc_table(reduce(block), data, length);
}

/* Four blocks that follow each other, into one; independent of each other, for the sake of speed. */
static inline FOLD __m128i join(__m128i a, __m128i b, __m128i c, __m128i d)
{
	a = _mm_xor_si128(move(a, pair(MOVE_384)), move(b, pair(MOVE_256)));
	return _mm_xor_si128(_mm_xor_si128(a, d), move(c, pair(MOVE_128)));
}

/* What is in the register is added to the first 32 bits of the message. */
FOLD uint32_t vb_crc_fold(uint32_t reg, const uint8_t *data, size_t length)
{
	const __m128i by = pair(MOVE_512);
	__m128i a = _mm_xor_si128(load(data), _mm_cvtsi32_si128((int)reg));
	__m128i b;
	__m128i c;
	__m128i d;

	if (length < FOUR)
		return finish(a, data + BLOCK, length - BLOCK);
	b = load(data + BLOCK);
	c = load(data + 2 * BLOCK);
	d = load(data + 3 * BLOCK);
	for (data += FOUR, length -= FOUR; length >= FOUR; data += FOUR, length -= FOUR) {
		a = _mm_xor_si128(move(a, by), load(data));
		b = _mm_xor_si128(move(b, by), load(data + BLOCK));
		c = _mm_xor_si128(move(c, by), load(data + 2 * BLOCK));
		d = _mm_xor_si128(move(d, by), load(data + 3 * BLOCK));
	}
	return finish(join(a, b, c, d), data, length);
}

static inline FOLD_DOUBLE __m256i move_two(__m256i blocks, __m256i by, __m256i next)
{
	__m256i moved = _mm256_xor_si256(_mm256_clmulepi64_epi128(blocks, by, FIRST_HALF),
					 _mm256_clmulepi64_epi128(blocks, by, SECOND_HALF));

	return _mm256_xor_si256(moved, next);
}

static inline FOLD_DOUBLE __m256i load_two(const uint8_t *at)
{
	return _mm256_loadu_si256((const __m256i *)at);
}

static inline FOLD_DOUBLE __m256i both(uint64_t first, uint64_t second)
{
	return _mm256_broadcastsi128_si256(pair(first, second));
}

static FOLD_DOUBLE uint32_t finish_two(__m256i two, const uint8_t *data, size_t length)
{
	const __m256i by = both(MOVE_256);

	for (; length >= TWO; data += TWO, length -= TWO)
		two = move_two(two, by, load_two(data));
	return finish(_mm_xor_si128(move(_mm256_castsi256_si128(two), pair(MOVE_128)),
				    _mm256_extracti128_si256(two, 1)),
		      data, length);
}

FOLD_DOUBLE uint32_t vb_crc_fold_double(uint32_t reg, const uint8_t *data, size_t length)
{
	const __m256i by = both(MOVE_1024);
	__m256i a;
	__m256i b;
	__m256i c;
	__m256i d;

	if (length < TWO_FOUR)
		return vb_crc_fold(reg, data, length);
	a = _mm256_xor_si256(load_two(data), _mm256_zextsi128_si256(_mm_cvtsi32_si128((int)reg)));
	b = load_two(data + TWO);
	c = load_two(data + 2 * TWO);
	d = load_two(data + 3 * TWO);
	for (data += TWO_FOUR, length -= TWO_FOUR; length >= TWO_FOUR;
	     data += TWO_FOUR, length -= TWO_FOUR) {
		a = move_two(a, by, load_two(data));
		b = move_two(b, by, load_two(data + TWO));
		c = move_two(c, by, load_two(data + 2 * TWO));
		d = move_two(d, by, load_two(data + 3 * TWO));
	}
	d = move_two(a, both(MOVE_768), d);
	b = move_two(b, both(MOVE_512), move_two(c, both(MOVE_256), _mm256_setzero_si256()));
	return finish_two(_mm256_xor_si256(b, d), data, length);
}

static inline FOLD_WIDE __m512i move_wide(__m512i block, __m512i by, __m512i next)
{
	enum { SUM_OF_THREE = 0x96 }; /* exclusive or; a constant without optimization, too */

	return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(block, by, FIRST_HALF),
					 _mm512_clmulepi64_epi128(block, by, SECOND_HALF), next,
					 SUM_OF_THREE);
}

static inline FOLD_WIDE __m512i every(uint64_t first, uint64_t second)
{
	return _mm512_broadcast_i32x4(pair(first, second));
}

static FOLD_WIDE uint32_t finish_wide(__m512i wide, const uint8_t *data, size_t length)
{
	const __m512i by = every(MOVE_512);

	for (; length >= FOUR; data += FOUR, length -= FOUR)
		wide = move_wide(wide, by, _mm512_loadu_si512(data));
	return finish(join(_mm512_extracti32x4_epi32(wide, 0), _mm512_extracti32x4_epi32(wide, 1),
			   _mm512_extracti32x4_epi32(wide, 2), _mm512_extracti32x4_epi32(wide, 3)),
		      data, length);
}

FOLD_WIDE uint32_t vb_crc_fold_wide(uint32_t reg, const uint8_t *data, size_t length)
{
	const __m512i by = every(MOVE_2048);
	__m512i a;
	__m512i b;
	__m512i c;
	__m512i d;

	if (length < WIDE_FOUR)
		return vb_crc_fold(reg, data, length);
	a = _mm512_xor_si512(_mm512_loadu_si512(data),
			     _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)reg)));
	b = _mm512_loadu_si512(data + FOUR);
	c = _mm512_loadu_si512(data + 2 * FOUR);
	d = _mm512_loadu_si512(data + 3 * FOUR);
	for (data += WIDE_FOUR, length -= WIDE_FOUR; length >= WIDE_FOUR;
	     data += WIDE_FOUR, length -= WIDE_FOUR) {
		a = move_wide(a, by, _mm512_loadu_si512(data));
		b = move_wide(b, by, _mm512_loadu_si512(data + FOUR));
		c = move_wide(c, by, _mm512_loadu_si512(data + 2 * FOUR));
		d = move_wide(d, by, _mm512_loadu_si512(data + 3 * FOUR));
	}
	d = move_wide(a, every(MOVE_1536), d);
	b = move_wide(b, every(MOVE_1024), move_wide(c, every(MOVE_512), _mm512_setzero_si512()));
	return finish_wide(_mm512_xor_si512(b, d), data, length);
}

#else
typedef int vb_crc_fold_absent; /* a file is not empty */
#endif

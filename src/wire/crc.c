/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* CRC-32 by tables, four bytes at a time, and the choice between the ways to compute it. */
#include "wire/crc.h"

#include "wire/bytes.h"

#define WIDE_LEAST       256 /* below, the wider ways take longer to start and to end than they save */

/*
 * Tables of what a byte adds to the register when 0 to 3 bytes follow it in the word. A CRC is
 * linear, so an entry is the sum of what the bits of its index add; those eight are given.
 */
#define BIT(i, n, value) ((i) >> (n)&1 ? (value) : 0u)
#define ENTRY(i, b0, b1, b2, b3, b4, b5, b6, b7)                                         \
	(BIT(i, 0, b0) ^ BIT(i, 1, b1) ^ BIT(i, 2, b2) ^ BIT(i, 3, b3) ^ BIT(i, 4, b4) ^ \
	 BIT(i, 5, b5) ^ BIT(i, 6, b6) ^ BIT(i, 7, b7))
#define ROW4(i, ...)                                                                     \
	ENTRY(i, __VA_ARGS__), ENTRY((i) + 1, __VA_ARGS__), ENTRY((i) + 2, __VA_ARGS__), \
		ENTRY((i) + 3, __VA_ARGS__)
#define ROW16(i, ...)                                                                 \
	ROW4(i, __VA_ARGS__), ROW4((i) + 4, __VA_ARGS__), ROW4((i) + 8, __VA_ARGS__), \
		ROW4((i) + 12, __VA_ARGS__)
#define ROW64(i, ...)                                                                      \
	ROW16(i, __VA_ARGS__), ROW16((i) + 16, __VA_ARGS__), ROW16((i) + 32, __VA_ARGS__), \
		ROW16((i) + 48, __VA_ARGS__)
#define TABLE(...)                                                                      \
	{                                                                               \
		ROW64(0, __VA_ARGS__), ROW64(64, __VA_ARGS__), ROW64(128, __VA_ARGS__), \
			ROW64(192, __VA_ARGS__)                                         \
	}

static const uint32_t table[4][256] = {
	TABLE(0x77073096, 0xee0e612c, 0x076dc419, 0x0edb8832, 0x1db71064, 0x3b6e20c8, 0x76dc4190,
	      0xedb88320),
	TABLE(0x191b3141, 0x32366282, 0x646cc504, 0xc8d98a08, 0x4ac21251, 0x958424a2, 0xf0794f05,
	      0x3b83984b),
	TABLE(0x01c26a37, 0x0384d46e, 0x0709a8dc, 0x0e1351b8, 0x1c26a370, 0x384d46e0, 0x709a8dc0,
	      0xe1351b80),
	TABLE(0xb8bc6765, 0xaa09c88b, 0x8f629757, 0xc5b428ef, 0x5019579f, 0xa032af3e, 0x9b14583d,
	      0xed59b63b),
};

uint32_t vb_crc_table(uint32_t reg, const uint8_t *data, size_t length)
{
	for (; length >= 4; data += 4, length -= 4) {
		reg ^= vb_get32_little(data);
		reg = table[3][reg & 0xff] ^ table[2][reg >> 8 & 0xff] ^
		      table[1][reg >> 16 & 0xff] ^ table[0][reg >> 24];
	}
	for (; length; data++, length--)
		reg = reg >> 8 ^ table[0][(reg ^ *data) & 0xff];
	return reg;
}

unsigned int vb_crc_ways(void)
{
#ifdef __x86_64__
	if (!__builtin_cpu_supports("pclmul") || !__builtin_cpu_supports("sse4.1"))
		return 1;
	if (!__builtin_cpu_supports("vpclmulqdq") || !__builtin_cpu_supports("avx2"))
		return 2;
	return __builtin_cpu_supports("avx512f") ? 4 : 3;
#else
	return 1;
#endif
}

uint32_t vb_crc(uint32_t crc, const void *data, size_t length)
{
#ifdef __x86_64__
	if (length >= VB_CRC_FOLD_LEAST) {
		unsigned int ways = vb_crc_ways();

		if (ways == 4 && length >= WIDE_LEAST)
			return ~vb_crc_fold_wide(~crc, data, length);
		if (ways >= 3 && length >= WIDE_LEAST)
			return ~vb_crc_fold_double(~crc, data, length);
		if (ways >= 2)
			return ~vb_crc_fold(~crc, data, length);
	}
#endif
	return ~vb_crc_table(~crc, data, length);
}

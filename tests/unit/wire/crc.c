/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * CRC-32: each way to compute it that this processor has gives what the division bit by bit gives, for
 * each length up to some packets', at each alignment, in pieces, and reads nothing behind the end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "wire/crc.h"

#define LONGEST    1300
#define ALIGNMENTS 4

static uint8_t bytes[LONGEST + ALIGNMENTS];

static uint32_t by_bits(uint32_t reg, const uint8_t *data, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		reg ^= data[i];
		for (int bit = 0; bit < 8; bit++)
			reg = reg >> 1 ^ (reg & 1 ? 0xedb88320 : 0);
	}
	return reg;
}

static int fill(void **state)
{
	uint32_t seed = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		seed = seed * 1664525 + 1013904223;
		bytes[i] = (uint8_t)(seed >> 24);
	}
	return 0;
}

/* The check value that every description of this CRC names. */
static void check_value(void **state)
{
	(void)state;
	assert_int_equal(vb_crc(0, "123456789", 9), 0xcbf43926);
	assert_int_equal(vb_crc(0, "", 0), 0);
}

static void compare(vb_crc_way *way, size_t least)
{
	for (size_t length = least; length <= LONGEST; length++) {
		const uint8_t *at = bytes + length % ALIGNMENTS;
		uint32_t reg = (uint32_t)length * 2654435761u;

		assert_int_equal(way(reg, at, length), by_bits(reg, at, length));
	}
}

static void by_table(void **state)
{
	(void)state;
	compare(vb_crc_table, 0);
}

static void by_folding(void **state)
{
	(void)state;
	if (vb_crc_ways() < 2)
		skip();
	compare(vb_crc_fold, VB_CRC_FOLD_LEAST);
}

static void by_double_folding(void **state)
{
	(void)state;
	if (vb_crc_ways() < 3)
		skip();
	compare(vb_crc_fold_double, VB_CRC_FOLD_LEAST);
}

static void by_wide_folding(void **state)
{
	(void)state;
	if (vb_crc_ways() < 4)
		skip();
	compare(vb_crc_fold_wide, VB_CRC_FOLD_LEAST);
}

static void in_pieces(void **state)
{
	const uint32_t whole = vb_crc(0, bytes, LONGEST);

	(void)state;
	for (size_t cut = 0; cut <= LONGEST; cut++)
		assert_int_equal(vb_crc(vb_crc(0, bytes, cut), bytes + cut, LONGEST - cut), whole);
}

/* A page without access follows the message: a byte read behind it is a fault. */
static void nothing_behind(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *end =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(end, MAP_FAILED);
	assert_int_equal(mprotect(end + page, page, PROT_NONE), 0);
	memcpy(end + page - LONGEST, bytes, LONGEST);
	for (size_t length = 0; length <= LONGEST; length++)
		assert_int_equal(vb_crc(0, end + page - length, length),
				 ~by_bits(~0u, end + page - length, length));
	munmap(end, 2 * page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_value),     cmocka_unit_test(by_table),
		cmocka_unit_test(by_folding),      cmocka_unit_test(by_double_folding),
		cmocka_unit_test(by_wide_folding), cmocka_unit_test(in_pieces),
		cmocka_unit_test(nothing_behind),
	};

	return cmocka_run_group_tests(tests, fill, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: the search finds the first free number, as a walk over all of them does; also when a
 * process was killed while it changed the bits, and when they hold nonsense. A few words are looked
 * at, however many numbers are taken.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "gsi/port_bits.h"

#define NUMBERS 65536u
#define TURNS   20000
#define PAGE    4096u

static uint64_t word[VB_PORT_BITS_WORDS(NUMBERS)], full[VB_PORT_BITS_FULL(NUMBERS)];
static const struct vb_port_bits bits = {word, full};

static bool is_taken(uint32_t number)
{
	return word[number / 64] >> number % 64 & 1;
}

static uint32_t walked(uint32_t from, uint32_t to)
{
	for (uint32_t number = from; number <= to; number++) {
		if (!is_taken(number))
			return number;
	}
	return VB_PORT_BITS_NONE;
}

static uint32_t any(uint32_t below)
{
	return (uint32_t)random() % below;
}

static void check(void)
{
	uint32_t from = any(NUMBERS), to = from + any(NUMBERS - from);

	assert_int_equal(vb_port_bits_free(bits, from, to), walked(from, to));
}

static void runs_set(bool taken)
{
	uint32_t from = any(NUMBERS), to = from + any(any(8) ? 100 : NUMBERS);

	for (uint32_t number = from; number <= to && number < NUMBERS; number++)
		vb_port_bits_set(bits, number, taken);
}

static void test_random(void **state)
{
	(void)state;
	srandom(1);
	for (int i = 0; i < TURNS; i++) {
		runs_set(random() % 8 > 0);
		check();
	}
	for (uint32_t number = 0; number < NUMBERS; number++)
		vb_port_bits_set(bits, number, true);
	assert_int_equal(vb_port_bits_free(bits, 0, NUMBERS - 1), VB_PORT_BITS_NONE);
	vb_port_bits_set(bits, 777, false);
	assert_int_equal(vb_port_bits_free(bits, 0, NUMBERS - 1), 777);
	assert_int_equal(vb_port_bits_free(bits, 0, 776), VB_PORT_BITS_NONE);
	assert_int_equal(vb_port_bits_free(bits, 778, NUMBERS - 1), VB_PORT_BITS_NONE);
}

/* Killed after a word became full, or before one number of it became free: `full` lacks its bit. */
static void test_killed(void **state)
{
	(void)state;
	srandom(2);
	memset(word, 0xff, sizeof(word));
	memset(full, 0, sizeof(full));
	vb_port_bits_set(bits, 60000, false);
	assert_int_equal(vb_port_bits_free(bits, 1, NUMBERS - 1), 60000);
	for (int i = 0; i < TURNS; i++) {
		full[any(VB_PORT_BITS_FULL(NUMBERS))] &= (uint64_t)random() << 32 ^
							 (uint64_t)random();
		runs_set(random() % 8 > 0);
		check();
	}
}

static void test_nonsense(void **state)
{
	(void)state;
	srandom(3);
	for (int i = 0; i < TURNS; i++) {
		uint32_t from = any(NUMBERS), to = from + any(NUMBERS - from), found;

		word[any(VB_PORT_BITS_WORDS(NUMBERS))] = any(2) ? UINT64_MAX : (uint64_t)random();
		full[any(VB_PORT_BITS_FULL(NUMBERS))] = any(2) ? UINT64_MAX
							       : (uint64_t)random() << 31;
		found = vb_port_bits_free(bits, from, to);
		if (found != VB_PORT_BITS_NONE) {
			assert_in_range(found, from, to);
			assert_false(is_taken(found));
		}
	}
}

/* Words that are full are not read: the first page of them, but for the one of `from`, can not be. */
static void test_steps(void **state)
{
	uint8_t *map = mmap(NULL, sizeof(word) + PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct vb_port_bits far;

	(void)state;
	assert_true(map != MAP_FAILED);
	/* The first word is at the end of a page, 512 follow on the next one. */
	far = (struct vb_port_bits){(uint64_t *)(void *)(map + PAGE - sizeof(word[0])), full};
	memset(full, 0, sizeof(full));
	for (uint32_t number = 0; number < NUMBERS - 1; number++)
		vb_port_bits_set(far, number, true);
	assert_int_equal(mprotect(map + PAGE, PAGE, PROT_NONE), 0);
	assert_int_equal(vb_port_bits_free(far, 0, NUMBERS - 1), NUMBERS - 1);
	munmap(map, sizeof(word) + PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

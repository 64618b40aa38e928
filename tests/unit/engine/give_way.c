/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a thread that polls in vain gives its processor away after a while; hardly ever where it has
 * the processor for itself, or where a thread has it that never gives it back; at once where another
 * one does the same. Whatever it has found out, it finds out anew.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/give_way.h"

enum { ALONE = 300, SHARED = 5000, HOGGED = 3000000 }; /* ns */
enum { SELDOM = 10000, SOON = 100 };                   /* empty polls */

static int32_t after_calls(int32_t after, uint64_t took_ns, int calls)
{
	while (calls--)
		after = vb_give_way_next(after, took_ns);
	return after;
}

static int32_t first(void)
{
	return vb_give_way.after;
}

static void test_first(void **state)
{
	(void)state;
	assert_in_range(first(), SOON, SELDOM);
	assert_int_equal(vb_give_way.left, vb_give_way.after);
}

static void test_alone(void **state)
{
	(void)state;
	assert_in_range(after_calls(first(), ALONE, 10), SELDOM, INT32_MAX);
	/* There is an end to it: the processor may be wanted later. */
	assert_int_equal(after_calls(first(), ALONE, 100), after_calls(first(), ALONE, 1000));
}

static void test_shared(void **state)
{
	(void)state;
	assert_in_range(after_calls(first(), SHARED, 1), 1, SOON);
	assert_in_range(after_calls(after_calls(first(), ALONE, 100), SHARED, 1), 1, SOON);
	assert_in_range(after_calls(after_calls(first(), HOGGED, 100), SHARED, 1), 1, SOON);
}

static void test_hogged(void **state)
{
	(void)state;
	assert_in_range(after_calls(after_calls(first(), SHARED, 1), HOGGED, 4), SELDOM, INT32_MAX);
	assert_int_equal(after_calls(first(), HOGGED, 100), after_calls(first(), ALONE, 100));
}

/* Polls of sockets take longer, so there are fewer of them. */
static void test_polls_are_counted(void **state)
{
	struct vb_engine quick = {.reads = 0}, calls = {.reads = 1};
	int32_t left = vb_give_way.left;

	(void)state;
	vb_polled_in_vain(NULL);
	vb_polled_in_vain(&quick);
	assert_int_equal(vb_give_way.left, left - 2);
	vb_polled_in_vain(&calls);
	assert_int_equal(vb_give_way.left, left - 2 - VB_GIVE_WAY_CALL);
	vb_polled_well();
	assert_int_equal(vb_give_way.left, left);
	while (vb_give_way.left > 1)
		assert_false(vb_polled_in_vain(&quick));
	/* It gives way, says so, and begins to count anew. */
	assert_true(vb_polled_in_vain(&quick));
	assert_int_equal(vb_give_way.left, vb_give_way.after);
	assert_int_not_equal(vb_give_way.left, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first),
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_hogged),
		cmocka_unit_test(test_polls_are_counted),
	};

	return cmocka_run_group_tests_name("engine/give_way", tests, NULL, NULL);
}

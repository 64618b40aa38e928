/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* PSN arithmetic. */
#include "stand.h"

static void adds_wrap(void **state)
{
	(void)state;
	assert_int_equal(vb_psn_add(0xffffff, 1), 0);
	assert_int_equal(vb_psn_add(0xfffff0, 0x20), 0x10);
	assert_int_equal(vb_psn_add(5, VB_PSN_MASK), 4);
	assert_int_equal(vb_psn_add(0x1000005, 0), 5);
}

static void distances_are_signed(void **state)
{
	(void)state;
	assert_int_equal(vb_psn_diff(7, 7), 0);
	assert_int_equal(vb_psn_diff(0, 0xffffff), 1);
	assert_int_equal(vb_psn_diff(0xffffff, 0), -1);
	assert_int_equal(vb_psn_diff(0x7fffff, 0), 0x7fffff);
	assert_int_equal(vb_psn_diff(0x800000, 0), -0x800000);
	assert_int_equal(vb_psn_diff(0x10, 0xfffff0), 0x20);
}

/* Over every distance near the edges and from every kind of start. */
static void add_and_diff_agree(void **state)
{
	static const uint32_t starts[] = {0, 1, 0x7fffff, 0x800000, 0xfffffe, 0xffffff};
	static const uint32_t steps[] = {0, 1, 2, 255, 0x3fffff, 0x7ffffe, 0x7fffff};

	(void)state;
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++) {
			uint32_t end = vb_psn_add(starts[i], steps[k]);

			assert_true(end <= VB_PSN_MASK);
			assert_int_equal(vb_psn_diff(end, starts[i]), steps[k]);
			assert_int_equal(vb_psn_diff(starts[i], end), -(int32_t)steps[k]);
		}
	}
}

static void counts_packets(void **state)
{
	(void)state;
	assert_int_equal(vb_psn_count(0, 1024), 1);
	assert_int_equal(vb_psn_count(1, 1024), 1);
	assert_int_equal(vb_psn_count(1024, 1024), 1);
	assert_int_equal(vb_psn_count(1025, 1024), 2);
	assert_int_equal(vb_psn_count(1ull << 31, 256), 1u << 23);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(adds_wrap),
		cmocka_unit_test(distances_are_signed),
		cmocka_unit_test(add_and_diff_agree),
		cmocka_unit_test(counts_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

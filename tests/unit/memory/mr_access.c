/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Access flags of memory regions: which combinations exist (ibv_reg_mr(3)). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "memory/mr.h"

#define LW IBV_ACCESS_LOCAL_WRITE
#define RW IBV_ACCESS_REMOTE_WRITE
#define RR IBV_ACCESS_REMOTE_READ
#define RA IBV_ACCESS_REMOTE_ATOMIC

static int judge(unsigned int access)
{
	return vb_mr_check_access(&access);
}

static void remote_change_needs_local_write(void **state)
{
	(void)state;
	for (unsigned int a = 0; a < 32; a++) { /* the five classic flags */
		int expected = (a & (RW | RA)) && !(a & LW) ? -EINVAL : 0;

		assert_int_equal(judge(a), expected);
	}
}

static void optional_bits_are_dropped(void **state)
{
	(void)state;
	for (int bit = 20; bit < 30; bit++) {
		unsigned int a = LW | 1u << bit;

		assert_int_equal(vb_mr_check_access(&a), 0);
		assert_int_equal(a, LW);
	}
}

static void unknown_bits_are_refused(void **state)
{
	(void)state;
	for (int bit = 10; bit < 20; bit++)
		assert_int_equal(judge(LW | 1u << bit), -EINVAL);
	assert_int_equal(judge(1u << 30), -EINVAL);
	assert_int_equal(judge(1u << 31), -EINVAL);
}

static void what_is_not_offered(void **state)
{
	(void)state;
	assert_int_equal(judge(LW | IBV_ACCESS_ON_DEMAND), 0);
	assert_int_equal(judge(LW | IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT), 0);
	assert_int_equal(judge(LW | RR | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(remote_change_needs_local_write),
		cmocka_unit_test(optional_bits_are_dropped),
		cmocka_unit_test(unknown_bits_are_refused),
		cmocka_unit_test(what_is_not_offered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * SipHash-2-4 against values that its authors published: key 00 01 .. 0f, message 00 01 .. of so
 * many bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/siphash.h"

static void test_published(void **state)
{
	static const struct {
		size_t length;
		uint64_t hash;
	} known[] = {
		{0, 0x726fdb47dd0e0e31}, {1, 0x74f839c593dc67fd},  {7, 0xab0200f58b01d137},
		{8, 0x93f5f5799a932462}, {15, 0xa129ca6149be45e5},
	};
	uint8_t key[VB_SIPHASH_KEY_BYTES], message[16];

	(void)state;
	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = message[i] = (uint8_t)i;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		assert_int_equal(vb_siphash(key, message, known[i].length), known[i].hash);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_published)};

	return cmocka_run_group_tests_name("base/siphash", tests, NULL, NULL);
}

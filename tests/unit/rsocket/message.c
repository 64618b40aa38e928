/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection data and immediates, byte by byte as another implementation sent them, and what is
 * refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <errno.h>
#include <cmocka.h>

#include "rsocket/message.h"

/* A connection request of rstream with buffers of 1 MiB. */
static const uint8_t captured[VB_RS_HELLO_SIZE] = {
	0x01, 0x02, 0x01, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x56, 0x05, 0x86, 0xff,
	0x40, 0x00, 0x00, 0x00, 0x11, 0x9c, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x7f, 0x27,
	0x44, 0x97, 0xa0, 0x00, 0x00, 0x00, 0x12, 0x48, 0x00, 0x08, 0x00, 0x00,
};

static void a_captured_hello(void **state)
{
	struct vb_rs_hello hello;
	uint8_t bytes[VB_RS_HELLO_SIZE];

	(void)state;
	assert_int_equal(vb_rs_hello_decode(&hello, captured, sizeof(captured)), 0);
	assert_false(hello.big_endian);
	assert_true(hello.iomap);
	assert_int_equal(hello.credits, 384);
	assert_int_equal(hello.iomaps, 0);
	assert_int_equal(hello.target.addr, 0x560586ff4000);
	assert_int_equal(hello.target.key, 0x119c);
	assert_int_equal(hello.target.length, 2);
	assert_int_equal(hello.data.addr, 0x7f274497a000);
	assert_int_equal(hello.data.length, 0x80000);
	vb_rs_hello_encode(&hello, bytes);
	assert_memory_equal(bytes, captured, sizeof(captured));
}

static void what_is_no_hello(void **state)
{
	struct vb_rs_hello hello;
	uint8_t bytes[VB_RS_HELLO_SIZE];

	(void)state;
	assert_int_equal(vb_rs_hello_decode(&hello, captured, sizeof(captured) - 1), -EPROTO);
	assert_int_equal(vb_rs_hello_decode(&hello, captured, 0), -EPROTO);
	memcpy(bytes, captured, sizeof(bytes));
	bytes[0] = 2;
	assert_int_equal(vb_rs_hello_decode(&hello, bytes, sizeof(bytes)), -ENOTSUP);
	bytes[0] = 1;
	bytes[23] = 1;
	assert_int_equal(vb_rs_hello_decode(&hello, bytes, sizeof(bytes)), -EPROTO);
}

static void immediates(void **state)
{
	uint32_t message = vb_rs_message(VB_RS_SGL, 384);

	(void)state;
	assert_int_equal(message, 0x80000180);
	assert_int_equal(vb_rs_message_op(message), VB_RS_SGL);
	assert_int_equal(vb_rs_message_operand(message), 384);
	assert_int_equal(vb_rs_message(VB_RS_CTRL, VB_RS_DISCONNECT), 0xe0000000);
	assert_int_equal(vb_rs_message(VB_RS_DATA, 64), 64);
}

static void scaled_numbers(void **state)
{
	(void)state;
	for (uint32_t i = 0; i <= 128; i++)
		assert_int_equal(vb_rs_unscale(vb_rs_scale(i)), i);
	assert_int_equal(vb_rs_scale(256), 0x81);
	assert_int_equal(vb_rs_unscale(vb_rs_scale(129)), 256);
	assert_int_equal(vb_rs_unscale(vb_rs_scale(257)), 512);
	assert_int_equal(vb_rs_unscale(vb_rs_scale(UINT32_MAX)), 127 * 256);
}

static void credits_wrap(void **state)
{
	(void)state;
	assert_true(vb_rs_before(0, 1));
	assert_false(vb_rs_before(1, 1));
	assert_false(vb_rs_before(2, 1));
	assert_true(vb_rs_before(0xffff, 0));
	assert_true(vb_rs_before(0xfff0, 0x0100));
	assert_false(vb_rs_before(0x0100, 0xfff0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_captured_hello), cmocka_unit_test(what_is_no_hello),
		cmocka_unit_test(immediates),       cmocka_unit_test(scaled_numbers),
		cmocka_unit_test(credits_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

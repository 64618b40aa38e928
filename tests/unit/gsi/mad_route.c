/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: of each message of the connection manager it is known which process it is for, by the
 * receiver's communication id, by the port, or that any or all processes may have it; nothing else
 * is taken for a message.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "gsi/mad_route.h"
#include "wire/bytes.h"

#define FIRST  0x11112222u
#define SECOND 0x33334444u

static void mad_make(uint8_t data[VB_GSI_MAD_BYTES], uint16_t attribute)
{
	memset(data, 0, VB_GSI_MAD_BYTES);
	data[0] = 1;
	data[1] = 7;
	data[2] = 2;
	data[3] = 3;
	vb_put16(data + 16, attribute);
	vb_put32(data + 24, FIRST);
	vb_put32(data + 28, SECOND);
}

/* Each attribute id that there can be. */
static void test_attributes(void **state)
{
	static const struct {
		uint16_t attribute;
		enum vb_mad_way way;
		uint32_t comm_id, sender_id;
	} rows[] = {
		{0x10, VB_MAD_TO_ANY, 0, FIRST},     {0x11, VB_MAD_BY_ID, SECOND, FIRST},
		{0x12, VB_MAD_BY_ID, SECOND, FIRST}, {0x13, VB_MAD_BY_ID, SECOND, FIRST},
		{0x14, VB_MAD_BY_ID, SECOND, FIRST}, {0x15, VB_MAD_BY_ID, SECOND, FIRST},
		{0x16, VB_MAD_BY_ID, SECOND, FIRST}, {0x17, VB_MAD_TO_ANY, 0, FIRST},
		{0x18, VB_MAD_BY_ID, FIRST, 0},      {0x19, VB_MAD_NOWHERE, 0, 0},
		{0x1a, VB_MAD_NOWHERE, 0, 0},
	};
	uint8_t data[VB_GSI_MAD_BYTES];
	struct vb_mad_route route;

	(void)state;
	for (uint32_t attribute = 0; attribute <= UINT16_MAX; attribute++) {
		size_t i = 0;

		mad_make(data, (uint16_t)attribute);
		vb_put64(data + 32, 1ull << 40); /* a service id that is no port */
		vb_mad_route(data, &route);
		while (i < sizeof(rows) / sizeof(rows[0]) && rows[i].attribute != attribute)
			i++;
		if (i == sizeof(rows) / sizeof(rows[0])) {
			assert_int_equal(route.way, VB_MAD_NOWHERE);
			continue;
		}
		assert_int_equal(route.way, rows[i].way);
		assert_int_equal(route.comm_id, rows[i].comm_id);
		assert_int_equal(route.sender_id, rows[i].sender_id);
	}
}

static void test_header(void **state)
{
	uint8_t data[VB_GSI_MAD_BYTES];
	struct vb_mad_route route;

	(void)state;
	for (size_t at = 0; at < 4; at++) {
		for (uint32_t value = 0; value < 256; value++) {
			mad_make(data, 0x15);
			bool right = data[at] == value;

			data[at] = (uint8_t)value;
			vb_mad_route(data, &route);
			assert_int_equal(route.way, right ? VB_MAD_BY_ID : VB_MAD_NOWHERE);
		}
	}
}

/* Reject reason 4 without an id is for all; every other message without an id is for any. */
static void test_no_id(void **state)
{
	uint8_t data[VB_GSI_MAD_BYTES];
	struct vb_mad_route route;

	(void)state;
	for (uint16_t attribute = 0x11; attribute <= 0x16; attribute++) {
		for (uint16_t reason = 0; reason < 40; reason++) {
			mad_make(data, attribute);
			vb_put32(data + 28, 0);
			vb_put16(data + 24 + 10, reason);
			vb_mad_route(data, &route);
			assert_int_equal(route.way, attribute == 0x12 && reason == 4
							    ? VB_MAD_TO_ALL
							    : VB_MAD_TO_ANY);
		}
	}
}

static void test_ports(void **state)
{
	static const uint16_t attributes[] = {0x10, 0x17};
	static const size_t private_data[] = {24 + 140, 24 + 16};
	uint8_t data[VB_GSI_MAD_BYTES], v4[16] = {[10] = 0xff, [11] = 0xff, 198, 51, 100, 7};
	struct vb_mad_route route;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		uint8_t *p = data + private_data[i];

		mad_make(data, attributes[i]);
		vb_put64(data + 32, 0x01061c06);
		memcpy(p + 20 + 12, v4 + 12, 4);
		vb_mad_route(data, &route);
		assert_int_equal(route.way, VB_MAD_BY_PORT);
		assert_int_equal(route.space, 0x0106);
		assert_int_equal(route.port, 7174);
		assert_false(route.ip); /* no IP version: the address means nothing */
		p[1] = 0x40;
		vb_mad_route(data, &route);
		assert_true(route.ip);
		assert_memory_equal(route.address, v4, 16);
		p[1] = 0x60;
		memset(p + 20, 0xab, 16);
		vb_mad_route(data, &route);
		assert_true(route.ip);
		assert_memory_equal(route.address, p + 20, 16);
		p[0] = 1; /* another version of the header */
		vb_mad_route(data, &route);
		assert_false(route.ip);
		vb_put64(data + 32, 1ull << 32 | 0x01061c06);
		vb_mad_route(data, &route);
		assert_int_equal(route.way, VB_MAD_TO_ANY);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attributes),
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_no_id),
		cmocka_unit_test(test_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

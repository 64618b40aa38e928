/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: the path MTU that is computed for an interface fits with the longest header that any
 * packet with payload has, in both address families, and twice that path MTU does not fit. What
 * fits by IPv6 fits by IPv4.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "udp/mtu.h"
#include "wire/opcode.h"
#include "wire/packet.h"

#define IPV4_AND_UDP   28u
#define IPV6_AND_UDP   48u
#define INTERFACE_MOST 10000u

/* By the table of opcodes, which knows each packet's headers and whether it has payload. */
static uint32_t longest_header(void)
{
	uint32_t longest = 0;

	for (unsigned int code = 0; code < 256; code++) {
		const struct vb_opcode *o = vb_opcode_find((uint8_t)code);

		if (o && o->payload && o->bytes > longest)
			longest = o->bytes;
	}
	return longest;
}

static void test_header(void **state)
{
	(void)state;
	assert_int_equal(longest_header(), VB_PACKET_DATA_HEADER_MOST);
	assert_int_equal(vb_udp_overhead(true), IPV4_AND_UDP + longest_header() + VB_ICRC_BYTES);
	assert_int_equal(vb_udp_overhead(false), IPV6_AND_UDP + longest_header() + VB_ICRC_BYTES);
}

static void test_every_interface(void **state)
{
	uint32_t around[2] = {IPV6_AND_UDP + longest_header() + VB_ICRC_BYTES,
			      IPV4_AND_UDP + longest_header() + VB_ICRC_BYTES};

	(void)state;
	for (uint32_t bytes = 0; bytes < INTERFACE_MOST; bytes++) {
		for (int ipv4 = 0; ipv4 < 2; ipv4++) {
			uint32_t mtu = vb_udp_path_mtu(ipv4, bytes);
			uint32_t next = mtu ? 2 * mtu : 256;

			assert_true(!mtu || mtu + around[ipv4] <= bytes);
			assert_true(next > VB_MTU_MOST || next + around[ipv4] > bytes);
		}
		assert_true(vb_udp_path_mtu(true, bytes) >= vb_udp_path_mtu(false, bytes));
	}
}

static void test_known(void **state)
{
	static const struct {
		uint32_t bytes, ipv4, ipv6;
	} row[] = {
		{68, 0, 0},         {323, 0, 0},        {324, 256, 0},       {344, 256, 256},
		{576, 256, 256},    {1280, 1024, 1024}, {1500, 1024, 1024},  {2115, 1024, 1024},
		{2116, 2048, 1024}, {2136, 2048, 2048}, {4163, 2048, 2048},  {4164, 4096, 2048},
		{4184, 4096, 4096}, {9000, 4096, 4096}, {65536, 4096, 4096},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		assert_int_equal(vb_udp_path_mtu(true, row[i].bytes), row[i].ipv4);
		assert_int_equal(vb_udp_path_mtu(false, row[i].bytes), row[i].ipv6);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_every_interface),
		cmocka_unit_test(test_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

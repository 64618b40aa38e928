/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * GIDs and socket addresses are translated into each other; groups, and addresses that need an
 * interface, are told apart.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <string.h>

#include "udp/address.h"

static void gid_of(const char *text, uint8_t gid[16])
{
	assert_int_equal(inet_pton(AF_INET6, text, gid), 1);
}

static void test_there_and_back(void **state)
{
	static const char *const addresses[] = {
		"::ffff:192.0.2.7",
		"::ffff:224.0.0.1",
		"2001:db8::1",
		"fe80::1:2",
		"ff02::1",
		"::1",
		"::",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		union vb_udp_address address;
		uint8_t gid[16];
		uint8_t back[16];

		gid_of(addresses[i], gid);
		socklen_t length = vb_udp_address_of(&address, gid, 4791, 3);
		bool ipv4 = !strncmp(addresses[i], "::ffff:", 7);

		assert_int_equal(vb_udp_is_ipv4(gid), ipv4);
		assert_int_equal(address.any.sa_family, ipv4 ? AF_INET : AF_INET6);
		assert_int_equal(length, ipv4 ? sizeof(address.v4) : sizeof(address.v6));
		assert_int_equal(ntohs(ipv4 ? address.v4.sin_port : address.v6.sin6_port), 4791);
		vb_udp_gid_of(&address, back);
		assert_memory_equal(back, gid, 16);
	}
}

/*
 * connect(2) and sendmsg(2) refuse a link-scope address without its interface, and an interface
 * elsewhere would be a lie.
 */
static void test_scope(void **state)
{
	static const struct {
		const char *gid;
		bool group, link;
	} kinds[] = {
		{"fe80::1", false, true},
		{"febf::1", false, true},
		{"fec0::1", false, false},
		{"ff02::1", true, true},
		{"ff01::1", true, true},
		{"ff05::1", true, false},
		{"ff12::1", true, true},
		{"ff1e::1", true, false},
		{"2001:db8::1", false, false},
		{"::ffff:224.0.0.5", true, false},
		{"::ffff:239.1.1.1", true, false},
		{"::ffff:240.0.0.1", false, false},
		{"::ffff:223.1.1.1", false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		union vb_udp_address address;
		uint8_t gid[16];

		gid_of(kinds[i].gid, gid);
		assert_int_equal(vb_udp_is_group(gid), kinds[i].group);
		assert_int_equal(vb_udp_is_link_scope(gid), kinds[i].link);
		vb_udp_address_of(&address, gid, 1, 7);
		if (address.any.sa_family == AF_INET6)
			assert_int_equal(address.v6.sin6_scope_id, kinds[i].link ? 7 : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_scope),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

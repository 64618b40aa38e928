/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Each row: two bindings of one port number, and what rdma_bind_addr(3), rdma_listen(3) and an
 * automatic port make of them. What excludes does so in both orders.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cm/port_rule.h"

enum { REUSE = 1, AFONLY = 2 };

struct side {
	const char *address; /* "fe80::1%3": on interface 3 */
	int flags;
	const char *remote; /* NULL: not known */
	uint16_t remote_port;
};

#define AT(a)                  \
	{                      \
		.address = (a) \
	}
#define WITH(f, a)                           \
	{                                    \
		.address = (a), .flags = (f) \
	}

static void parse(const char *text, uint8_t address[16], uint32_t *scope)
{
	char plain[64];
	char *percent;

	snprintf(plain, sizeof(plain), "%s%s", strchr(text, ':') ? "" : "::ffff:", text);
	percent = strchr(plain, '%');
	if (percent) {
		*percent = '\0';
		*scope = (uint32_t)(percent[1] - '0');
	}
	assert_int_equal(inet_pton(AF_INET6, plain, address), 1);
}

static struct vb_port_binding binding(const struct side *side)
{
	struct vb_port_binding b = {.reuse = side->flags & REUSE, .afonly = side->flags & AFONLY};

	parse(side->address, b.address, &b.scope);
	if (side->remote)
		parse(side->remote, b.remote, &b.scope);
	b.remote_port = side->remote_port;
	return b;
}

static void test_bind(void **state)
{
	static const struct {
		struct side a, b;
		int bind, listen;
	} rows[] = {
		/* Two addresses. */
		{AT("10.0.0.1"), AT("10.0.0.2"), 0, 0},
		{AT("10.0.0.1"), AT("10.0.0.1"), -EADDRINUSE, -EADDRINUSE},
		{AT("fd00::1"), AT("fd00::1"), -EADDRINUSE, -EADDRINUSE},
		{AT("fd00::1"), AT("10.0.0.1"), 0, 0},
		/* The same address on two interfaces. */
		{AT("fe80::1%2"), AT("fe80::1%3"), 0, 0},
		{AT("fe80::1%2"), AT("fe80::1%2"), -EADDRINUSE, -EADDRINUSE},
		/* All addresses of a family. */
		{AT("0.0.0.0"), AT("10.0.0.1"), -EADDRNOTAVAIL, -EADDRNOTAVAIL},
		{AT("0.0.0.0"), AT("0.0.0.0"), -EADDRNOTAVAIL, -EADDRNOTAVAIL},
		{AT("127.0.0.1"), AT("10.0.0.1"), -EADDRNOTAVAIL, -EADDRNOTAVAIL},
		{AT("127.3.2.1"), AT("127.0.0.1"), -EADDRNOTAVAIL, -EADDRNOTAVAIL},
		{AT("::1"), AT("fd00::1"), -EADDRNOTAVAIL, -EADDRNOTAVAIL},
		{AT("::"), AT("fd00::1"), -EADDRNOTAVAIL, -EADDRNOTAVAIL},
		/* :: takes IPv4 requests as well, unless it was told not to. */
		{AT("::"), AT("0.0.0.0"), -EADDRNOTAVAIL, -EADDRNOTAVAIL},
		{AT("::"), AT("10.0.0.1"), -EADDRNOTAVAIL, -EADDRNOTAVAIL},
		{WITH(AFONLY, "::"), AT("0.0.0.0"), 0, 0},
		{WITH(AFONLY, "::"), WITH(AFONLY, "10.0.0.1"), 0, 0},
		{WITH(AFONLY, "::"), WITH(AFONLY, "::"), -EADDRNOTAVAIL, -EADDRNOTAVAIL},
		/* REUSEADDR of both lets both bind, and one of them listen. */
		{WITH(REUSE, "10.0.0.1"), WITH(REUSE, "10.0.0.1"), 0, -EADDRINUSE},
		{WITH(REUSE, "10.0.0.1"), AT("10.0.0.1"), -EADDRINUSE, -EADDRINUSE},
		{WITH(REUSE, "0.0.0.0"), WITH(REUSE, "10.0.0.1"), 0, -EADDRNOTAVAIL},
		{WITH(REUSE, "0.0.0.0"), AT("10.0.0.1"), -EADDRNOTAVAIL, -EADDRNOTAVAIL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vb_port_binding a = binding(&rows[i].a), b = binding(&rows[i].b);

		print_message("%s and %s\n", rows[i].a.address, rows[i].b.address);
		assert_int_equal(vb_port_bind_verdict(&a, &b), rows[i].bind);
		assert_int_equal(vb_port_bind_verdict(&b, &a), rows[i].bind);
		assert_int_equal(vb_port_listen_verdict(&a, &b), rows[i].listen);
		assert_int_equal(vb_port_listen_verdict(&b, &a), rows[i].listen);
	}
}

static void test_share(void **state)
{
	static const struct {
		struct side a, b;
		int share;
	} rows[] = {
		{{"10.0.0.1", 0, "10.0.0.9", 7}, {"10.0.0.1", 0, "10.0.0.9", 7}, -EADDRNOTAVAIL},
		{{"10.0.0.1", 0, "10.0.0.9", 7}, {"10.0.0.1", 0, "10.0.0.9", 8}, 0},
		{{"10.0.0.1", 0, "10.0.0.9", 7}, {"10.0.0.1", 0, "10.0.0.8", 7}, 0},
		{{"10.0.0.1", 0, "10.0.0.9", 7}, {"10.0.0.2", 0, "10.0.0.9", 7}, 0},
		/* What is not known yet may become the same. */
		{{"0.0.0.0", 0, "10.0.0.9", 7}, {"10.0.0.2", 0, "10.0.0.9", 7}, -EADDRNOTAVAIL},
		{{"10.0.0.1", 0, NULL, 7}, {"10.0.0.1", 0, "10.0.0.9", 7}, -EADDRNOTAVAIL},
		{AT("10.0.0.1"), AT("10.0.0.1"), -EADDRNOTAVAIL},
		{{"fe80::1%2", 0, "fe80::9%2", 7}, {"fe80::1%3", 0, "fe80::9%3", 7}, 0},
		/* REUSEADDR is about ports that were asked for. */
		{WITH(REUSE, "10.0.0.1"), WITH(REUSE, "10.0.0.1"), -EADDRNOTAVAIL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vb_port_binding a = binding(&rows[i].a), b = binding(&rows[i].b);

		print_message("row %zu\n", i);
		assert_int_equal(vb_port_share_verdict(&a, &b), rows[i].share);
		assert_int_equal(vb_port_share_verdict(&b, &a), rows[i].share);
	}
}

static void test_fit(void **state)
{
	static const struct {
		struct side listener;
		const char *destination;
		enum vb_port_fit fit;
	} rows[] = {
		{AT("10.0.0.1"), "10.0.0.1", VB_PORT_FIT_EXACT},
		{AT("10.0.0.1"), "10.0.0.2", VB_PORT_FIT_NONE},
		{AT("fd00::1"), "fd00::1", VB_PORT_FIT_EXACT},
		{AT("fe80::1%2"), "fe80::1%2", VB_PORT_FIT_EXACT},
		{AT("fe80::1%2"), "fe80::1%3", VB_PORT_FIT_NONE},
		{AT("0.0.0.0"), "10.0.0.1", VB_PORT_FIT_ANY_OF_FAMILY},
		{AT("0.0.0.0"), "fd00::1", VB_PORT_FIT_NONE},
		{AT("127.0.0.1"), "10.0.0.1", VB_PORT_FIT_ANY_OF_FAMILY},
		{AT("::"), "fd00::1", VB_PORT_FIT_ANY_OF_FAMILY},
		{AT("::"), "10.0.0.1", VB_PORT_FIT_ANY},
		{AT("::1"), "10.0.0.1", VB_PORT_FIT_ANY},
		{WITH(AFONLY, "::"), "10.0.0.1", VB_PORT_FIT_NONE},
		{WITH(AFONLY, "::"), "fd00::1", VB_PORT_FIT_ANY_OF_FAMILY},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vb_port_binding listener = binding(&rows[i].listener);
		uint8_t destination[16];
		uint32_t scope = 0;

		print_message("%s: a request for %s\n", rows[i].listener.address,
			      rows[i].destination);
		parse(rows[i].destination, destination, &scope);
		assert_int_equal(vb_port_fit(&listener, destination, scope), rows[i].fit);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bind),
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_fit),
	};

	return cmocka_run_group_tests_name("cm/port_rule", tests, NULL, NULL);
}

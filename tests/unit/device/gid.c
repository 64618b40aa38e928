/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * GID tables, with invented addresses: which entry an address gets and keeps; and which addresses
 * belong to this host.
 */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "device/gid.h"
#include "device/netdev.h"

static union ibv_gid gid(const char *text)
{
	union ibv_gid g;

	memset(&g, 0, sizeof(g));
	if (strchr(text, ':')) {
		assert_int_equal(inet_pton(AF_INET6, text, g.raw), 1);
	} else {
		g.raw[10] = 0xff;
		g.raw[11] = 0xff;
		assert_int_equal(inet_pton(AF_INET, text, g.raw + 12), 1);
	}
	return g;
}

/* Updates with addresses given as text, NULL at the end. */
static bool update(struct vb_gid_table *t, ...)
{
	union ibv_gid want[100];
	uint32_t n = 0;
	const char *text;
	va_list ap;

	va_start(ap, t);
	while ((text = va_arg(ap, const char *)))
		want[n++] = gid(text);
	va_end(ap);
	return vb_gid_table_update(t, want, n);
}

static void expect(const struct vb_gid_table *t, uint32_t index, const char *text)
{
	union ibv_gid g;

	assert_true(t->used[index]);
	g = gid(text);
	assert_memory_equal(&t->gid[index], &g, sizeof(g));
}

static void expect_empty(const struct vb_gid_table *t, uint32_t index)
{
	assert_false(t->used[index]);
}

static void ipv4_first(void **state)
{
	struct vb_gid_table t = {0};

	(void)state;
	assert_true(update(&t, "fe80::1", "10.0.0.1", "2001:db8::1", "10.0.0.2", NULL));
	expect(&t, 0, "10.0.0.1");
	expect(&t, 1, "10.0.0.2");
	expect(&t, 2, "fe80::1");
	expect(&t, 3, "2001:db8::1");
	expect_empty(&t, 4);
	assert_false(update(&t, "10.0.0.2", "2001:db8::1", "10.0.0.1", "fe80::1", NULL));
	expect(&t, 0, "10.0.0.1");
}

static void ipv6_only_starts_at_0(void **state)
{
	struct vb_gid_table t = {0};

	(void)state;
	assert_true(update(&t, "fe80::1", NULL));
	expect(&t, 0, "fe80::1");
	assert_true(update(&t, "fe80::1", "10.0.0.1", NULL));
	expect(&t, 0, "fe80::1"); /* stable, above all */
	expect(&t, 1, "10.0.0.1");
}

static void holes_stay_and_are_refilled(void **state)
{
	struct vb_gid_table t = {0};

	(void)state;
	update(&t, "10.0.0.1", "10.0.0.2", "fe80::1", NULL);
	assert_true(update(&t, "10.0.0.2", "fe80::1", NULL));
	expect_empty(&t, 0);
	expect(&t, 1, "10.0.0.2");
	expect(&t, 2, "fe80::1");
	assert_true(update(&t, "10.0.0.2", "fe80::1", "fe80::2", NULL));
	expect_empty(&t, 0); /* kept for IPv4 */
	expect(&t, 3, "fe80::2");
	assert_true(update(&t, "10.0.0.2", "fe80::1", "fe80::2", "10.0.0.9", NULL));
	expect(&t, 0, "10.0.0.9");
	assert_true(update(&t, NULL));
	for (uint32_t i = 0; i < VB_GID_TABLE; i++)
		expect_empty(&t, i);
	assert_false(update(&t, NULL));
}

/* A link that goes down and up: whatever comes first, each address is where it was. */
static void back_to_the_old_slot(void **state)
{
	struct vb_gid_table t = {0};

	(void)state;
	update(&t, "10.0.0.1", "10.0.0.2", "fe80::1", NULL);
	update(&t, NULL);
	update(&t, "fe80::7", NULL); /* new: not to index 0, although the table is empty */
	expect_empty(&t, 0);
	expect(&t, 1, "fe80::7");
	update(&t, "fe80::7", "fe80::1", NULL);
	expect(&t, 2, "fe80::1");
	update(&t, "fe80::7", "fe80::1", "10.0.0.1", NULL);
	expect(&t, 0, "10.0.0.1");
	update(&t, "fe80::7", "fe80::1", "10.0.0.1", "10.0.0.2", NULL);
	expect(&t, 3, "10.0.0.2"); /* its slot is taken */
}

static void one_slot_stays_free(void **state)
{
	struct vb_gid_table t = {0};
	union ibv_gid want[2 * VB_GID_TABLE];
	uint32_t used = 0;

	(void)state;
	for (uint32_t i = 0; i < 2 * VB_GID_TABLE; i++) {
		want[i] = gid("10.1.0.0");
		want[i].raw[15] = (uint8_t)i;
	}
	assert_true(vb_gid_table_update(&t, want, 2 * VB_GID_TABLE));
	for (uint32_t i = 0; i < VB_GID_TABLE; i++)
		used += t.used[i];
	assert_int_equal(used, VB_GID_TABLE - 1);
	assert_false(vb_gid_table_update(&t, want, 2 * VB_GID_TABLE));
}

static void duplicates_once(void **state)
{
	struct vb_gid_table t = {0};

	(void)state;
	update(&t, "10.0.0.1", "10.0.0.1", NULL);
	expect(&t, 0, "10.0.0.1");
	expect_empty(&t, 1);
}

static void local_addresses(void **state)
{
	union ibv_gid loopback = gid("127.0.0.1"), other = gid("127.1.2.3");
	union ibv_gid documentation = gid("203.0.113.77"), none = gid("::");

	(void)state;
	assert_true(vb_gid_is_local(&loopback));
	assert_true(vb_gid_is_local(&other));
	assert_false(vb_gid_is_local(&documentation)); /* RFC 5737: no host has it */
	assert_false(vb_gid_is_local(&none));
}

/* Every address the kernel lists is this host's. */
static void listed_addresses_are_local(void **state)
{
	struct vb_netdevs n;

	(void)state;
	assert_int_equal(vb_netdevs_scan(&n), 0);
	assert_true(n.num_dev > 0);
	for (uint32_t i = 0; i < n.num_addr; i++)
		assert_true(vb_gid_is_local(&n.addr[i].gid));
	vb_netdevs_free(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipv4_first),
		cmocka_unit_test(ipv6_only_starts_at_0),
		cmocka_unit_test(holes_stay_and_are_refilled),
		cmocka_unit_test(back_to_the_old_slot),
		cmocka_unit_test(one_slot_stays_free),
		cmocka_unit_test(duplicates_once),
		cmocka_unit_test(local_addresses),
		cmocka_unit_test(listed_addresses_are_local),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

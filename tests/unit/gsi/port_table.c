/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: the table of ports gives each port to those that may share it, finds the listener that
 * fits a request, holds 30,000 bindings, forgets processes that have ended where they are in the
 * way, keeps the blocks of numbers of these from new processes for a time, and is not led astray by
 * what others wrote into it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gsi/port_table.h"

#define TCP 0x0106
#define UDP 0x0111

static struct vb_port_table *table;
static bool ended[VB_COMMONS_SEATS];

static bool has_ended(void *arg, uint32_t seat)
{
	(void)arg;
	return seat < VB_COMMONS_SEATS && ended[seat];
}

static struct vb_port_asker asker(uint32_t seat)
{
	return (struct vb_port_asker){
		.seat = seat,
		.number = (seat + 1) << 10,
		.port_from = 40000,
		.port_to = 40002,
		.now = 1000000000ull,
		.has_ended = has_ended,
	};
}

static int setup(void **state)
{
	(void)state;
	table = calloc(1, sizeof(*table));
	memset(ended, 0, sizeof(ended));
	for (uint32_t seat = 0; table && seat < 4; seat++)
		vb_port_seat_take(table, seat, (seat + 1) << 10, 1000000000ull);
	return !table;
}

static int teardown(void **state)
{
	(void)state;
	free(table);
	return 0;
}

static void v4(uint8_t gid[16], uint32_t address)
{
	memset(gid, 0, 16);
	gid[10] = gid[11] = 0xff;
	for (int i = 0; i < 4; i++)
		gid[12 + i] = (uint8_t)(address >> 8 * (3 - i));
}

static int bind_port(uint32_t seat, uint16_t space, uint16_t port, uint32_t address, bool reuse,
		     uint64_t *handle)
{
	struct vb_gsi_binding b = {.space = space, .port = port, .reuse = reuse};
	struct vb_port_asker who = asker(seat);

	v4(b.address, address);
	return vb_port_bind(table, &who, &b, handle);
}

static int listen_port(uint32_t seat, uint64_t handle)
{
	struct vb_port_asker who = asker(seat);

	return vb_port_listen(table, &who, handle);
}

static void unbind_port(uint32_t seat, uint64_t handle)
{
	struct vb_port_asker who = asker(seat);

	vb_port_unbind(table, &who, handle);
}

/* The seat of the listener; -1: none. */
static int found(uint16_t space, uint16_t port, bool ip, uint32_t address)
{
	struct vb_port_wanted wanted = {.space = space, .port = port, .ip = ip};
	uint32_t number, seat;
	int err;

	v4(wanted.address, address);
	err = vb_port_find(table, &wanted, &number, &seat);
	if (err)
		return err == -ENOENT ? -1 : -2;
	assert_int_equal(number, (seat + 1) << 10);
	return (int)seat;
}

static void test_bind(void **state)
{
	uint64_t a, b, c;

	(void)state;
	assert_int_equal(bind_port(0, TCP, 7174, 0x0a000001, false, &a), 0);
	assert_int_equal(bind_port(1, TCP, 7174, 0x0a000001, false, &b), -EADDRINUSE);
	assert_int_equal(bind_port(1, TCP, 7174, 0, false, &b), -EADDRNOTAVAIL);
	assert_int_equal(bind_port(1, TCP, 7174, 0x7f000001, false, &b), -EADDRNOTAVAIL);
	assert_int_equal(bind_port(1, TCP, 7174, 0x0a000002, false, &b), 0);
	assert_int_equal(bind_port(1, UDP, 7174, 0x0a000001, false, &c), 0);
	assert_int_equal(bind_port(1, 0x77, 7174, 0x0a000001, false, &c), -EINVAL);
	unbind_port(1, a); /* of another process */
	assert_int_equal(bind_port(2, TCP, 7174, 0x0a000001, false, &c), -EADDRINUSE);
	unbind_port(0, a);
	assert_int_equal(bind_port(2, TCP, 7174, 0x0a000001, false, &c), 0);
	unbind_port(0, a); /* once more: the entry is another's now */
	assert_int_equal(bind_port(0, TCP, 7174, 0x0a000001, false, &a), -EADDRINUSE);
}

static void test_listen(void **state)
{
	uint64_t a, b;

	(void)state;
	assert_int_equal(bind_port(0, TCP, 80, 0x0a000001, true, &a), 0);
	assert_int_equal(bind_port(1, TCP, 80, 0x0a000001, true, &b), 0);
	assert_int_equal(found(TCP, 80, true, 0x0a000001), -1);
	assert_int_equal(listen_port(0, a), -EADDRINUSE);
	assert_int_equal(listen_port(1, a), -ENOENT);
	assert_int_equal(listen_port(0, a ^ 1ull << 40), -ENOENT);
	assert_int_equal(listen_port(0, 0), -ENOENT);
	assert_int_equal(listen_port(0, UINT64_MAX), -ENOENT);
	unbind_port(1, b);
	assert_int_equal(listen_port(0, a), 0);
	assert_int_equal(found(TCP, 80, true, 0x0a000001), 0);
	unbind_port(0, a);
	assert_int_equal(found(TCP, 80, true, 0x0a000001), -1);
}

static void test_find(void **state)
{
	uint64_t handle;

	(void)state;
	for (uint32_t seat = 0; seat < 3; seat++) {
		assert_int_equal(bind_port(seat, TCP, 90, 0x0a000001 + seat, false, &handle), 0);
		assert_int_equal(listen_port(seat, handle), 0);
	}
	assert_int_equal(bind_port(3, TCP, 91, 0, false, &handle), 0);
	assert_int_equal(listen_port(3, handle), 0);
	for (int seat = 0; seat < 3; seat++)
		assert_int_equal(found(TCP, 90, true, 0x0a000001 + (uint32_t)seat), seat);
	/* Another address of the port: some listener, which refuses. */
	assert_in_range(found(TCP, 90, true, 0x0b000001), 0, 2);
	assert_in_range(found(TCP, 90, false, 0), 0, 2);
	assert_int_equal(found(TCP, 91, true, 0x0b000001), 3);
	assert_int_equal(found(UDP, 90, true, 0x0a000001), -1);
	assert_int_equal(found(0x1234, 90, true, 0x0a000001), -1);
	assert_int_equal(found(TCP, 92, true, 0x0a000001), -1);
}

/* A range of three ports: each once, then those that can be told apart. */
static void test_automatic(void **state)
{
	struct vb_gsi_binding b = {.space = TCP, .remote_port = 7174};
	struct vb_port_asker who = asker(0);
	uint32_t seen = 0;
	uint64_t handle;

	(void)state;
	v4(b.address, 0x0a000001);
	v4(b.remote, 0x0a000009);
	for (uint32_t i = 0; i < 3; i++) {
		b.port = 0;
		who.random = i * 7;
		assert_int_equal(vb_port_bind(table, &who, &b, &handle), 0);
		assert_in_range(b.port, 40000, 40002);
		seen |= 1u << (b.port - 40000);
	}
	assert_int_equal(seen, 7);
	b.port = 0;
	assert_int_equal(vb_port_bind(table, &who, &b, &handle), -EADDRNOTAVAIL);
	b.remote_port = 7175;
	assert_int_equal(vb_port_bind(table, &who, &b, &handle), 0);
	b.port = 0;
	b.remote_port = 7174;
	v4(b.remote, 0x0a00000a);
	assert_int_equal(vb_port_bind(table, &who, &b, &handle), 0);
	/* The destination becomes another one, and the port can be had for it. */
	struct vb_gsi_binding other = b;

	v4(other.remote, 0x0a00000b);
	assert_int_equal(vb_port_change(table, &who, handle, &other), 0);
	assert_int_equal(vb_port_change(table, &who, handle ^ 1ull << 33, &other), -ENOENT);
	b.port = 0;
	assert_int_equal(vb_port_bind(table, &who, &b, &handle), 0);
}

/* What the bits say wrongly is put right, or costs a look at the ports one by one. */
static void test_wrong_bits(void **state)
{
	struct vb_gsi_binding b = {.space = TCP};
	struct vb_port_asker who = asker(0);
	uint64_t handle[3];

	(void)state;
	v4(b.address, 0x0a000001);
	for (uint32_t i = 0; i < 2; i++) {
		b.port = 0;
		assert_int_equal(vb_port_bind(table, &who, &b, &handle[i]), 0);
		assert_int_equal(b.port, 40000 + i);
	}
	memset(table->busy, 0, sizeof(table->busy)); /* free, in use: */
	b.port = 0;
	assert_int_equal(vb_port_bind(table, &who, &b, &handle[2]), 0);
	assert_int_equal(b.port, 40002);
	unbind_port(0, handle[1]);
	memset(table->busy, 0xff, sizeof(table->busy)); /* in use, free: */
	memset(table->busy_full, 0xff, sizeof(table->busy_full));
	b.port = 0;
	assert_int_equal(vb_port_bind(table, &who, &b, &handle[1]), 0);
	assert_int_equal(b.port, 40001);
}

static void test_many(void **state)
{
	struct vb_gsi_binding b = {.space = TCP};
	struct vb_port_asker who = asker(0);
	uint64_t *handle = calloc(VB_PORT_BINDINGS, sizeof(*handle)), more;

	(void)state;
	assert_non_null(handle);
	who.port_from = 32768;
	who.port_to = 60999;
	v4(b.address, 0x0a000001);
	v4(b.remote, 0x0a000009);
	for (uint32_t i = 0; i < VB_PORT_BINDINGS; i++) {
		b.port = 0;
		b.remote_port = (uint16_t)(1 + i / 20000);
		who.random = i * 2654435761u;
		assert_int_equal(vb_port_bind(table, &who, &b, &handle[i]), 0);
	}
	assert_true(VB_PORT_BINDINGS >= 30000);
	assert_int_equal(bind_port(1, UDP, 1, 0, false, &more), -ENOMEM);
	ended[0] = true; /* who has all that has ended */
	assert_int_equal(bind_port(1, UDP, 1, 0, false, &more), 0);
	ended[0] = false;
	vb_port_seat_take(table, 0, 1 << 10, 1000000000ull);
	for (uint32_t i = 0; i < VB_PORT_BINDINGS; i++)
		unbind_port(0, handle[i]);
	assert_int_equal(listen_port(1, more), 0);
	assert_int_equal(found(UDP, 1, false, 0), 1);
	free(handle);
}

static void test_ended(void **state)
{
	uint64_t handle;

	(void)state;
	assert_int_equal(bind_port(0, TCP, 7174, 0x0a000001, false, &handle), 0);
	assert_int_equal(listen_port(0, handle), 0);
	assert_int_equal(bind_port(0, TCP, 7175, 0x0a000001, false, &handle), 0);
	ended[0] = true;
	assert_int_equal(bind_port(1, TCP, 7174, 0, false, &handle), 0);
	assert_int_equal(found(TCP, 7174, false, 0), -1);
	assert_int_equal(vb_port_member(table, 0), 0);
	ended[0] = false; /* its seat is another process's; nothing is left of the former one */
	assert_int_equal(bind_port(2, TCP, 7175, 0x0a000001, false, &handle), 0);
}

static bool expected(uint16_t space, uint16_t port, uint64_t now)
{
	const struct vb_port_wanted wanted = {.space = space, .port = port};

	return vb_port_expected(table, &wanted, now);
}

static uint64_t listener(uint32_t seat, uint16_t port)
{
	uint64_t handle;

	assert_int_equal(bind_port(seat, TCP, port, 0, false, &handle), 0);
	assert_int_equal(listen_port(seat, handle), 0);
	return handle;
}

static void test_expected(void **state)
{
	struct vb_gsi_binding active = {.space = TCP, .port = 80, .remote_port = 9};
	struct vb_port_asker who = asker(0);
	const uint64_t then = who.now;
	uint64_t handle;

	(void)state;
	assert_int_equal(vb_port_bind(table, &who, &active, &handle), 0);
	assert_false(expected(TCP, 80, then)); /* a connection's */
	assert_int_equal(bind_port(0, TCP, 7174, 0, false, &handle), 0);
	assert_true(expected(TCP, 7174, then)); /* bound */
	assert_false(expected(TCP, 7175, then));
	assert_false(expected(UDP, 7174, then));
	assert_false(expected(0x77, 7174, then));
	unbind_port(0, handle);
	assert_false(expected(TCP, 7174, then)); /* it did not listen */
	unbind_port(0, listener(0, 7174));
	assert_true(expected(TCP, 7174, then));
	assert_true(expected(UDP, 7174, then));
	assert_true(expected(TCP, 7174, then + VB_PORT_LEFT_NS));
	assert_false(expected(TCP, 7174, then + VB_PORT_LEFT_NS + 1000000));
	assert_false(expected(TCP, 7175, then));
	for (uint32_t i = 0; i < VB_PORT_LEFTS; i++) {
		assert_true(expected(TCP, 7174, then));
		unbind_port(1, listener(1, 9));
	}
	assert_false(expected(TCP, 7174, then)); /* the last ones are known */
	(void)listener(0, 7174);
	ended[0] = true;
	assert_int_equal(bind_port(1, TCP, 7174, 0, false, &handle), 0);
	unbind_port(1, handle);
	assert_false(expected(TCP, 7174, then)); /* who has ended does not listen again */
}

static void test_rest(void **state)
{
	const uint64_t then = 5000000000ull;

	(void)state;
	assert_false(vb_port_block_rests(table, 77, then));
	vb_port_seat_take(table, 9, 77 << 10, then);
	assert_int_equal(vb_port_seat_of(table, 77), 9);
	assert_true(vb_port_block_rests(table, 77, then)); /* of a process that is there, or dead */
	vb_port_seat_take(table, 9, 78 << 10, then + 1);   /* its successor on the seat */
	assert_int_equal(vb_port_seat_of(table, 77), VB_PORT_NOBODY);
	assert_true(vb_port_block_rests(table, 77, then + 2000000000ull));
	assert_false(vb_port_block_rests(table, 77, then + 1 + VB_PORT_REST_NS));
	assert_int_equal(vb_port_member(table, 9), 78 << 10);
	vb_port_seat_clear(table, 9, then);
	assert_int_equal(vb_port_member(table, 9), 0);
	assert_true(vb_port_block_rests(table, 78, then));
}

/* Nonsense everywhere: nothing is touched outside of the table, and every call returns. */
static void test_nonsense(void **state)
{
	uint32_t seed = 1;

	(void)state;
	for (int round = 0; round < 6; round++) {
		uint32_t *word = (uint32_t *)(void *)table;
		struct vb_gsi_binding b = {.space = TCP};
		struct vb_port_asker who = asker(1);
		uint64_t handle = 0;

		for (size_t i = 0; i < sizeof(*table) / 4; i++) {
			seed = seed * 1664525 + 1013904223;
			/* Links that lead somewhere, links that lead in circles, others. */
			word[i] = round % 3 == 0 ? seed : round % 3 == 1 ? seed % 40000 : seed % 3;
		}
		for (uint32_t seat = 0; seat < VB_COMMONS_SEATS; seat++)
			ended[seat] = round & 1 && seat % 4 == 0;
		for (uint16_t port = 7000; port < 7010; port++) {
			(void)found(TCP, port, true, 1);
			(void)expected(TCP, port, 1ull << 60);
			(void)bind_port(1, TCP, port, 1, false, &handle);
			(void)listen_port(1, handle);
			unbind_port(1, handle);
			vb_port_mend(table, TCP, port);
		}
		b.port = 0;
		(void)vb_port_bind(table, &who, &b, &handle);
		for (uint32_t block = 0; block < VB_PORT_BLOCKS + 2; block++)
			(void)vb_port_seat_of(table, block);
		vb_port_seat_take(table, 3, 5 << 10, 1);
		vb_port_seat_clear(table, 4, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_bind, setup, teardown),
		cmocka_unit_test_setup_teardown(test_listen, setup, teardown),
		cmocka_unit_test_setup_teardown(test_find, setup, teardown),
		cmocka_unit_test_setup_teardown(test_automatic, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wrong_bits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(test_expected, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rest, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nonsense, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: what a process has published is taken once, by whoever finds that it has ended; of a
 * process that has withdrawn it nothing is; chunks go to who needs them, and never from one member to
 * another; and what is no connection of its publisher is not taken for one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "gsi/published.h"

#define ONE    (7u << 10) /* GSI numbers */
#define TWO    (9u << 10)
#define TAKERS 4

static struct vb_published *table;
static uint32_t members[] = {ONE, TWO};
static uint32_t taken[VB_PUBLISHED_CHUNKS * VB_PUBLISHED_CHUNK];
static _Atomic uint32_t takes;

static int setup(void **state)
{
	(void)state;
	table = calloc(1, sizeof(*table));
	atomic_store(&takes, 0);
	return !table;
}

static int teardown(void **state)
{
	(void)state;
	free(table);
	return 0;
}

static bool is_member(const void *arg, uint32_t number)
{
	(void)arg;
	return number == members[0] || number == members[1];
}

static struct vb_gsi_connection connection(uint32_t number, uint32_t n)
{
	struct vb_gsi_connection c = {
		.comm_id = (number >> 10 << VB_GSI_COMM_ID_BITS) + n + 1,
		.remote_id = n + 1000,
		.remote_qpn = n + 2000,
	};

	memset(c.sgid, 1, sizeof(c.sgid));
	memset(c.dgid, (int)(n & 0x7f), sizeof(c.dgid));
	return c;
}

static uint32_t claim(uint32_t number)
{
	return vb_published_claim(table, number, is_member, NULL);
}

static void take(void *arg, const struct vb_gsi_connection *c)
{
	uint32_t number = *(const uint32_t *)arg;
	uint32_t n = c->comm_id - (number >> 10 << VB_GSI_COMM_ID_BITS) - 1;
	struct vb_gsi_connection want = connection(number, n);

	assert_memory_equal(c, &want, sizeof(want));
	assert_true(n < sizeof(taken) / sizeof(taken[0]));
	__atomic_fetch_add(&taken[n], 1, __ATOMIC_RELAXED);
	atomic_fetch_add(&takes, 1);
}

static void publish(uint32_t number, uint32_t chunk, uint32_t slot, uint32_t n)
{
	struct vb_gsi_connection c = connection(number, n);

	assert_true(vb_published_set(table, number, chunk, slot, &c));
}

static void test_taken_once(void **state)
{
	uint32_t number = ONE, a = claim(ONE), b = claim(TWO);

	(void)state;
	memset(taken, 0, sizeof(taken));
	assert_true(vb_published_any(table));
	for (uint32_t n = 0; n < VB_PUBLISHED_CHUNK; n++)
		publish(ONE, a, n, n);
	publish(TWO, b, 0, 5);
	vb_published_clear(table, ONE, a, 3);
	vb_published_take(table, ONE, take, &number);
	assert_int_equal(atomic_load(&takes), VB_PUBLISHED_CHUNK - 1);
	assert_int_equal(taken[3], 0);
	vb_published_take(table, ONE, take, &number);
	assert_int_equal(atomic_load(&takes), VB_PUBLISHED_CHUNK - 1);
	number = TWO;
	vb_published_release(table, TWO, b);
	vb_published_take(table, TWO, take, &number);
	assert_int_equal(atomic_load(&takes), VB_PUBLISHED_CHUNK - 1);
	assert_false(vb_published_any(table));
}

/* A process of which others think that it has ended does not disturb who has its chunk now. */
static void test_strangers(void **state)
{
	uint32_t number = TWO, chunk = claim(ONE);
	struct vb_gsi_connection c = connection(ONE, 1);

	(void)state;
	vb_published_take(table, ONE, take, &number);
	assert_int_equal(claim(TWO), chunk);
	publish(TWO, chunk, 0, 7);
	assert_false(vb_published_set(table, ONE, chunk, 0, &c));
	vb_published_clear(table, ONE, chunk, 0);
	vb_published_release(table, ONE, chunk);
	vb_published_take(table, ONE, take, &number);
	assert_int_equal(atomic_load(&takes), 0);
	/* An id of another process's block. */
	table->entry[chunk][1] = (struct vb_published_entry){.comm_id = c.comm_id, .remote_id = 1};
	vb_published_take(table, TWO, take, &number);
	assert_int_equal(atomic_load(&takes), 1);
}

static void test_all_claimed(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < VB_PUBLISHED_CHUNKS; i++)
		assert_int_equal(claim(i ? ONE : TWO), i);
	assert_int_equal(claim(TWO), VB_PUBLISHED_NOBODY);
	publish(ONE, 5, 1, 1);
	members[0] = 0; /* it has ended, and nobody took what it left */
	assert_int_equal(claim(TWO), 1);
	for (uint32_t i = 2; i < VB_PUBLISHED_CHUNKS; i++)
		assert_int_equal(claim(TWO), i);
	assert_int_equal(table->entry[5][1].comm_id, 0);
	assert_int_equal(claim(TWO), VB_PUBLISHED_NOBODY);
	members[0] = ONE;
}

static void *taker(void *arg)
{
	vb_published_take(table, ONE, take, arg);
	return NULL;
}

/* Several notice the end at the same time. */
static void test_takers(void **state)
{
	static uint32_t number = ONE;
	const uint32_t most = VB_PUBLISHED_CHUNKS * VB_PUBLISHED_CHUNK;
	pthread_t thread[TAKERS];

	(void)state;
	memset(taken, 0, sizeof(taken));
	for (uint32_t n = 0; n < most; n++) {
		if (n % VB_PUBLISHED_CHUNK == 0)
			(void)claim(ONE);
		publish(ONE, n / VB_PUBLISHED_CHUNK, n % VB_PUBLISHED_CHUNK, n);
	}
	for (int i = 0; i < TAKERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, taker, &number), 0);
	for (int i = 0; i < TAKERS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	for (uint32_t n = 0; n < most; n++)
		assert_int_equal(taken[n], 1);
	assert_false(vb_published_any(table));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_taken_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_strangers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_all_claimed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_takers, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

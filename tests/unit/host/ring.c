/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The ring: order, fullness, bulk room, wrapping of its counters, and what it says to impossible
 * values.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "host/ring.h"

struct pair {
	struct vb_ring_half *a, *b;
	struct vb_ring_tx tx; /* a to b */
	struct vb_ring_rx rx;
};

static void pair_make(struct pair *p)
{
	size_t bytes = sizeof(struct vb_ring_half);

	p->a = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	p->b = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(p->a != MAP_FAILED && p->b != MAP_FAILED);
	vb_ring_tx_init(&p->tx, p->a, p->b);
	vb_ring_rx_init(&p->rx, p->b, p->a);
}

static void pair_free(struct pair *p)
{
	munmap(p->a, sizeof(*p->a));
	munmap(p->b, sizeof(*p->b));
}

/* All counters stand just before 2^32, as after a day of messages. */
static void pair_age(struct pair *p)
{
	uint32_t at = UINT32_MAX - 100;

	for (uint32_t i = at - VB_RING_SLOTS; i != at; i++)
		p->a->slot[i % VB_RING_SLOTS].sequence = i + 1;
	p->tx.head = p->tx.known_consumed = p->b->consumed = at;
	p->rx.tail = p->rx.told = at;
	p->tx.bulk_head = p->tx.bulk_tail = p->tx.reserved_bulk = UINT32_MAX - 63;
	p->tx.has_bulk = true;
	for (int i = 0; i < (int)VB_RING_SLOTS; i++)
		p->a->bulk_end[i] = p->tx.bulk_head;
}

static bool push(struct pair *p, uint64_t n)
{
	struct vb_slot *slot = vb_ring_reserve(&p->tx, 0, NULL);

	if (!slot)
		return false;
	memcpy(slot->data, &n, sizeof(n));
	memset(slot->data + 48, (int)n, 8);
	vb_ring_push(&p->tx);
	return true;
}

static bool take(struct pair *p, uint64_t *n)
{
	struct vb_slot slot = {0};

	if (!vb_ring_peek(&p->rx, &slot))
		return false;
	memcpy(n, slot.data, sizeof(*n));
	assert_int_equal(slot.data[55], (uint8_t)*n);
	vb_ring_pop(&p->rx);
	return true;
}

static void fill_and_drain(struct pair *p)
{
	uint64_t n = 0;

	for (uint64_t lap = 0; lap < 3; lap++) {
		for (uint64_t i = 0; i < VB_RING_SLOTS; i++)
			assert_true(push(p, i + lap));
		assert_false(push(p, 0));
		assert_false(vb_ring_drained(&p->tx));
		for (uint64_t i = 0; i < VB_RING_SLOTS; i++) {
			assert_true(take(p, &n));
			assert_int_equal(n, i + lap);
		}
		assert_false(take(p, &n));
		vb_ring_tell(&p->rx);
		assert_true(vb_ring_drained(&p->tx));
	}
	assert_false(p->tx.corrupt);
	assert_false(p->rx.corrupt);
}

/* A slot that is written in place; every third one has bulk data. */
static bool push_in_place(struct pair *p, uint64_t n)
{
	uint8_t *data;
	void *bulk;

	if (n % 3) {
		data = vb_ring_open(&p->tx);
		if (!data) /* it does not look how far the consumer is */
			return push(p, n);
	} else {
		data = vb_ring_reserve(&p->tx, 100, &bulk) ? vb_ring_open_reserved(&p->tx) : NULL;
		if (data)
			memset(bulk, (int)n, 100);
	}
	if (!data)
		return false;
	memcpy(data, &n, sizeof(n));
	memset(data + 48, (int)n, 8);
	if (n % 3)
		vb_ring_close(&p->tx);
	else
		vb_ring_close_reserved(&p->tx);
	return true;
}

static void take_in_place(struct pair *p, uint64_t expected)
{
	struct vb_slot slot = {0};
	const uint8_t *bulk;
	uint64_t n = 0;

	assert_true(vb_ring_peek(&p->rx, &slot));
	assert_int_equal(slot.bulk != VB_SLOT_NO_BULK, expected % 3 == 0);
	if (expected % 3 == 0) {
		bulk = vb_ring_bulk(&p->rx, slot.bulk, 100);
		assert_non_null(bulk);
		assert_int_equal(bulk[0], (uint8_t)expected);
		assert_int_equal(bulk[99], (uint8_t)expected);
	}
	assert_true(take(p, &n));
	assert_int_equal(n, expected);
}

/* Bulk data is room that the next slots do not get, and comes back when its slot was consumed. */
static void test_in_place(void **state)
{
	uint64_t pushed = 0, taken = 0;
	struct pair p;

	(void)state;
	pair_make(&p);
	while (pushed < 20 * VB_RING_BULK_BYTES / 128) {
		for (int i = 0; i < 700 && push_in_place(&p, pushed); i++)
			pushed++;
		while (taken < pushed)
			take_in_place(&p, taken++);
		vb_ring_tell(&p.rx);
	}
	assert_true(vb_ring_drained(&p.tx));
	assert_false(p.tx.corrupt || p.rx.corrupt);
	pair_free(&p);
}

static void test_full(void **state)
{
	struct pair p;

	(void)state;
	pair_make(&p);
	fill_and_drain(&p);
	pair_free(&p);
}

static void test_wrap(void **state)
{
	struct pair p;

	(void)state;
	pair_make(&p);
	pair_age(&p);
	fill_and_drain(&p);
	pair_free(&p);
}

/* The producer goes on after a quarter of the ring was consumed, without tell. */
static void test_told_by_quarters(void **state)
{
	struct pair p;
	uint64_t n = 0;

	(void)state;
	pair_make(&p);
	while (push(&p, 1))
		;
	for (uint32_t i = 0; i < VB_RING_SLOTS / 4 - 1; i++)
		assert_true(take(&p, &n));
	assert_false(push(&p, 1));
	assert_true(take(&p, &n));
	assert_true(push(&p, 1));
	pair_free(&p);
}

static uint32_t pattern(uint32_t n)
{
	return n * 2654435761u;
}

/*
 * Sizes that do not divide the area, more in all than it holds many times over; each chunk is
 * contiguous and intact.
 */
static void bulk_stream(struct pair *p)
{
	uint32_t sent = 0, got = 0;

	while (got < 4000) {
		uint32_t bytes = 1 + pattern(sent) % 40000;
		struct vb_slot slot = {0};
		void *room = NULL;

		if (sent < 4000 && vb_ring_reserve(&p->tx, bytes, &room)) {
			assert_int_equal((uintptr_t)room % 64, 0);
			assert_true((uint8_t *)room >= p->a->bulk);
			assert_true((uint8_t *)room + bytes <= p->a->bulk + VB_RING_BULK_BYTES);
			memset(room, (int)sent, bytes);
			memcpy(vb_ring_reserved(&p->tx)->data, &bytes, sizeof(bytes));
			vb_ring_push(&p->tx);
			sent++;
			continue;
		}
		assert_true(vb_ring_peek(&p->rx, &slot));
		memcpy(&bytes, slot.data, sizeof(bytes));
		const uint8_t *data = vb_ring_bulk(&p->rx, slot.bulk, bytes);

		assert_non_null(data);
		assert_int_equal(data[0], (uint8_t)got);
		assert_int_equal(data[bytes - 1], (uint8_t)got);
		assert_int_equal(data[bytes / 2], (uint8_t)got);
		vb_ring_pop(&p->rx);
		got++;
	}
	assert_false(p->tx.corrupt);
}

static void test_bulk(void **state)
{
	struct pair p;

	(void)state;
	pair_make(&p);
	bulk_stream(&p);
	pair_free(&p);
	pair_make(&p);
	pair_age(&p);
	bulk_stream(&p);
	pair_free(&p);
}

static void test_bulk_limits(void **state)
{
	struct vb_slot slot = {0};
	struct pair p;
	void *room;

	(void)state;
	pair_make(&p);
	assert_null(vb_ring_reserve(&p.tx, VB_RING_BULK_BYTES + 1, &room));
	/* A reservation that is not pushed costs nothing. */
	assert_non_null(vb_ring_reserve(&p.tx, 1000, &room));
	assert_non_null(vb_ring_reserve(&p.tx, VB_RING_BULK_BYTES, &room));
	assert_ptr_equal(room, p.a->bulk);
	assert_non_null(vb_ring_reserve(&p.tx, 1000, &room));
	vb_ring_push(&p.tx);
	/* The whole area, although it is empty only in the middle. */
	assert_null(vb_ring_reserve(&p.tx, VB_RING_BULK_BYTES, &room));
	assert_true(vb_ring_peek(&p.rx, &slot));
	vb_ring_pop(&p.rx);
	vb_ring_tell(&p.rx);
	assert_non_null(vb_ring_reserve(&p.tx, VB_RING_BULK_BYTES, &room));
	assert_ptr_equal(room, p.a->bulk);
	vb_ring_push(&p.tx);
	assert_null(vb_ring_reserve(&p.tx, 1, &room));
	/* Slots without bulk data still pass. */
	assert_non_null(vb_ring_reserve(&p.tx, 0, NULL));
	vb_ring_push(&p.tx);
	assert_true(vb_ring_peek(&p.rx, &slot));
	assert_non_null(vb_ring_bulk(&p.rx, slot.bulk, VB_RING_BULK_BYTES));
	vb_ring_pop(&p.rx);
	assert_true(vb_ring_peek(&p.rx, &slot));
	assert_null(vb_ring_bulk(&p.rx, slot.bulk, 1));
	vb_ring_pop(&p.rx);
	pair_free(&p);
}

/* Sends bulk data; where it lies. */
static uint32_t push_bulk(struct pair *p, uint32_t bytes)
{
	void *room = NULL;

	assert_non_null(vb_ring_reserve(&p->tx, bytes, &room));
	memset(room, (int)p->tx.head, bytes);
	vb_ring_push(&p->tx);
	return (uint32_t)((uint8_t *)room - p->a->bulk);
}

static void take_bulk(struct pair *p, uint32_t bytes)
{
	struct vb_slot slot = {0};

	assert_true(vb_ring_peek(&p->rx, &slot));
	const uint8_t *data = vb_ring_bulk(&p->rx, slot.bulk, bytes);

	assert_non_null(data);
	assert_int_equal(data[0], (uint8_t)p->rx.tail);
	assert_int_equal(data[bytes - 1], (uint8_t)p->rx.tail);
	vb_ring_pop(&p->rx);
	vb_ring_tell(&p->rx);
}

/* A ring that is kept empty uses the first part of its area again and again; else the whole. */
static void bulk_parts(struct pair *p)
{
	uint32_t part = 32 * 1024, most = 0, at;
	void *room;

	for (uint32_t i = 0; i < 3 * VB_RING_BULK_BYTES / 64; i++) {
		at = push_bulk(p, i % 2 ? 64 : 100);
		assert_true(at < part);
		take_bulk(p, i % 2 ? 64 : 100);
	}
	/* It has just begun anew, and all of it can be used. What is forgotten costs nothing. */
	do {
		at = push_bulk(p, 64);
		take_bulk(p, 64);
	} while (at);
	assert_non_null(vb_ring_reserve(&p->tx, VB_RING_BULK_BYTES, &room));
	assert_ptr_equal(room, p->a->bulk);
	push_bulk(p, 64);
	for (uint32_t i = 1; i < VB_RING_BULK_BYTES / 1024; i++) {
		at = push_bulk(p, 1024);
		most = at > most ? at : most;
		take_bulk(p, i > 1 ? 1024 : 64);
	}
	/* One was always on its way. */
	assert_true(most >= VB_RING_BULK_BYTES - 2048);
	take_bulk(p, 1024);
	assert_false(p->tx.corrupt);
	assert_false(p->rx.corrupt);
}

static void test_bulk_parts(void **state)
{
	struct pair p;

	(void)state;
	pair_make(&p);
	bulk_parts(&p);
	pair_free(&p);
}

/* bad-input 26: counts that run ahead, backwards, or jump. */
static void test_hostile_consumed(void **state)
{
	const uint32_t lies[] = {11, 4, 10 + VB_RING_SLOTS, 0x80000000u, UINT32_MAX};
	struct pair p;
	uint64_t n = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		pair_make(&p);
		for (int k = 0; k < 10; k++)
			assert_true(push(&p, 1));
		for (int k = 0; k < 5; k++)
			assert_true(take(&p, &n));
		vb_ring_tell(&p.rx);
		assert_false(vb_ring_drained(&p.tx));
		p.b->consumed = lies[i];
		assert_false(vb_ring_drained(&p.tx));
		assert_true(p.tx.corrupt);
		/* And it stays so, whatever is told later. */
		p.b->consumed = 10;
		assert_false(vb_ring_drained(&p.tx));
		pair_free(&p);
	}
}

static void test_hostile_full_ring(void **state)
{
	struct pair p;

	(void)state;
	pair_make(&p);
	while (push(&p, 1))
		;
	p.b->consumed = VB_RING_SLOTS + 1;
	assert_false(push(&p, 1));
	assert_true(p.tx.corrupt);
	p.b->consumed = VB_RING_SLOTS;
	assert_false(push(&p, 1));
	pair_free(&p);
}

static void test_hostile_sequence(void **state)
{
	struct vb_slot slot = {0};
	struct pair p;

	(void)state;
	pair_make(&p);
	assert_false(vb_ring_peek(&p.rx, &slot));
	assert_false(p.rx.corrupt);
	p.a->slot[0].sequence = 2;
	assert_false(vb_ring_peek(&p.rx, &slot));
	assert_true(p.rx.corrupt);
	pair_free(&p);
}

static void test_hostile_bulk(void **state)
{
	struct vb_slot slot = {0};
	struct pair p;
	void *room;

	(void)state;
	pair_make(&p);
	assert_non_null(vb_ring_reserve(&p.tx, 100, &room));
	vb_ring_push(&p.tx);
	assert_true(vb_ring_peek(&p.rx, &slot));
	assert_non_null(vb_ring_bulk(&p.rx, slot.bulk, VB_RING_BULK_BYTES));
	slot.bulk = 64;
	assert_null(vb_ring_bulk(&p.rx, slot.bulk, VB_RING_BULK_BYTES));
	assert_non_null(vb_ring_bulk(&p.rx, slot.bulk, VB_RING_BULK_BYTES - 64));
	assert_null(vb_ring_bulk(&p.rx, slot.bulk, UINT32_MAX));
	slot.bulk = VB_RING_BULK_BYTES;
	assert_null(vb_ring_bulk(&p.rx, slot.bulk, 0));
	slot.bulk = 32;
	assert_null(vb_ring_bulk(&p.rx, slot.bulk, 8));
	slot.bulk = UINT32_MAX - 63;
	assert_null(vb_ring_bulk(&p.rx, slot.bulk, 64));
	pair_free(&p);
}

/* bad-input 25: what was peeked does not change under the reader. */
static void test_slot_is_copied(void **state)
{
	struct vb_slot slot = {0};
	struct pair p;

	(void)state;
	pair_make(&p);
	assert_true(push(&p, 42));
	assert_true(vb_ring_peek(&p.rx, &slot));
	memset(p.a->slot[0].data, 0xff, sizeof(p.a->slot[0].data));
	assert_int_equal(slot.data[0], 42);
	pair_free(&p);
}

#define MESSAGES 1000000

static int consumer(struct pair *p)
{
	for (uint64_t want = 0; want < MESSAGES;) {
		uint64_t n = 0;

		if (!take(p, &n)) {
			vb_ring_tell(&p->rx);
			sched_yield();
		} else if (n != want++) {
			return 1;
		}
	}
	vb_ring_tell(&p->rx);
	return p->rx.corrupt;
}

static void test_two_processes(void **state)
{
	struct pair p;
	int status = -1;

	(void)state;
	pair_make(&p);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(consumer(&p));
	for (uint64_t n = 0; n < MESSAGES;) {
		if (push(&p, n))
			n++;
		else
			sched_yield();
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(vb_ring_drained(&p.tx));
	pair_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_in_place),
		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_told_by_quarters),
		cmocka_unit_test(test_bulk),
		cmocka_unit_test(test_bulk_limits),
		cmocka_unit_test(test_bulk_parts),
		cmocka_unit_test(test_hostile_consumed),
		cmocka_unit_test(test_hostile_full_ring),
		cmocka_unit_test(test_hostile_sequence),
		cmocka_unit_test(test_hostile_bulk),
		cmocka_unit_test(test_slot_is_copied),
		cmocka_unit_test(test_two_processes),
	};

	return cmocka_run_group_tests_name("host/ring", tests, NULL, NULL);
}

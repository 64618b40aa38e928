/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a program that polls and then spins on its memory has each packet at once, but for one in
 * many; a program that polls all the time is left alone by the progress thread; an idle process is
 * never woken. In virtual time: a wait lasts until the packet, or as long as it was told to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/attend.h"
#include "engine/engine.h"

enum { PACKETS = 10000, GAP_NS = 5000 };

/* A process, and its progress thread between two waits. */
struct world {
	struct vb_attend attend;
	int64_t now;
	uint64_t pollers; /* packets that pollers have taken */
	uint32_t wakes;
	int64_t worst_ns; /* the longest time for which a packet lay there */
};

static void begin(struct world *w)
{
	*w = (struct world){0};
	vb_attend_begin(&w->attend);
}

/* A packet that comes at `at`, and that a poller takes after `poller_ns` (negative: no poller). */
static void packet(struct world *w, int64_t at, int64_t poller_ns)
{
	int64_t gone = poller_ns < 0 ? INT64_MAX : at + poller_ns;
	bool taken = false, serves = false;

	while (!taken) {
		bool arm;
		int64_t most = vb_attend_before(&w->attend, true, &arm);
		int64_t end = most < 0 ? INT64_MAX : w->now + most;
		bool woken = arm && at < end && gone > at;

		if (arm && end == INT64_MAX && !woken)
			end = gone;
		w->now = woken ? (at > w->now ? at : w->now) : end;
		if (gone <= w->now) {
			w->pollers += !taken;
			taken = true;
		}
		w->wakes++;
		serves = vb_attend_after(&w->attend, woken, w->pollers);
		if (serves && !taken && w->now >= at) {
			taken = true;
			if (w->now - at > w->worst_ns)
				w->worst_ns = w->now - at;
		}
	}
	if (gone != INT64_MAX && gone > w->now)
		w->now = gone;
}

static void test_spinner(void **state)
{
	struct world w;
	uint32_t late = 0;

	(void)state;
	begin(&w);
	for (int i = 0; i < PACKETS; i++) {
		w.worst_ns = 0;
		packet(&w, w.now + GAP_NS, -1);
		late += w.worst_ns > 0;
	}
	/* Asked again after 8, 16 ... 256 packets. */
	assert_in_range(late, 1, 6 + PACKETS / 256);
}

static void test_poller(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	for (int i = 0; i < PACKETS; i++)
		packet(&w, w.now + GAP_NS, 1000);
	/* A few for each lease, and those while the trust was growing. */
	assert_true(w.wakes <= 40 + 3 * w.now / (int64_t)VB_LEASE_NS);
	assert_int_equal(w.worst_ns, 0);
}

/* A poller that has been trusted begins to spin: a packet waits for a lease, the next ones do not. */
static void test_change(void **state)
{
	struct world w;
	uint32_t late = 0;

	(void)state;
	begin(&w);
	for (int i = 0; i < PACKETS; i++)
		packet(&w, w.now + GAP_NS, 1000);
	for (int i = 0; i < 9; i++) {
		w.worst_ns = 0;
		packet(&w, w.now + GAP_NS, -1);
		assert_true(w.worst_ns <= (int64_t)VB_LEASE_NS + GAP_NS + 30000);
		late += w.worst_ns > 0;
	}
	assert_in_range(late, 1, 2);
}

/* A spinner begins to poll: the thread takes no more than 256 packets before it asks. */
static void test_change_back(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	for (int i = 0; i < PACKETS; i++)
		packet(&w, w.now + GAP_NS, -1);
	w.now = 0;
	w.wakes = 0;
	for (int i = 0; i < PACKETS; i++)
		packet(&w, w.now + GAP_NS, 1000);
	assert_true(w.wakes <= 300 + 3 * w.now / (int64_t)VB_LEASE_NS);
}

/* A poller that is long in its engine is not taken for one that spins. */
static void test_found(void **state)
{
	struct vb_attend a;
	int64_t trust = 0, before;
	bool arm;

	(void)state;
	vb_attend_begin(&a);
	for (int i = 0; i < 10; i++) {
		assert_true(vb_attend_before(&a, true, &arm) < 0);
		assert_false(vb_attend_after(&a, true, 0));
		assert_true(vb_attend_before(&a, true, &arm) > 0);
		assert_true(vb_attend_after(&a, false, 0));
		vb_attend_found_poller(&a);
		assert_false(vb_attend_serves(&a));
		before = trust;
		trust = vb_attend_before(&a, true, &arm);
		assert_true(trust == (int64_t)VB_LEASE_NS || trust > before);
		assert_false(arm);
		assert_false(vb_attend_after(&a, false, 0));
	}
}

/* Nor does the thread take more packets at once, when one is left, for having taken it for one. */
static void test_found_then_left(void **state)
{
	struct world w;
	uint32_t late = 0;

	(void)state;
	begin(&w);
	for (int i = 0; i < 4; i++) {
		bool arm;

		(void)vb_attend_before(&w.attend, true, &arm);
		(void)vb_attend_after(&w.attend, true, 0);
		(void)vb_attend_before(&w.attend, true, &arm);
		assert_true(vb_attend_after(&w.attend, false, 0));
		vb_attend_found_poller(&w.attend);
		(void)vb_attend_before(&w.attend, true, &arm);
		(void)vb_attend_after(&w.attend, false, 0);
	}
	for (int i = 0; i < 30; i++) {
		w.worst_ns = 0;
		packet(&w, w.now + GAP_NS, -1);
		late += w.worst_ns > 0;
	}
	/* The first one is late, and one behind the 8, and behind the 16, that it takes at once then. */
	assert_int_equal(late, 3);
}

/* Nobody polls: the next packet wakes the thread, and nothing else does. */
static void test_idle(void **state)
{
	struct vb_attend a;
	bool arm;

	(void)state;
	vb_attend_begin(&a);
	assert_true(vb_attend_before(&a, false, &arm) < 0);
	assert_true(arm);
	assert_false(vb_attend_after(&a, false, 0));
	/* Whatever it was about to do when the last poller stopped. */
	assert_true(vb_attend_before(&a, true, &arm) < 0);
	assert_false(vb_attend_after(&a, true, 0));
	assert_true(vb_attend_before(&a, false, &arm) < 0);
	assert_true(arm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spinner), cmocka_unit_test(test_poller),
		cmocka_unit_test(test_change),  cmocka_unit_test(test_change_back),
		cmocka_unit_test(test_found),   cmocka_unit_test(test_found_then_left),
		cmocka_unit_test(test_idle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

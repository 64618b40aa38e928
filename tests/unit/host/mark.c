/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Marks: a revocation waits for the accesses that name it, not for others, and not for those of
 * processes that have ended.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <signal.h>
#include <cmocka.h>

#include "base/reason.h"
#include "unit/host/end.h"

#define HOLD_MS   400
/* Of different slots: a mark names the slot (host/page.h). */
#define KEY       0x74000701u
#define OTHER_KEY 0x74000801u

enum { MARK_KEY, MARK_QP, MARK_OTHER_KEY, MARK_AND_STAY };

/*
 * Sets a mark on the caller when told. Clears it HOLD_MS later, or when told where no wait is
 * expected, and says when.
 */
static int initiator(int sock, void *arg)
{
	enum vb_contact why;
	static struct end end; /* its thread outlives this function */

	(void)arg;
	end_start(&end);
	uint32_t engine = end_engine(&end);
	uint32_t qpn = (uint32_t)hear(sock);
	struct vb_channel *ch = end_find(&end, engine, qpn, END_PATIENCE_MS, &why);

	tell(sock, ch != NULL);
	while (ch) {
		uint64_t what = hear(sock);
		bool waited_for = what == MARK_KEY || what == MARK_QP;

		vb_mark_set(end.node, engine, ch->peer, what == MARK_QP ? qpn : qpn + 1,
			    what == MARK_OTHER_KEY ? OTHER_KEY : KEY);
		tell(sock, 0);
		if (waited_for)
			end_sleep_ms(HOLD_MS);
		else
			hear(sock);
		uint64_t now = (uint64_t)end_clock();

		vb_mark_clear(end.node, engine);
		if (waited_for)
			hear(sock);
		tell(sock, now);
	}
	return 1;
}

struct fixture {
	struct end end;
	struct child child;
	uint32_t engine;
	uint32_t qpn;
	uint64_t stills; /* marks that were not waited for any longer, before the test */
	int64_t cleared; /* when this process cleared its own, or killed the other one */
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	child_start(&f->child, initiator, NULL);
	end_start(&f->end);
	f->engine = end_engine(&f->end);
	f->qpn = end_qp(&f->end, f->engine, NULL);
	tell(f->child.sock, f->qpn);
	f->stills = vb_reason_count(VB_REASON_PEER_STILL);
	*state = f;
	return hear(f->child.sock) ? 0 : -1;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	child_kill(&f->child);
	end_stop(&f->end);
	free(f);
	return 0;
}

/* Whether a wait was broken off: a mark stood for too long (VB_STANDSTILL_NS). */
static bool broke_off(const struct fixture *f)
{
	return vb_reason_count(VB_REASON_PEER_STILL) != f->stills;
}

/* Awaits what has a mark: not before that was cleared, unless the other process gets no processor. */
static void expect_wait(struct fixture *f, uint64_t what, uint32_t qpn, uint32_t key)
{
	tell(f->child.sock, what);
	hear(f->child.sock);
	vb_mark_await(f->end.node, qpn, key);
	int64_t now = end_clock();

	tell(f->child.sock, 0);
	int64_t cleared = (int64_t)hear(f->child.sock);

	assert_true(now >= cleared || broke_off(f));
}

/* Awaits what has none, while another mark stands. */
static void expect_none(struct fixture *f, uint64_t what, uint32_t qpn, uint32_t key)
{
	tell(f->child.sock, what);
	hear(f->child.sock);
	vb_mark_await(f->end.node, qpn, key);
	tell(f->child.sock, 0);
	hear(f->child.sock);
	assert_false(broke_off(f));
}

static void test_waits(void **state)
{
	struct fixture *f = *state;

	expect_wait(f, MARK_KEY, 0, KEY);
	expect_wait(f, MARK_QP, f->qpn, 0);
}

static void test_others_pass(void **state)
{
	struct fixture *f = *state;

	expect_none(f, MARK_OTHER_KEY, 0, KEY);
	expect_none(f, MARK_AND_STAY, f->qpn, 0);
}

static void *killer(void *arg)
{
	struct fixture *f = arg;

	end_sleep_ms(HOLD_MS);
	f->cleared = end_clock();
	kill(f->child.pid, SIGKILL);
	return NULL;
}

static void test_dead_do_not_count(void **state)
{
	struct fixture *f = *state;
	pthread_t thread;

	tell(f->child.sock, MARK_AND_STAY);
	hear(f->child.sock);
	assert_int_equal(pthread_create(&thread, NULL, killer, f), 0);
	vb_mark_await(f->end.node, 0, KEY);
	int64_t now = end_clock();

	pthread_join(thread, NULL);
	assert_true(now >= f->cleared || broke_off(f));
	/* The mark is still in its page, but the process has left the table or is dead: no wait. */
	f->stills = vb_reason_count(VB_REASON_PEER_STILL);
	vb_mark_await(f->end.node, 0, KEY);
	assert_false(broke_off(f));
}

/* An engine of the process itself that is at work on it by the direct path. */
static void *own_mark(void *arg)
{
	struct fixture *f = arg;

	end_sleep_ms(HOLD_MS);
	f->cleared = end_clock();
	vb_mark_clear(f->end.node, f->engine);
	return NULL;
}

static void test_own(void **state)
{
	struct fixture *f = *state;
	enum vb_contact why;
	struct vb_channel *loop = vb_channel_find(f->end.node, f->engine, f->qpn, &why);
	pthread_t thread;

	vb_mark_set(f->end.node, f->engine, loop->peer, f->qpn, KEY);
	assert_int_equal(pthread_create(&thread, NULL, own_mark, f), 0);
	vb_mark_await(f->end.node, 0, KEY);
	int64_t now = end_clock();

	pthread_join(thread, NULL);
	assert_true(now >= f->cleared);
	end_close(&f->end, loop);
}

/* Who revokes looks only at engines that may have a mark, wherever in the table they are. */
static void test_rest(void **state)
{
	struct fixture *f = *state;
	struct vb_node *node = f->end.node;
	uint32_t far = f->engine;

	while (far < 130)
		far = end_engine(&f->end);
	assert_false(vb_mark_is_listed(node, far));
	vb_mark_set_own(node, far, KEY);
	assert_true(vb_mark_is_listed(node, far));
	assert_false(vb_mark_is_listed(node, far - 1));
	vb_mark_clear(node, far);
	assert_true(vb_mark_is_listed(node, far));
	vb_mark_rest(node, far);
	assert_false(vb_mark_is_listed(node, far));
	vb_mark_set_own(node, far, KEY);
	assert_true(vb_mark_is_listed(node, far));
	vb_mark_clear(node, far);
	vb_mark_await(node, 0, KEY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_waits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_others_pass, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_dead_do_not_count, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_own, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rest, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("host/mark", tests, NULL, NULL);
}

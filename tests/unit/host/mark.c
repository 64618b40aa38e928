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
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "unit/host/end.h"

#define HOLD_MS   400
/* Of different slots: a mark names the slot (host/page.h). */
#define KEY       0x74000701u
#define OTHER_KEY 0x74000801u

enum { MARK_KEY, MARK_QP, MARK_OTHER_KEY, MARK_AND_STAY };

/* Sets a mark on the caller when told, and clears it HOLD_MS later. */
static int initiator(int sock, void *arg)
{
	enum vb_contact why;
	static struct end end; /* its thread outlives this function */

	(void)arg;
	end_start(&end);
	uint32_t engine = end_engine(&end);
	uint32_t qpn = (uint32_t)hear(sock);
	struct vb_channel *ch = end_find(&end, engine, qpn, 5000, &why);

	tell(sock, ch != NULL);
	while (ch) {
		uint64_t what = hear(sock);

		vb_mark_set(end.node, engine, ch->peer, what == MARK_QP ? qpn : qpn + 1,
			    what == MARK_OTHER_KEY ? OTHER_KEY : KEY);
		tell(sock, 0);
		end_sleep_ms(what == MARK_AND_STAY ? 60000 : HOLD_MS);
		vb_mark_clear(end.node, engine);
		hear(sock);
	}
	return 1;
}

struct fixture {
	struct end end;
	struct child child;
	uint32_t engine;
	uint32_t qpn;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	child_start(&f->child, initiator, NULL);
	end_start(&f->end);
	f->engine = end_engine(&f->end);
	f->qpn = end_qp(&f->end, f->engine, NULL);
	tell(f->child.sock, f->qpn);
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

static int await_ms(struct fixture *f, uint64_t what, uint32_t qpn, uint32_t key)
{
	tell(f->child.sock, what);
	hear(f->child.sock);
	int64_t from = end_clock();

	vb_mark_await(f->end.node, qpn, key);
	int ms = (int)((end_clock() - from) / 1000000);

	tell(f->child.sock, 0);
	return ms;
}

static void test_waits(void **state)
{
	struct fixture *f = *state;

	assert_in_range(await_ms(f, MARK_KEY, 0, KEY), HOLD_MS - 30, HOLD_MS + 2000);
	end_sleep_ms(HOLD_MS);
	assert_in_range(await_ms(f, MARK_QP, f->qpn, 0), HOLD_MS - 30, HOLD_MS + 2000);
}

static void test_others_pass(void **state)
{
	struct fixture *f = *state;

	assert_in_range(await_ms(f, MARK_OTHER_KEY, 0, KEY), 0, HOLD_MS / 2);
	end_sleep_ms(HOLD_MS);
	assert_in_range(await_ms(f, MARK_KEY, f->qpn, 0), 0, HOLD_MS / 2);
}

static void test_dead_do_not_count(void **state)
{
	struct fixture *f = *state;

	tell(f->child.sock, MARK_AND_STAY);
	hear(f->child.sock);
	pid_t killer = fork();

	if (killer == 0) {
		end_sleep_ms(100);
		kill(f->child.pid, 9);
		_exit(0);
	}
	int64_t from = end_clock();

	vb_mark_await(f->end.node, 0, KEY);
	assert_in_range((end_clock() - from) / 1000000, 50, 2000);
	/* The mark is still in its page, but the process has left the table or is dead: no wait. */
	from = end_clock();
	vb_mark_await(f->end.node, 0, KEY);
	assert_in_range((end_clock() - from) / 1000000, 0, 200);
	waitpid(killer, NULL, 0);
}

/* An engine of the process itself that is at work on it by the direct path. */
static void *own_mark(void *arg)
{
	struct fixture *f = arg;

	end_sleep_ms(HOLD_MS);
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
	int64_t from = end_clock();

	assert_int_equal(pthread_create(&thread, NULL, own_mark, f), 0);
	vb_mark_await(f->end.node, 0, KEY);
	assert_in_range((end_clock() - from) / 1000000, HOLD_MS - 30, HOLD_MS + 2000);
	pthread_join(thread, NULL);
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

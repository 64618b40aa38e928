/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: an engine that falls asleep makes its senders pass a barrier, after it has said that it
 * sleeps: senders look at that without a fence of their own. Where membarrier(2) is refused to one
 * of two processes, both know it, the senders of both have the fence, and no barrier is asked for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/barrier.h"
#include "host/bell.h"
#include "host/private.h"
#include "support/filter.h"
#include "unit/host/end.h"

/* What was asked of the kernel (the test is linked with --wrap). */
static struct {
	uint32_t passes;
	enum vb_barrier kind;
	const uint32_t *watched; /* NULL: nothing */
	uint32_t found;          /* in `watched`, during the last pass */
} barrier;

void __real_vb_barrier_pass(enum vb_barrier kind);
void __wrap_vb_barrier_pass(enum vb_barrier kind);

void __wrap_vb_barrier_pass(enum vb_barrier kind)
{
	barrier.passes++;
	barrier.kind = kind;
	if (barrier.watched)
		barrier.found = __atomic_load_n(barrier.watched, __ATOMIC_RELAXED);
	__real_vb_barrier_pass(kind);
}

static uint32_t *asleep_word(const struct end *end, uint32_t engine)
{
	return &vb_node_page(end->node)->engine[engine].asleep;
}

/* The barriers that are asked for when the engine falls asleep, `times` times in a row. */
static uint32_t fall_asleep(const struct end *end, uint32_t engine, int times)
{
	barrier.passes = 0;
	barrier.watched = asleep_word(end, engine);
	while (times--) {
		if (vb_bell_engine_sleeps(end->node, engine))
			vb_bell_senders_pass();
	}
	return barrier.passes;
}

static void test_one_barrier_a_sleep(void **state)
{
	struct end end;

	(void)state;
	end_start(&end);
	uint32_t engine = end_engine(&end);

	if (end.node->page->header.needs_fences) {
		end_stop(&end);
		print_message("membarrier(2) is refused here\n");
		skip();
	}
	/* The progress thread says the same of an engine again that sleeps. */
	assert_int_equal(fall_asleep(&end, engine, 3), 1);
	assert_int_equal(barrier.kind, VB_BARRIER_GLOBAL);
	assert_int_equal(barrier.found, 1);
	__atomic_store_n(asleep_word(&end, engine), 0, __ATOMIC_RELAXED);
	assert_int_equal(fall_asleep(&end, engine, 1), 1);
	end_stop(&end);
}

/* Whether a peer rings for the engine, in 5 s. */
static bool is_called(const struct end *end, uint32_t engine)
{
	for (int i = 0; i < 5000; i++) {
		if (vb_bell_take(end->node, engine / 64) >> engine % 64 & 1)
			return true;
		end_sleep_ms(1);
	}
	return false;
}

enum { REFUSED = 1, NO_FILTER = 2 };

/* Says first whether membarrier(2) is refused to it; then serves one channel. */
static int without_barrier(int sock, void *arg)
{
	static struct end end; /* its thread outlives this function */
	uint32_t engine;

	(void)arg;
	if (!filter_refuse(SYS_membarrier, EPERM)) {
		tell(sock, NO_FILTER);
		return 0;
	}
	tell(sock, REFUSED);
	struct vb_channel *ch = end_serve(&end, sock, &engine);

	if (!ch || !ch->peer->fences || !end.node->page->header.needs_fences)
		return 1;
	if (fall_asleep(&end, engine, 1) ||
	    !__atomic_load_n(asleep_word(&end, engine), __ATOMIC_RELAXED))
		return 2;
	tell(sock, 0);
	if (!is_called(&end, engine))
		return 3;
	hear(sock);
	end_close(&end, ch);
	end_stop(&end);
	return 0;
}

static void test_refused_to_the_other(void **state)
{
	enum vb_contact why;
	struct child child;
	struct end end;

	(void)state;
	child_start(&child, without_barrier, NULL);
	if (hear(child.sock) == NO_FILTER) {
		child_join(&child);
		print_message("seccomp(2) is not to be had here\n");
		skip();
	}
	end_start(&end);
	uint32_t qpn = (uint32_t)hear(child.sock), engine = end_engine(&end);
	struct vb_channel *ch = end_find(&end, engine, qpn, END_PATIENCE_MS, &why);

	assert_non_null(ch);
	assert_true(ch->peer->fences);
	assert_int_equal(hear(child.sock), 0);
	vb_channel_wake(ch);
	tell(child.sock, 0);
	child_join(&child);
	end_stop(&end);
}

static int with_barrier(int sock, void *arg)
{
	static struct end end;

	(void)arg;
	if (!end_serve(&end, sock, NULL))
		return 1;
	hear(sock);
	return 0;
}

/* The control. */
static void test_refused_to_none(void **state)
{
	enum vb_contact why;
	struct child child;
	struct end end;
	uint32_t qpn;

	(void)state;
	uint32_t engine = end_start_beside(&end, &child, with_barrier, &qpn);
	struct vb_channel *ch = end_find(&end, engine, qpn, END_PATIENCE_MS, &why);

	assert_non_null(ch);
	assert_int_equal(ch->peer->fences, end.node->page->header.needs_fences);
	tell(child.sock, 0);
	child_join(&child);
	end_stop(&end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_barrier_a_sleep),
		cmocka_unit_test(test_refused_to_the_other),
		cmocka_unit_test(test_refused_to_none),
	};

	return cmocka_run_group_tests_name("host/asleep", tests, NULL, NULL);
}

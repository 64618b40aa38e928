/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The check of the order of locks (base/lock_order.h): a program that keeps the order goes on, one
 * that breaks it aborts with a message that says what was wrong.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/lock.h"

#ifndef VB_CHECK_LOCKS
#error "this test is of the watch"
#endif

static struct vb_lock engine = VB_LOCK_AT(VB_ORDER_ENGINE),
		      entries = VB_LOCK_AT(VB_ORDER_COMPLETIONS), plain;
static pthread_mutex_t node = PTHREAD_MUTEX_INITIALIZER;

static void in_order(void)
{
	vb_lock_take(&engine);
	vb_lock_assert_held(&engine);
	vb_lock_take(&entries);
	vb_mutex_take(&node, VB_ORDER_NODE);
	vb_lock_assert_held(&node);
	vb_lock_release(&entries); /* not as they were taken */
	vb_mutex_release(&node);
	vb_lock_release(&engine);
	vb_lock_take(&entries);
	vb_lock_release(&entries);
}

static void by_trying(void)
{
	vb_mutex_take(&node, VB_ORDER_NODE);
	if (!vb_lock_try(&engine))
		_exit(1);
	vb_lock_assert_held(&engine);
	vb_lock_release(&engine);
	vb_mutex_release(&node);
}

/* ibv_wr_start(3) of two queue pairs and ibv_start_poll(3), in any order, and calls in between. */
static void as_the_program_likes(void)
{
	struct vb_lock one = VB_LOCK_AT(VB_ORDER_POST), two = VB_LOCK_AT(VB_ORDER_POST);
	struct vb_lock poll = VB_LOCK_AT(VB_ORDER_CONSUME);

	vb_lock_take(&one);
	vb_lock_take(&two);
	vb_lock_take(&poll);
	vb_lock_take(&engine);
	vb_lock_release(&engine);
	vb_lock_release(&one);
	vb_lock_release(&poll);
	vb_lock_release(&two);
}

static void the_program_s_within(void)
{
	struct vb_lock one = VB_LOCK_AT(VB_ORDER_POST);

	vb_lock_take(&engine);
	vb_lock_take(&one);
}

static void without_place(void)
{
	vb_mutex_take(&node, VB_ORDER_NODE);
	vb_lock_take(&plain);
	vb_lock_release(&plain);
	vb_mutex_release(&node);
}

static void out_of_order(void)
{
	vb_lock_take(&entries);
	vb_lock_take(&engine);
}

static void mutex_out_of_order(void)
{
	vb_mutex_take(&node, VB_ORDER_NODE);
	vb_lock_take(&entries);
}

static void after_a_try(void)
{
	if (!vb_lock_try(&entries))
		_exit(1);
	vb_lock_take(&engine);
}

static void two_of_a_place(void)
{
	struct vb_lock other = VB_LOCK_AT(VB_ORDER_ENGINE);

	vb_lock_take(&engine);
	vb_lock_take(&other);
}

static void twice(void)
{
	vb_lock_take(&plain);
	vb_lock_take(&plain);
}

static void not_held(void)
{
	vb_lock_take(&entries);
	vb_lock_assert_held(&engine);
}

static void released(void)
{
	vb_lock_take(&engine);
	vb_lock_release(&engine);
	vb_lock_assert_held(&engine);
}

/* What a child that does it leaves on standard error, and how it ends. */
static int status_of(void (*what)(void), char *said, size_t size)
{
	int ends[2], status;
	size_t got = 0;
	ssize_t n;

	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();

	if (child == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){0});
		dup2(ends[1], STDERR_FILENO);
		signal(SIGABRT, SIG_DFL);
		what();
		_exit(0);
	}
	close(ends[1]);
	while (got < size - 1 && (n = read(ends[0], said + got, size - 1 - got)) > 0)
		got += (size_t)n;
	said[got] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void test_kept(void **state)
{
	void (*const fine[])(void) = {in_order, by_trying, without_place, as_the_program_likes};
	char said[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
		assert_int_equal(status_of(fine[i], said, sizeof(said)), 0);
		assert_string_equal(said, "");
	}
}

static void test_broken(void **state)
{
	static const struct {
		void (*what)(void);
		const char *word;
	} broken[] = {
		{out_of_order, "held, and waited for: COMPLETIONS"},
		{mutex_out_of_order, "held, and waited for: NODE"},
		{after_a_try, "held, and waited for: COMPLETIONS"},
		{two_of_a_place, "held, and waited for: ENGINE"},
		{the_program_s_within, "held, and waited for: ENGINE"},
		{twice, "waits for what it holds"},
		{not_held, "not held"},
		{released, "not held"},
	};
	char said[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		int status = status_of(broken[i].what, said, sizeof(said));

		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
		assert_non_null(strstr(said, broken[i].word));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_kept),
					   cmocka_unit_test(test_broken)};

	return cmocka_run_group_tests_name("base/lock_order", tests, NULL, NULL);
}

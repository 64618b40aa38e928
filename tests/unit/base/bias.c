/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A biased lock excludes all the same: threads that come one after another, at the same time, that
 * lock and that try to lock. What the lock guards is plain memory, which the thread sanitizer
 * watches.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/lock.h"

#define THREADS 6 /* more than the lock has seats for */
#define ROUNDS  40
#define STREAK  400u

static struct vb_lock lock;
static uint64_t guarded[2]; /* always equal outside the lock */

static void fresh_lock(void)
{
	lock = (struct vb_lock){0};
	guarded[0] = guarded[1] = 0;
	assert_int_equal(vb_bias_allow(&lock), 0);
}

static bool leans(void)
{
	return lock.bias && __atomic_load_n(&lock.bias->owner, __ATOMIC_RELAXED);
}

static void work(void)
{
	guarded[0]++;
	if (guarded[0] != guarded[1] + 1)
		abort();
	guarded[1]++;
}

static void take_often(unsigned int times)
{
	for (unsigned int i = 0; i < times; i++) {
		vb_lock_take(&lock);
		work();
		vb_lock_release(&lock);
	}
}

/* Where membarrier(2) is refused no lock leans, and there is nothing to see. */
static void need_bias(void)
{
	if (!lock.bias)
		skip();
}

static void leans_towards_the_only_user(void **state)
{
	(void)state;
	fresh_lock();
	need_bias();
	take_often(10);
	assert_false(leans());
	take_often(100);
	assert_true(leans());
	vb_lock_take(&lock);
	assert_int_equal(__atomic_load_n(&lock.held, __ATOMIC_RELAXED), 0);
	vb_lock_release(&lock);
	assert_true(vb_lock_try(&lock));
	vb_lock_release(&lock);
	assert_true(leans());
	vb_bias_forget(&lock);
}

static void *take_once(void *arg)
{
	(void)arg;
	take_often(1);
	return NULL;
}

static void run_one(void *(*run)(void *))
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void another_thread_ends_it(void **state)
{
	(void)state;
	fresh_lock();
	need_bias();
	take_often(100);
	run_one(take_once);
	assert_false(leans());
	take_often(63);
	assert_false(leans());
	take_often(200); /* it ended soon: now it takes more to begin again */
	assert_true(leans());
	assert_int_equal(guarded[0], 364);
	vb_bias_forget(&lock);
}

/*
 * Leans towards this thread after however long it takes, and is ended after `entries` more. False:
 * it leans no more.
 */
static bool lean_and_end(unsigned int entries)
{
	for (int i = 0; !leans() && i < 300000; i++)
		take_often(1);
	if (!leans())
		return false;
	take_often(entries);
	run_one(take_once);
	assert_false(leans());
	return true;
}

/*
 * Each end costs a system call that interrupts all threads: two that share a lock pay for some, not
 * for ever.
 */
static void gives_up(void **state)
{
	int ended = 0;

	(void)state;
	fresh_lock();
	need_bias();
	while (ended < 100 && lean_and_end(1))
		ended++;
	assert_in_range(ended, 4, 16);
	run_one(take_once);
	take_often(300000);
	assert_false(leans());
	assert_true(vb_lock_try(&lock));
	assert_int_equal(__atomic_load_n(&lock.held, __ATOMIC_RELAXED), 1);
	assert_false(vb_lock_try(&lock));
	vb_lock_release(&lock);
	vb_bias_forget(&lock);
}

/* Biases that last are worth their ends, however many there are, also when some end soon. */
static void goes_on(void **state)
{
	(void)state;
	fresh_lock();
	need_bias();
	for (int i = 0; i < 40; i++)
		assert_true(lean_and_end(i % 2 ? 1 : 20000));
	vb_bias_forget(&lock);
}

static void *try_it(void *arg)
{
	bool *got = arg;

	*got = vb_lock_try(&lock);
	if (*got)
		vb_lock_release(&lock);
	return NULL;
}

/* The favoured thread holds it: who tries goes away empty-handed, and the lock stays whole. */
static void held_by_bias(void **state)
{
	pthread_t thread;
	bool got = true;

	(void)state;
	fresh_lock();
	need_bias();
	take_often(100);
	vb_lock_take(&lock);
	assert_int_equal(pthread_create(&thread, NULL, try_it, &got), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(got);
	assert_false(leans());
	work();
	vb_lock_release(&lock);
	assert_int_equal(pthread_create(&thread, NULL, try_it, &got), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(got);
	vb_bias_forget(&lock);
}

/* Streaks, long enough to make the lock lean, with tries in between, from all threads at once. */
static void *hammer(void *arg)
{
	unsigned int number = (unsigned int)(uintptr_t)arg;
	uint64_t mine = 0;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		unsigned int streak = STREAK * (1 + (round + number) % 3);

		for (unsigned int i = 0; i < streak; i++) {
			if ((i + number) % 5 == 0) {
				if (!vb_lock_try(&lock))
					continue;
			} else {
				vb_lock_take(&lock);
			}
			work();
			mine++;
			vb_lock_release(&lock);
		}
		if (round % 4 == number % 4)
			usleep(200); /* the others' turn to have it alone */
	}
	return (void *)(uintptr_t)mine;
}

static void excludes(void **state)
{
	pthread_t thread[THREADS];
	uint64_t sum = 0;

	(void)state;
	fresh_lock();
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, hammer, (void *)i), 0);
	for (int i = 0; i < THREADS; i++) {
		void *mine;

		assert_int_equal(pthread_join(thread[i], &mine), 0);
		sum += (uintptr_t)mine;
	}
	assert_int_equal(guarded[0], sum);
	vb_bias_forget(&lock);
}

/* One thread after the other has it for itself: it comes to lean towards each of the first few. */
static void *have_it_alone(void *arg)
{
	(void)arg;
	take_often(200000);
	return NULL;
}

static void in_turn(void **state)
{
	(void)state;
	fresh_lock();
	for (int i = 0; i < THREADS; i++) {
		run_one(have_it_alone);
		take_often(1);
	}
	assert_int_equal(guarded[0], THREADS * 200001ull);
	vb_bias_forget(&lock);
}

/* A forked child ends biases, too. */
static void in_a_child(void **state)
{
	int status = -1;

	(void)state;
#if defined(__SANITIZE_THREAD__)
	skip(); /* it follows no threads in a forked child */
#endif
	fresh_lock();
	take_often(100);
	pid_t child = fork();

	if (child == 0) {
		run_one(have_it_alone);
		take_often(100);
		_exit(guarded[0] == 200200 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	vb_bias_forget(&lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leans_towards_the_only_user),
		cmocka_unit_test(another_thread_ends_it),
		cmocka_unit_test(gives_up),
		cmocka_unit_test(goes_on),
		cmocka_unit_test(held_by_bias),
		cmocka_unit_test(excludes),
		cmocka_unit_test(in_turn),
		cmocka_unit_test(in_a_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: of two processes that each store and then look at the other's store, at least one sees it,
 * although one of them has no fence between the two: vb_barrier_pass() of the other makes up for it.
 * With a fence in place of it, the same.
 *
 * First the same without vb_barrier_pass(): the processor then lets both miss each other. Where it
 * does not (one core, or rounds that never met), the second part would prove nothing, and is skipped.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/barrier.h"
#include "base/pause.h"

#define ROUNDS 20000u
#define SPINS  2000u /* before a process that waits for the other yields */

struct cell {
	_Alignas(64) uint32_t often;
	_Alignas(64) uint32_t seldom;
};

static struct shared {
	_Alignas(64)
		uint32_t ready;   /* rounds that the side that comes often has begun to wait for */
	_Alignas(64) uint32_t go; /* rounds that may be run */
	_Alignas(64) uint32_t done;
	struct cell cell[ROUNDS];
	uint32_t often_saw[ROUNDS];
} * shared;

static void await(const uint32_t *word, uint32_t value)
{
	for (uint32_t i = 1; __atomic_load_n(word, __ATOMIC_ACQUIRE) != value; i++) {
		if (i % SPINS)
			vb_pause();
		else
			sched_yield();
	}
}

/* The side that comes often: in a process or a thread of its own. */
static void come_often(bool fences)
{
	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct cell *c = &shared->cell[i];

		/* The line that is looked at is here already; the one that is stored to is not. */
		(void)__atomic_load_n(&c->seldom, __ATOMIC_RELAXED);
		__atomic_store_n(&shared->ready, i + 1, __ATOMIC_RELEASE);
		await(&shared->go, i + 1);
		__atomic_store_n(&c->often, 1, __ATOMIC_RELAXED);
		vb_barrier_light(fences);
		shared->often_saw[i] = __atomic_load_n(&c->seldom, __ATOMIC_RELAXED);
		__atomic_store_n(&shared->done, i + 1, __ATOMIC_RELEASE);
	}
}

/* How often both sides missed each other. */
static uint32_t come_seldom(bool passes, enum vb_barrier kind)
{
	uint32_t missed = 0;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct cell *c = &shared->cell[i];
		uint32_t saw;

		__atomic_store_n(&c->often, 0, __ATOMIC_RELAXED);
		await(&shared->ready, i + 1);
		__atomic_store_n(&shared->go, i + 1, __ATOMIC_RELEASE);
		for (uint32_t pauses = i % 4; pauses; pauses--)
			vb_pause();
		__atomic_store_n(&c->seldom, 1, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (passes)
			vb_barrier_pass(kind);
		saw = __atomic_load_n(&c->often, __ATOMIC_RELAXED);
		await(&shared->done, i + 1);
		missed += !saw && !shared->often_saw[i];
	}
	return missed;
}

static uint32_t between_processes(bool passes, bool fences)
{
	memset(shared, 0, sizeof(*shared));
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!vb_barrier_allow(VB_BARRIER_GLOBAL))
			_exit(1);
		come_often(fences);
		_exit(0);
	}
	uint32_t missed = come_seldom(passes, VB_BARRIER_GLOBAL);

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	return missed;
}

static void *thread_comes_often(void *fences)
{
	come_often(fences);
	return fences;
}

static uint32_t between_threads(bool passes, bool fences)
{
	pthread_t thread;

	memset(shared, 0, sizeof(*shared));
	assert_int_equal(pthread_create(&thread, NULL, thread_comes_often, fences ? shared : NULL),
			 0);
	uint32_t missed = come_seldom(passes, VB_BARRIER_PRIVATE);

	assert_int_equal(pthread_join(thread, NULL), 0);
	return missed;
}

static void need(enum vb_barrier kind)
{
	if (vb_barrier_allow(kind))
		return;
	print_message("membarrier(2) is refused here\n");
	skip();
}

static void judge(uint32_t (*between)(bool passes, bool fences))
{
	uint32_t without = between(false, false), with = between(true, false);
	uint32_t fenced = between(false, true);

	print_message("missed each other: %u without, %u with, %u with a fence, of %u\n", without,
		      with, fenced, ROUNDS);
	assert_int_equal(with, 0);
	assert_int_equal(fenced, 0);
	if (!without)
		skip();
}

static void of_another_process(void **state)
{
	(void)state;
	need(VB_BARRIER_GLOBAL);
	judge(between_processes);
}

static void of_another_thread(void **state)
{
	(void)state;
	need(VB_BARRIER_PRIVATE);
	judge(between_threads);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_another_process),
		cmocka_unit_test(of_another_thread),
	};

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Guarded access to another process's memory: after the guarding word has changed no access takes
 * place any more, and a signal in the middle neither repeats nor loses anything.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "host/guard.h"
#include "host/standstill.h"

static uint32_t first, second;
static uint64_t third;

static struct vb_guard guard_all(void)
{
	struct vb_guard g;

	vb_guard_init(&g);
	g.first = &first;
	g.first_is = first;
	g.second = &second;
	g.second_is = second;
	g.third = &third;
	g.third_is = third;
	return g;
}

/* Every access, and whether all of them are refused or none. */
static void all_accesses(const struct vb_guard *guard, int expected)
{
	uint64_t word = 5, value = 7, compare = 5;
	char from[700], to[700] = "";
	const long nothing[6] = {0};
	ssize_t n = vb_guard_call(guard, SYS_getppid, nothing);

	memset(from, 0x5a, sizeof(from));
	assert_int_equal(n, expected ? expected : getppid());
	for (size_t bytes = 0; bytes <= sizeof(from); bytes += bytes < 20 ? 1 : 97) {
		memset(to, 0, sizeof(to));
		assert_int_equal(vb_guard_move(guard, to, from, bytes), bytes ? expected : 0);
		for (size_t i = 0; i < sizeof(to); i++)
			assert_int_equal(to[i], i < bytes && !expected ? 0x5a : 0);
	}
	assert_int_equal(vb_guard_add(guard, &word, &value), expected);
	assert_int_equal(word, expected ? 5 : 12);
	assert_int_equal(value, expected ? 7 : 5);
	word = 5;
	assert_int_equal(vb_guard_swap(guard, &word, &compare, 9), expected);
	assert_int_equal(word, expected ? 5 : 9);
	compare = 1;
	assert_int_equal(vb_guard_swap(guard, &word, &compare, 3), expected);
	assert_int_equal(compare, expected ? 1 : 9);
	assert_int_equal(vb_guard_store(guard, &word, 77), expected);
	assert_int_equal(word, expected ? 5 : 77);
}

static void test_words(void **state)
{
	struct vb_guard none, all, copy;

	(void)state;
	first = 1, second = 2, third = 3ull << 40;
	vb_guard_init(&none);
	all = guard_all();
	vb_guard_copy(&copy, &all);
	all_accesses(&none, 0);
	all_accesses(&all, 0);
	all_accesses(&copy, 0);
	first++;
	all_accesses(&all, -ESTALE);
	all_accesses(&copy, -ESTALE);
	first--;
	second++;
	all_accesses(&copy, -ESTALE);
	second--;
	third += 1ull << 33;
	all_accesses(&copy, -ESTALE);
	vb_guard_copy(&copy, NULL);
	all_accesses(&copy, 0);
}

static volatile sig_atomic_t alarms;

static void on_alarm(int number)
{
	(void)number;
	alarms++;
}

/*
 * Signals at every instruction, in the end: what is interrupted begins again, what is done is done
 * once.
 */
static void test_interruptions(void **state)
{
	struct itimerval often = {{0, 47}, {0, 47}}, never = {{0, 0}, {0, 0}};
	static char from[1 << 16], to[1 << 16];
	uint64_t word = 0, n = 0;
	struct vb_guard g = guard_all();

	(void)state;
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (char)(i * 7 + (i >> 8));
	signal(SIGALRM, on_alarm);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	while (alarms < 2000) {
		uint64_t value = 1;
		size_t bytes = n % 3 ? n % 512 : sizeof(to);

		assert_int_equal(vb_guard_add(&g, &word, &value), 0);
		assert_int_equal(value, n);
		assert_int_equal(word, ++n);
		assert_int_equal(vb_guard_move(&g, to, from, bytes), 0);
		assert_memory_equal(to, from, bytes);
		memset(to, 0, bytes);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_DFL);
}

/* A signal behind the last word of a short copy: the copy has ended, and nothing behind it changes. */
static void test_ends(void **state)
{
	struct itimerval often = {{0, 47}, {0, 47}}, never = {{0, 0}, {0, 0}};
	uint64_t from[2] = {1, 2}, to[2] = {0, 77};
	struct vb_guard g = guard_all();

	(void)state;
	alarms = 0;
	signal(SIGALRM, on_alarm);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	while (alarms < 20000) {
		for (int i = 0; i < 100; i++)
			assert_int_equal(vb_guard_move(&g, to, from, 8), 0);
		assert_int_equal(to[1], 77);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_DFL);
}

struct shared {
	uint32_t generation;
	uint64_t counter;
	uint64_t refused;
};

/* Adds for as long as the generation is the one that it read; judged anew after each refusal. */
static void add_for_ever(struct shared *s)
{
	for (;;) {
		struct vb_guard g;

		vb_guard_init(&g);
		g.first = &s->generation;
		g.first_is = __atomic_load_n(&s->generation, __ATOMIC_ACQUIRE);
		/* An odd one allows nothing. */
		while (!(g.first_is & 1)) {
			uint64_t one = 1;

			if (vb_guard_add(&g, &s->counter, &one))
				break;
		}
		__atomic_fetch_add(&s->refused, 1, __ATOMIC_RELAXED);
	}
}

/* A process that adds for ever, and ends with this one. */
static pid_t adder_begin(struct shared **s)
{
	*s = mmap(NULL, sizeof(**s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(*s, MAP_FAILED);
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		add_for_ever(*s);
	}
	assert_true(pid > 0);
	return pid;
}

static void await_stillness(pid_t pid, int (*pause)(void))
{
	while (!vb_stands_still(pid))
		pause();
}

/*
 * Stops the process until it is seen standing still, changes the generation, and lets the process
 * go on. Nothing is added to the counter any more.
 */
static void stop_once(struct shared *s, pid_t pid, int (*pause)(void))
{
	uint64_t before = __atomic_load_n(&s->counter, __ATOMIC_RELAXED), refused;

	while (__atomic_load_n(&s->counter, __ATOMIC_RELAXED) == before)
		pause();
	kill(pid, SIGSTOP);
	await_stillness(pid, pause);
	__atomic_fetch_add(&s->generation, 1, __ATOMIC_SEQ_CST);
	before = __atomic_load_n(&s->counter, __ATOMIC_RELAXED);
	refused = __atomic_load_n(&s->refused, __ATOMIC_RELAXED);
	kill(pid, SIGCONT);
	while (__atomic_load_n(&s->refused, __ATOMIC_RELAXED) < refused + 2)
		pause();
	assert_int_equal(__atomic_load_n(&s->counter, __ATOMIC_RELAXED), before);
	__atomic_fetch_add(&s->generation, 1, __ATOMIC_SEQ_CST);
}

static void test_stopped(void **state)
{
	struct shared *s;
	pid_t pid = adder_begin(&s);
	int status;

	(void)state;
	assert_false(vb_stands_still(pid));
	assert_true(vb_is_at_work(pid));
	for (int i = 0; i < 500; i++)
		stop_once(s, pid, sched_yield);
	kill(pid, SIGSTOP);
	await_stillness(pid, sched_yield);
	assert_false(vb_is_at_work(pid));
	kill(pid, SIGKILL);
	await_stillness(pid, sched_yield);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(vb_stands_still(pid));
	assert_false(vb_is_at_work(pid));
	munmap(s, sizeof(*s));
}

#define ONLOOKERS 100

static void *look_on(void *arg)
{
	const struct sched_param least = {0};
	siginfo_t info;

	pthread_setschedparam(pthread_self(), SCHED_IDLE, &least);
	assert_int_equal(waitid(P_PID, (id_t) * (pid_t *)arg, &info, WEXITED | WNOWAIT), 0);
	return NULL;
}

static int no_pause(void)
{
	return 0;
}

/* Binds the process to another processor than this thread. False: there are not two of them. */
static bool part_ways(pid_t pid)
{
	cpu_set_t all, one;
	int mine = 0, other;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	while (mine < CPU_SETSIZE && !CPU_ISSET(mine, &all))
		mine++;
	other = mine + 1;
	while (other < CPU_SETSIZE && !CPU_ISSET(other, &all))
		other++;
	if (other >= CPU_SETSIZE)
		return false;
	CPU_ZERO(&one);
	CPU_SET(mine, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	CPU_ZERO(&one);
	CPU_SET(other, &one);
	assert_int_equal(sched_setaffinity(pid, sizeof(one), &one), 0);
	return true;
}

/*
 * A thread that stops wakes all who wait for its process, before it leaves its processor. With a
 * hundred of them it is in the state T for so long that it is continued there in one of a hundred
 * rounds: without a context switch, hence without a second look at the generation. It does not
 * stand still yet.
 */
static void test_stopping(void **state)
{
	pthread_t onlooker[ONLOOKERS];
	struct shared *s;
	pid_t pid = adder_begin(&s);
	bool apart = part_ways(pid);
	int status;

	(void)state;
	for (int i = 0; i < ONLOOKERS; i++)
		assert_int_equal(pthread_create(&onlooker[i], NULL, look_on, &pid), 0);
	for (int i = 0; i < (apart ? 300 : 30); i++)
		stop_once(s, pid, apart ? no_pause : sched_yield);
	kill(pid, SIGKILL);
	for (int i = 0; i < ONLOOKERS; i++)
		pthread_join(onlooker[i], NULL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	munmap(s, sizeof(*s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),    cmocka_unit_test(test_interruptions),
		cmocka_unit_test(test_ends),     cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_stopping),
	};

	if (!vb_guard_possible()) {
		fprintf(stderr, "no restartable sequences here\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

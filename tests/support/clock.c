/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The watchdog, the clock and the waits of clock.h. */
#include "support/clock.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"

static unsigned int watchdog_limit;

static void say(const char *text)
{
	ssize_t written = write(STDERR_FILENO, text, strlen(text));

	(void)written;
}

static void watchdog_bites(int signal_number)
{
	(void)signal_number;
	say("watchdog: no progress in time: [");
	say(check_promise());
	say("]\n");
	_exit(CHECK_EXIT_FAIL);
}

void watchdog(unsigned int seconds)
{
	struct sigaction action = {.sa_handler = watchdog_bites};

	watchdog_limit = seconds;
	sigemptyset(&action.sa_mask);
	sigaction(SIGALRM, &action, NULL);
	alarm(seconds);
}

unsigned int watchdog_seconds(void)
{
	return watchdog_limit;
}

uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

uint64_t now_ms(void)
{
	return now_us() / 1000u;
}

void sleep_ms(unsigned int ms)
{
	uint64_t until = now_us() + (uint64_t)ms * 1000u;
	uint64_t now;

	/* A signal cuts a sleep short; a test that asks for 50 ms gets 50 ms. */
	while ((now = now_us()) < until) {
		struct timespec left = {
			.tv_sec = (time_t)((until - now) / 1000000u),
			.tv_nsec = (long)((until - now) % 1000000u) * 1000,
		};

		nanosleep(&left, NULL);
	}
}

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

void spin_once(unsigned int *turns)
{
	/* Without the yield a partner on the same core would wait for a tick of the scheduler. */
	if (++*turns % 200 == 0)
		sched_yield();
	else
		cpu_relax();
}

bool wait_once(uint64_t begun)
{
	bool sleeps = now_us() - begun >= 2000;

	if (sleeps)
		usleep(100);
	else
		sched_yield();
	return sleeps;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The functions behind the CHECK macros: messages, watchdog, clock, seeded numbers. */
#include "support/check.h"

#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *promise_text = "(no promise named)";
static void (*failing_tell)(void);
static unsigned int watchdog_limit;

void promise(const char *text)
{
	promise_text = text;
}

const char *promise_now(void)
{
	return promise_text;
}

void check_before_failing(void (*tell)(void))
{
	failing_tell = tell;
}

static void say(const char *text)
{
	ssize_t written = write(STDERR_FILENO, text, strlen(text));

	(void)written;
}

static void watchdog_bites(int signal_number)
{
	(void)signal_number;
	say("FAIL: watchdog: no progress in time; promise: ");
	say(promise_text);
	say("\n");
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

/*
 * Tests pick devices by name. The default device list of a program has a test of its own
 * (calls/context/device_list.c).
 */
__attribute__((constructor)) static void show_all_devices(void)
{
	setenv("VERBATIM_DEVICES", "*", 0);
}

long env_number(const char *name, long fallback)
{
	const char *text = getenv(name);
	char *end;
	long value;

	if (!text || !*text)
		return fallback;
	value = strtol(text, &end, 0);
	return *end ? fallback : value;
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

uint64_t random_next(uint64_t *state)
{
	uint64_t x = *state;

	/* xorshift64: short, repeatable, and random enough to spread points in time. */
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	return x;
}

void check_failed(const char *file, int line, const char *format, ...)
{
	char text[768];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (failing_tell)
		failing_tell();
	fflush(stdout);
	fprintf(stderr, "FAIL %s:%d [pid %d]: %s; promise: %s\n", file, line, (int)getpid(), text,
		promise_text);
	exit(CHECK_EXIT_FAIL);
}

void check_skipped(const char *format, ...)
{
	va_list arguments;

	fflush(stdout);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(CHECK_EXIT_SKIP);
}

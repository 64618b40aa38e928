/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a test program judges: CHECK macros that name file, line and the promise under test, a skip
 * with a reason, and a watchdog.
 *
 * A program names its promise with promise(). A check that fails prints the promise and ends the
 * process with status 1. Status 77 is a skip (meson's convention), and the last line of stderr is
 * its reason. Every process of a test may use these; the watchdog is per process.
 */
#ifndef TESTS_SUPPORT_CHECK_H
#define TESTS_SUPPORT_CHECK_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

enum { CHECK_EXIT_FAIL = 1, CHECK_EXIT_SKIP = 77 };

/* Names what the following checks prove. The string must stay valid. */
void promise(const char *text);
const char *promise_now(void);
/* Registers a function that is called once before a failed check ends the process. */
void check_before_failing(void (*tell)(void));

/* Ends the process with status 1 and a message after this many seconds (0: never). */
void watchdog(unsigned int seconds);
unsigned int watchdog_seconds(void);

/* A number from the environment, or fallback when it is unset or not a number. */
long env_number(const char *name, long fallback);

/* Monotonic time. */
uint64_t now_ms(void);
uint64_t now_us(void);
void sleep_ms(unsigned int ms);

/* One turn of a busy wait: a pause, and now and then sched_yield(2). */
void spin_once(unsigned int *turns);

/* A small generator for seeded tests (not for secrets). *state must not be 0. */
uint64_t random_next(uint64_t *state);

_Noreturn void check_failed(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
_Noreturn void check_skipped(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define CHECK(condition)                                                                      \
	do {                                                                                  \
		if (!(condition))                                                             \
			check_failed(__FILE__, __LINE__, "%s (errno %d)", #condition, errno); \
	} while (0)

/* A check with an explanation: CHECK_SAY(x == 1, "x is %d", x). */
#define CHECK_SAY(condition, ...)                                      \
	do {                                                           \
		if (!(condition))                                      \
			check_failed(__FILE__, __LINE__, __VA_ARGS__); \
	} while (0)

/* Compares both sides as integers, and prints them when they differ. */
#define CHECK_EQ(expression, expected)                                                     \
	do {                                                                               \
		long long check_got = (long long)(expression);                             \
		long long check_want = (long long)(expected);                              \
		if (check_got != check_want)                                               \
			check_failed(__FILE__, __LINE__, "%s is %lld, expected %s = %lld", \
				     #expression, check_got, #expected, check_want);       \
	} while (0)

/* For calls that return 0 or an errno. */
#define CHECK_ZERO(call) CHECK_EQ(call, 0)

#define SKIP(...)        check_skipped(__VA_ARGS__)

#endif

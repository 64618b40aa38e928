/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a test program judges.
 *
 * The program says what it is about to prove: promise() in a program of a few long steps,
 * expect_case() in a program of many short ones. Then it checks:
 *
 *   CHECK...   What the rest of the program depends on. A failure ends the process with status 1.
 *   EXPECT...  One of several facts side by side. A failure is counted, the program goes on, and
 *              expect_done() makes the exit status of the count. One run then shows every wrong row
 *              of a table.
 *   SKIP       The test cannot run here. It ends with status 77; the reason is the last line of
 *              standard error.
 *
 * Each failure is one line on standard error: file, line, process, promise, and the expression with
 * its values:
 *
 *   tests/calls/cq/cq.c:52: pid 4711: [cqe 0]: cq->cqe is 0 (0x0), want 16 (0x10)
 *
 * A program that uses expect_case() prints one TAP line for each case on standard output.
 *
 * Any process and thread of a test may CHECK. EXPECT and expect_case() belong to one thread, or
 * stand under the caller's lock.
 */
#ifndef TESTS_SUPPORT_CHECK_H
#define TESTS_SUPPORT_CHECK_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

enum { CHECK_EXIT_FAIL = 1, CHECK_EXIT_SKIP = 77 };

/* Names what the following checks prove. The string must stay valid. */
void promise(const char *text);
const char *check_promise(void);

/* Names the row that the following checks belong to, and ends the TAP line of the row before. */
void expect_case(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* How many of the EXPECT have failed so far. */
unsigned int expect_failed(void);
/* Prints the summary; returns the program's exit status. A program without an EXPECT has failed. */
int expect_done(void);

#define CHECK(condition)                                             \
	do {                                                         \
		if (!(condition))                                    \
			check_false(__FILE__, __LINE__, #condition); \
	} while (0)

/* A check with an explanation: CHECK_SAY(x == 1, "x is %d", x). */
#define CHECK_SAY(condition, ...)                                      \
	do {                                                           \
		if (!(condition))                                      \
			check_failed(__FILE__, __LINE__, __VA_ARGS__); \
	} while (0)

/* Compares both sides as integers. */
#define CHECK_EQ(got, want)                                                            \
	do {                                                                           \
		long long check_got = (long long)(got);                                \
		long long check_want = (long long)(want);                              \
		if (check_got != check_want)                                           \
			check_differ(__FILE__, __LINE__, #got, check_got, check_want); \
	} while (0)

/* For calls that return 0 or an errno. */
#define CHECK_ZERO(call)           CHECK_EQ(call, 0)

#define SKIP(...)                  check_skipped(__VA_ARGS__)

/* Each EXPECT is true when it holds, so that `if (EXPECT(...))` guards what depends on it. */
#define EXPECT(condition)          expect_true((condition), __FILE__, __LINE__, #condition)
#define EXPECT_SAY(condition, ...) expect_say((condition), __FILE__, __LINE__, __VA_ARGS__)
#define EXPECT_EQ(got, want) \
	expect_equal((long long)(got), (long long)(want), __FILE__, __LINE__, #got)
/* Byte by byte equal to a copy made earlier. */
#define EXPECT_UNTOUCHED(now, before) \
	expect_untouched(&(now), &(before), sizeof(now), __FILE__, __LINE__, #now)

/* For a verb that returns an int: it refuses, its value is the errno, and errno says the same. */
#define EXPECT_REFUSED(call, err)                                                           \
	do {                                                                                \
		errno = 0;                                                                  \
		if (EXPECT_EQ(call, err))                                                   \
			expect_equal(errno, err, __FILE__, __LINE__, "errno after " #call); \
	} while (0)

/* For a verb that returns a pointer: it refuses with NULL and errno. */
#define EXPECT_NULL(call, err)                                                              \
	do {                                                                                \
		errno = 0;                                                                  \
		if (EXPECT_SAY((call) == NULL, "%s gave an object", #call))                 \
			expect_equal(errno, err, __FILE__, __LINE__, "errno after " #call); \
	} while (0)

/* For a verb that returns -1: it refuses with -1 and errno. */
#define EXPECT_MINUS1(call, err)                                                            \
	do {                                                                                \
		errno = 0;                                                                  \
		if (EXPECT_EQ(call, -1))                                                    \
			expect_equal(errno, err, __FILE__, __LINE__, "errno after " #call); \
	} while (0)

/* The functions behind the macros. */
_Noreturn void check_failed(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
_Noreturn void check_false(const char *file, int line, const char *condition);
_Noreturn void check_differ(const char *file, int line, const char *text, long long got,
			    long long want);
_Noreturn void check_skipped(const char *format, ...) __attribute__((format(printf, 1, 2)));

bool expect_true(bool ok, const char *file, int line, const char *condition);
bool expect_say(bool ok, const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
bool expect_equal(long long got, long long want, const char *file, int line, const char *text);
bool expect_untouched(const void *now, const void *before, size_t size, const char *file, int line,
		      const char *text);

#endif

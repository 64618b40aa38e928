/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Checks that are counted: a failed EXPECT is printed and the program goes on, so that one run
 * shows every wrong row of a table. Each case prints one TAP line. A condition that later checks
 * depend on is a CHECK (support/check.h), which ends the program. Not thread-safe: use from one
 * thread, or under the caller's lock.
 */
#ifndef TESTS_SUPPORT_EXPECT_H
#define TESTS_SUPPORT_EXPECT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "support/check.h"

/* Names the row that the following checks belong to. */
void expect_case(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints and counts one check; returns @ok. */
bool expect_true(bool ok, const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
bool expect_equal(long long got, long long want, const char *file, int line, const char *text);
/* Checks that @now is byte by byte equal to @before, a copy made earlier. */
bool expect_untouched(const void *now, const void *before, size_t size, const char *file, int line,
		      const char *text);
bool expect_status(int got, int want, const char *file, int line);

/* How many checks have failed so far. */
unsigned int expect_failed(void);

/* Prints the summary and returns the program's exit code. A program without a check has failed. */
int expect_done(void);

#define EXPECT(cond)          expect_true((cond), __FILE__, __LINE__, "%s", #cond)
#define EXPECT_MSG(cond, ...) expect_true((cond), __FILE__, __LINE__, __VA_ARGS__)
#define EXPECT_EQ(got, want) \
	expect_equal((long long)(got), (long long)(want), __FILE__, __LINE__, #got)
#define EXPECT_UNTOUCHED(now, before) \
	expect_untouched(&(now), &(before), sizeof(now), __FILE__, __LINE__, #now)
#define EXPECT_STATUS(got, want) expect_status((int)(got), (int)(want), __FILE__, __LINE__)

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
		if (EXPECT_MSG((call) == NULL, "%s gave an object", #call))                 \
			expect_equal(errno, err, __FILE__, __LINE__, "errno after " #call); \
	} while (0)

/* For a verb that returns -1: it refuses with -1 and errno. */
#define EXPECT_MINUS1(call, err)                                                            \
	do {                                                                                \
		errno = 0;                                                                  \
		if (EXPECT_EQ(call, -1))                                                    \
			expect_equal(errno, err, __FILE__, __LINE__, "errno after " #call); \
	} while (0)

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counting and printing behind expect.h: TAP on standard output, details on standard error. */
#include "support/expect.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

/* Failures printed in full: a broken table does not fill the disk. */
#define EXPECT_SHOWN 200

static char expect_label[256];
static unsigned int expect_cases;
static unsigned int expect_checks, expect_failures;
static unsigned int case_checks, case_failures; /* values at the beginning of the present case */

/* Prints one TAP line for the case that ends. A case without a check prints none. */
static void case_end(void)
{
	if (expect_checks == case_checks)
		return;
	printf("%sok %u - %s\n", expect_failures > case_failures ? "not " : "", ++expect_cases,
	       expect_label[0] ? expect_label : "start");
	case_checks = expect_checks;
	case_failures = expect_failures;
}

static void stopped(void)
{
	printf("not ok %u - %s: stopped here\n", ++expect_cases, expect_label);
}

void expect_case(const char *format, ...)
{
	va_list args;

	case_end();
	va_start(args, format);
	vsnprintf(expect_label, sizeof(expect_label), format, args);
	va_end(args);
	promise(expect_label);
	check_before_failing(stopped);
}

static bool expect_count(bool ok, const char *file, int line)
{
	expect_checks++;
	if (ok)
		return true;
	if (++expect_failures > EXPECT_SHOWN)
		return false;
	fprintf(stderr, "%s:%d: [%s] ", file, line, expect_label);
	return false;
}

bool expect_true(bool ok, const char *file, int line, const char *format, ...)
{
	va_list args;

	if (expect_count(ok, file, line))
		return true;
	if (expect_failures > EXPECT_SHOWN)
		return false;
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return false;
}

bool expect_equal(long long got, long long want, const char *file, int line, const char *text)
{
	if (expect_count(got == want, file, line))
		return true;
	if (expect_failures <= EXPECT_SHOWN)
		fprintf(stderr, "%s: got %lld (0x%llx), want %lld (0x%llx)\n", text, got,
			(unsigned long long)got, want, (unsigned long long)want);
	return false;
}

bool expect_untouched(const void *now, const void *before, size_t size, const char *file, int line,
		      const char *text)
{
	return expect_true(!memcmp(now, before, size), file, line, "%s was changed", text);
}

bool expect_status(int got, int want, const char *file, int line)
{
	if (expect_count(got == want, file, line))
		return true;
	if (expect_failures <= EXPECT_SHOWN)
		fprintf(stderr, "status: got %d (%s), want %d (%s)\n", got,
			got < 0 ? "no completion" : ibv_wc_status_str((enum ibv_wc_status)got),
			want, ibv_wc_status_str((enum ibv_wc_status)want));
	return false;
}

unsigned int expect_failed(void)
{
	return expect_failures;
}

int expect_done(void)
{
	case_end();
	printf("1..%u\n# %u checks, %u failed\n", expect_cases, expect_checks, expect_failures);
	return expect_failures || !expect_checks;
}

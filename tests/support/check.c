/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counting and printing behind check.h: TAP on standard output, failures on standard error. */
#include "support/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Failures printed in full: a broken table does not fill the disk. */
#define EXPECT_SHOWN 200

#define DIFFER       "%s is %lld (0x%llx), want %lld (0x%llx)"

static const char *promised = "(no promise named)";

static char label[256]; /* of the present case; empty in a program without cases */
static unsigned int cases;
static unsigned int checks, failures;
static unsigned int case_checks, case_failures; /* values at the beginning of the present case */

/*
 * Tests pick devices by name. The default device list of a program has a test of its own
 * (calls/context/device_list.c).
 */
__attribute__((constructor)) static void show_all_devices(void)
{
	setenv("VERBATIM_DEVICES", "*", 0);
}

void promise(const char *text)
{
	promised = text;
}

const char *check_promise(void)
{
	return promised;
}

/* Prints one TAP line for the case that ends. A case without a check prints none. */
static void case_end(void)
{
	if (checks == case_checks)
		return;
	printf("%sok %u - %s\n", failures > case_failures ? "not " : "", ++cases,
	       label[0] ? label : "start");
	case_checks = checks;
	case_failures = failures;
}

void expect_case(const char *format, ...)
{
	va_list args;

	case_end();
	va_start(args, format);
	vsnprintf(label, sizeof(label), format, args);
	va_end(args);
	promise(label);
}

unsigned int expect_failed(void)
{
	return failures;
}

int expect_done(void)
{
	case_end();
	printf("1..%u\n# %u checks, %u failed\n", cases, checks, failures);
	return failures || !checks;
}

/* The one form of a failure. */
static void tell(const char *file, int line, const char *format, va_list args)
{
	char text[768];

	vsnprintf(text, sizeof(text), format, args);
	fprintf(stderr, "%s:%d: pid %d: [%s]: %s\n", file, line, (int)getpid(), promised, text);
}

void check_failed(const char *file, int line, const char *format, ...)
{
	va_list args;

	if (label[0])
		printf("not ok %u - %s: stopped here\n", ++cases, label);
	fflush(stdout);
	va_start(args, format);
	tell(file, line, format, args);
	va_end(args);
	exit(CHECK_EXIT_FAIL);
}

void check_false(const char *file, int line, const char *condition)
{
	check_failed(file, line, "%s is false (errno %d)", condition, errno);
}

void check_differ(const char *file, int line, const char *text, long long got, long long want)
{
	check_failed(file, line, DIFFER, text, got, (unsigned long long)got, want,
		     (unsigned long long)want);
}

void check_skipped(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(CHECK_EXIT_SKIP);
}

bool expect_say(bool ok, const char *file, int line, const char *format, ...)
{
	va_list args;

	checks++;
	if (ok || ++failures > EXPECT_SHOWN)
		return ok;
	va_start(args, format);
	tell(file, line, format, args);
	va_end(args);
	return false;
}

bool expect_true(bool ok, const char *file, int line, const char *condition)
{
	return expect_say(ok, file, line, "%s is false (errno %d)", condition, errno);
}

bool expect_equal(long long got, long long want, const char *file, int line, const char *text)
{
	return expect_say(got == want, file, line, DIFFER, text, got, (unsigned long long)got, want,
			  (unsigned long long)want);
}

bool expect_untouched(const void *now, const void *before, size_t size, const char *file, int line,
		      const char *text)
{
	return expect_say(!memcmp(now, before, size), file, line, "%s was changed", text);
}

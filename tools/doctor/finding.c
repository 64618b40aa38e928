/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Printing and counting what was found. */
#include "doctor/finding.h"

#include <stdarg.h>
#include <stdio.h>

static unsigned int problems;

static void print(const char *mark, const char *cure, const char *fmt, va_list ap)
{
	printf("%-8s ", mark);
	vprintf(fmt, ap);
	putchar('\n');
	if (cure)
		printf("         cure: %s\n", cure);
	fflush(stdout);
}

void finding_ok(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print("ok", NULL, fmt, ap);
	va_end(ap);
}

void finding_note(const char *cure, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print("note", cure, fmt, ap);
	va_end(ap);
}

void finding_problem(const char *cure, const char *fmt, ...)
{
	va_list ap;

	problems++;
	va_start(ap, fmt);
	print("PROBLEM", cure, fmt, ap);
	va_end(ap);
}

unsigned int finding_problems(void)
{
	return problems;
}

void finding_count(unsigned int more)
{
	problems += more;
}

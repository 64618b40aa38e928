/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the exchange program prints, and how it ends. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange.h"

void fail(const char *format, ...)
{
	va_list args;

	printf("FAILED: ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	_Exit(1);
}

void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
}

void must(int err, const char *what)
{
	if (err)
		fail("%s: %s", what, strerror(err));
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What failed last, in words. */
#include "view/why.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "view/view.h"

static char why[512] = "nothing has failed";

int view_fail(int err, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	if (n >= 0 && (size_t)n < sizeof(why))
		snprintf(why + n, sizeof(why) - (size_t)n, ": %s", strerror(-err));
	return err;
}

const char *view_why(void)
{
	return why;
}

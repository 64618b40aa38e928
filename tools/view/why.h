/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The sentence about what failed last (view_why()). */
#ifndef TOOLS_VIEW_WHY_H
#define TOOLS_VIEW_WHY_H

/* Keeps the sentence; its value is `err`, for `return view_fail(-errno, "...", ...)`. */
int view_fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif

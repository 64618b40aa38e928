/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the doctor found: one line each, and a second line with the cure. */
#ifndef TOOLS_DOCTOR_FINDING_H
#define TOOLS_DOCTOR_FINDING_H

#include <stdbool.h>

/* All is well here. */
void finding_ok(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Worth knowing; nothing fails for it. `cure` may be NULL. */
void finding_note(const char *cure, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Something does not work. */
void finding_problem(const char *cure, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* How many problems were found by this process, and by those that apart_run() started. */
unsigned int finding_problems(void);
void finding_count(unsigned int problems);

#endif

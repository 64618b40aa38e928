/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The libraries of a program, as the dynamic loader would find them. */
#ifndef TOOLS_DOCTOR_LIBRARIES_H
#define TOOLS_DOCTOR_LIBRARIES_H

#include <limits.h>
#include <stdbool.h>

#include "run/program.h"

struct libraries {
	char verbs[PATH_MAX];   /* the libibverbs; empty: it is linked with none */
	char cm[PATH_MAX];      /* the librdmacm; empty: none */
	char missing[NAME_MAX]; /* a library that is not found; empty: all are */
	bool sanitizer;         /* libasan is among them */
};

/*
 * Asks the program's own loader for the list (ld.so --list), which runs nothing of the program. 0,
 * or a negative errno.
 */
int libraries_of(const struct program *program, struct libraries *libraries);

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Checks in a process of their own: one that may be killed for what it tries (seccomp), that may
 * hang, or that uses the verbs library, which a process must not do before it forks.
 */
#ifndef TOOLS_DOCTOR_APART_H
#define TOOLS_DOCTOR_APART_H

#include <sys/types.h>

/*
 * Runs `check` in a child for at most `seconds`. Its result, 0 to 255, or -1 when the child was
 * killed or did not end.
 */
int apart_run(int (*check)(void *argument), void *argument, unsigned int seconds);

/* Waits for a child for at most so long, kills it then. Its exit status, or -1. */
int apart_wait(pid_t child, unsigned int seconds);

#endif

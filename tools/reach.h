/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Finds out by trial whether processes of this user can reach each other's memory. */
#ifndef TOOLS_REACH_H
#define TOOLS_REACH_H

#include <stddef.h>

enum { REACH_TEXT = 256 };

/*
 * Starts a child process that passes its own /proc/self/mem, and writes into its memory through it.
 * Returns 0 when the word arrived. Otherwise returns -1, and `why` (size bytes) gets the step that
 * failed and its error. Leaves no process behind.
 */
int reach_probe(char *why, size_t size);

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The counter files of a tree, written by the process that keeps it. */
#ifndef TOOLS_VIEW_COUNTERS_SHOW_H
#define TOOLS_VIEW_COUNTERS_SHOW_H

#include <stdbool.h>

/* Makes the folder in which processes put their files. 0 or -errno. */
int counters_prepare(const char *dir);

/* Writes the sums of all processes into the counter files. True: one of them has changed. */
bool counters_show(const char *dir);

/* Whether the folder has a file of a process. */
bool counters_any(const char *dir);

/*
 * Adds the files of processes that have ended to one file, and removes them. Returns whether a
 * process that has such a file lives.
 */
bool counters_fold(const char *dir);

#endif

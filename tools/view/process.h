/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Processes by number and time of start: together these stand for one process only. "PID.START..."
 * is a name that begins with both.
 */
#ifndef TOOLS_VIEW_PROCESS_H
#define TOOLS_VIEW_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* In clock ticks since the system started, as /proc/PID/stat has it; 0: no such process. */
unsigned long long process_began(pid_t pid);

/* Whether the process that a name stands for lives. */
bool process_named(const char *name);

/* Writes the name of a process. */
void process_name(pid_t pid, char *name, size_t size);

/* Whether the process was started with `text` ("NAME=value") in its environment. */
bool process_has_variable(pid_t pid, const char *text);

#endif

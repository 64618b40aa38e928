/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Threads of the library in the program's process. */
#ifndef VB_BASE_THREAD_H
#define VB_BASE_THREAD_H

#include <stddef.h>

/*
 * Starts a detached thread that takes none of the program's signals, by the name that debuggers and
 * ps(1) show (15 characters). It may run on the processors of the main thread and of the calling
 * thread. stack 0: as large as the program's threads have theirs. 0 or -errno.
 */
int vb_thread_start(const char *name, size_t stack, void *(*run)(void *arg), void *arg);

/*
 * The calling thread does little each time it is woken. Where it shares a processor with a thread
 * that computes, it gets its turn at once, and not when that one's slice is over: Linux 6.12 and
 * later look at the length of slices, 2 to 3 ms without this. Changes no priority.
 */
void vb_thread_is_brief(void);

#endif

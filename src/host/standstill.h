/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whether another process stands still. Read from /proc when something that takes microseconds has
 * not ended after milliseconds.
 */
#ifndef VB_HOST_STANDSTILL_H
#define VB_HOST_STANDSTILL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * No call of this library waits longer than this, all in all, for another process that stands
 * still. It is not shorter, because a thread that the scheduler keeps from running inside a system
 * call looks the same.
 */
#define VB_STANDSTILL_NS 2000000000ll

/*
 * True: each thread was seen stopped by a signal and off its processor, or has ended. A stopped
 * thread has left the system call that it was in, so a copy that it had begun is finished. A thread
 * that is off its processor passes a context switch before it goes on, so a guarded access
 * (host/guard.h) begins anew. False also when this is not known: the process is traced (a tracer
 * stops a thread at the beginning of a call too), frozen, not visible here, or belongs to a user
 * whose threads this process may not look at (/proc/PID/wchan). `pid` is a number of this process's
 * pid namespace, 0: not visible.
 */
bool vb_stands_still(pid_t pid);

/*
 * True: a thread of the process runs, waits for a processor, or is in a wait of the kernel that no
 * signal ends. Such a process may be slow only because the machine is busy. False also when this is
 * not known.
 */
bool vb_is_at_work(pid_t pid);

/*
 * The pid namespace of this process as a number that processes can compare; 0: /proc does not show
 * it.
 */
uint64_t vb_pid_namespace(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Threads of the library in the program's process. */
#include "base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Sets of 8192 processors. On a system with more, sched_getaffinity(2) fails. */
#define CPU_WORDS 8
/* The shortest slice that the kernel gives. */
#define BRIEF_NS  100000u

/*
 * A restriction that was set before the program began (taskset(1)) holds for the main thread and for
 * the caller. A program that binds a thread to one processor and uses the device there does not bind
 * the new thread to it, as long as its main thread may run elsewhere.
 */
static bool processors(cpu_set_t set[CPU_WORDS])
{
	cpu_set_t caller[CPU_WORDS];
	size_t size = CPU_WORDS * sizeof(set[0]);

	memset(set, 0, size);
	memset(caller, 0, size);
	if (sched_getaffinity(getpid(), size, set) || sched_getaffinity(0, size, caller))
		return false;
	CPU_OR_S(size, set, set, caller);
	return true;
}

/* struct sched_attr of sched_setattr(2), which not every C library declares. */
struct scheduling {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime; /* ns; of SCHED_OTHER the slice */
	uint64_t deadline;
	uint64_t period;
};

_Static_assert(sizeof(struct scheduling) == 48, "the kernel's layout");

void vb_thread_is_brief(void)
{
	struct scheduling s = {0};

	if (syscall(SYS_sched_getattr, 0, &s, sizeof(s), 0) || s.policy != SCHED_OTHER)
		return;
	s.size = sizeof(s);
	s.runtime = BRIEF_NS;
	(void)syscall(SYS_sched_setattr, 0, &s, 0);
}

int vb_thread_start(const char *name, size_t stack, void *(*run)(void *arg), void *arg)
{
	cpu_set_t cpus[CPU_WORDS];
	sigset_t all, saved;
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (stack)
		pthread_attr_setstacksize(&attr, stack);
	if (processors(cpus))
		pthread_attr_setaffinity_np(&attr, sizeof(cpus), cpus);
	pthread_sigmask(SIG_SETMASK, &all, &saved);
	err = pthread_create(&thread, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &saved, NULL);
	pthread_attr_destroy(&attr);
	if (!err)
		pthread_setname_np(thread, name);
	/*
	 * EAGAIN is a shortage here (pthread_create(3)). From a verb, or a call of sockets, it would
	 * mean that trying again helps.
	 */
	return err == EAGAIN ? -ENOMEM : -err;
}

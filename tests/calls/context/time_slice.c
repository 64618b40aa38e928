/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The progress thread asks for a time slice of 0.1 ms, and for nothing else: no priority, no other
 * policy, nothing for the program's own threads. Under another policy than the usual one, which the
 * program has chosen and the thread inherits, it asks for nothing.
 *
 * The system call is seen here on its way, so that it is judged on kernels that know no slices, too.
 * On those that do, the thread has what it asked for.
 */
/* The library must see the name; the tree is built with hidden ones. */
#pragma GCC visibility push(default)

#include <dlfcn.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

enum { BRIEF_NS = 100000, PATIENCE_MS = 20000 };

/* struct sched_attr of sched_setattr(2), in its first form. */
struct scheduling {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static _Atomic int requests, sleepers; /* requests so far; waits of other threads than the first */
static _Atomic pid_t asker;
static struct scheduling request, before; /* the first request, and what the asker had */

static long pass(long number, const long *arg)
{
	static long (*next)(long, ...);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "syscall");
	return next(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

static long attr_get(pid_t tid, struct scheduling *s)
{
	const long arg[6] = {tid, (long)s, sizeof(*s)};

	memset(s, 0, sizeof(*s));
	return pass(SYS_sched_getattr, arg);
}

static void note_request(const long *arg)
{
	if (atomic_load(&requests))
		return;
	memcpy(&request, (const void *)arg[1], sizeof(request));
	CHECK_ZERO(attr_get(0, &before));
	atomic_store(&asker, (pid_t)pass(SYS_gettid, (const long[6]){0}));
	CHECK_EQ(arg[0], 0); /* itself */
}

long syscall(long number, ...)
{
	long arg[6], result;
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_sched_setattr)
		note_request(arg);
	else if (number == SYS_epoll_pwait2 || number == SYS_epoll_pwait)
		atomic_fetch_add(&sleepers, 1);
	result = pass(number, arg);
	if (number == SYS_sched_setattr)
		atomic_fetch_add(&requests, 1);
	return result;
}

#pragma GCC visibility pop

/* The progress thread has come so far as to wait for work. */
static void progress_waits(void)
{
	const uint64_t until = now_ms() + PATIENCE_MS;

	while (!atomic_load(&sleepers)) {
		CHECK_SAY(now_ms() < until, "the progress thread does not wait for work");
		sleep_ms(1);
	}
}

/* Whether this kernel gives a thread the slice that it asks for: a child asks. */
static bool slices_known(void)
{
	struct scheduling s;
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		const long arg[6] = {0, (long)&s};

		if (attr_get(0, &s))
			_exit(1);
		s.size = sizeof(s);
		s.runtime = BRIEF_NS;
		_exit(pass(SYS_sched_setattr, arg) || attr_get(0, &s) || s.runtime != BRIEF_NS);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status == 0;
}

static void usual(void)
{
	const bool known = slices_known();
	struct scheduling mine, after, now;
	struct resources resources;
	struct endpoint ep;

	expect_case("the progress thread asks for a slice of 0.1 ms");
	CHECK_ZERO(attr_get(0, &mine));
	if (mine.policy != SCHED_OTHER)
		SKIP("started under scheduling policy %u, which its threads inherit", mine.policy);
	resources_open(&resources, 16, false);
	ep_open_on(&ep, &resources, NULL, NULL, 4096);
	progress_waits();
	EXPECT_EQ(atomic_load(&requests), 1);
	EXPECT(atomic_load(&asker) != getpid());
	EXPECT_EQ(request.runtime, BRIEF_NS);

	expect_case("and for nothing else");
	EXPECT_EQ(request.policy, SCHED_OTHER);
	EXPECT_EQ(request.flags, before.flags);
	EXPECT_EQ(request.nice, before.nice);
	EXPECT_EQ(request.priority, before.priority);
	EXPECT_EQ(request.deadline, before.deadline);
	EXPECT_EQ(request.period, before.period);
	CHECK_ZERO(attr_get(0, &after));
	EXPECT_UNTOUCHED(after, mine);

	if (known) {
		expect_case("the kernel gives it");
		CHECK_ZERO(attr_get(atomic_load(&asker), &now));
		EXPECT_EQ(now.runtime, BRIEF_NS);
		EXPECT_EQ(now.nice, mine.nice);
	} else {
		printf("# this kernel knows no slices\n");
	}
	ep_close(&ep);
	resources_close(&resources);
}

static int chosen(int sock, void *unused)
{
	const struct sched_param none = {0};
	struct resources resources;
	struct endpoint ep;

	(void)sock;
	(void)unused;
	CHECK_ZERO(sched_setscheduler(0, SCHED_BATCH, &none));
	resources_open(&resources, 16, false);
	ep_open_on(&ep, &resources, NULL, NULL, 4096);
	progress_waits();
	CHECK_EQ(atomic_load(&requests), 0);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

int main(void)
{
	struct process child;

	watchdog(60);
	process_start(&child, chosen, NULL);
	process_expect_success(&child, PROCESS_PATIENCE_MS);
	usual();
	return expect_done();
}

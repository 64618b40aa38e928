/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: the progress thread runs where the process may run, and nowhere else.
 *   - A process that was bound from outside before it began (taskset(1)) stays there with all its
 *     threads.
 *   - A program that binds the thread which uses the device does not bind the progress thread to
 *     that thread's processor.
 *   - If the main thread is bound as well, to another one, the progress thread has both.
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NONE = -1 };

/* The processors that the process has. */
static cpu_set_t all;
static int own[2];

struct plan {
	int main, user; /* index into own[]; NONE: not bound */
	bool alone;     /* the main thread is the user */
};

static void bind_to(int which)
{
	cpu_set_t one;

	if (which == NONE)
		return;
	CPU_ZERO(&one);
	CPU_SET(own[which], &one);
	CHECK_ZERO(sched_setaffinity(0, sizeof(one), &one));
}

/* The thread's number by its name; fails if there is none. */
static int progress_thread(void)
{
	DIR *folder = opendir("/proc/self/task");
	struct dirent *entry;
	int found = 0;

	CHECK(folder);
	while ((entry = readdir(folder))) {
		char path[300], name[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fgets(name, sizeof(name), file) && !strcmp(name, "verbatim\n"))
			found = atoi(entry->d_name);
		fclose(file);
	}
	closedir(folder);
	CHECK(found);
	return found;
}

static void *use_device(void *argument)
{
	const struct plan *plan = argument;
	struct resources resources;
	struct endpoint ep;

	bind_to(plan->user);
	resources_open(&resources, 16, false);
	ep_open_on(&ep, &resources, NULL, NULL, 4096);
	return NULL;
}

static int look(int sock, void *argument)
{
	struct plan *plan = argument;
	cpu_set_t expected, now;
	pthread_t thread;

	(void)sock;
	bind_to(plan->main);
	CHECK_ZERO(sched_getaffinity(0, sizeof(expected), &expected));
	if (plan->user != NONE)
		CPU_SET(own[plan->user], &expected);
	if (plan->alone) {
		use_device(plan);
	} else {
		CHECK_ZERO(pthread_create(&thread, NULL, use_device, plan));
		CHECK_ZERO(pthread_join(thread, NULL));
	}
	CHECK_ZERO(sched_getaffinity(progress_thread(), sizeof(now), &now));
	CHECK_SAY(CPU_EQUAL(&now, &expected), "the progress thread has %d processors, not %d",
		  CPU_COUNT(&now), CPU_COUNT(&expected));
	_exit(0);
}

static void play(const char *text, struct plan plan)
{
	struct process process;

	promise(text);
	process_start(&process, look, &plan);
	process_expect_success(&process, PROCESS_PATIENCE_MS);
	printf("%s\n", text);
}

int main(void)
{
	watchdog(60);
	CHECK_ZERO(sched_getaffinity(0, sizeof(all), &all));
	if (CPU_COUNT(&all) < 2)
		SKIP("there is only one processor");
	for (int i = 0, n = 0; n < 2; i++) {
		if (CPU_ISSET(i, &all))
			own[n++] = i;
	}
	play("a process that may run everywhere", (struct plan){NONE, NONE, true});
	play("a process that was bound before it began", (struct plan){0, NONE, true});
	play("and uses the device in another thread", (struct plan){0, NONE, false});
	play("only the thread that uses the device is bound", (struct plan){NONE, 1, false});
	play("it is, and the main thread elsewhere", (struct plan){0, 1, false});
	return 0;
}

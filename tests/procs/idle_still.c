/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: two connected processes with nothing to do are not woken: none of their threads runs, as
 * long as both rest. When one is killed then, the other one is woken and told.
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Longer than any interval at which a process that is at work looks at its peers. */
enum { REST_MS = 3000, BOUND_MS = 60000, SIZE = 4096 };

static unsigned long long switches_of(pid_t pid, const char *thread)
{
	unsigned long long count = 0;
	char path[320], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)pid, thread);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "voluntary_ctxt_switches: %llu", &count) == 1)
			break;
	}
	if (file)
		fclose(file);
	return count;
}

/* Of all threads but the main one, which is the test's. */
static unsigned long long switches(pid_t pid)
{
	unsigned long long sum = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *tasks = opendir(path);

	CHECK(tasks);
	for (struct dirent *e; (e = readdir(tasks)) != NULL;) {
		if (e->d_name[0] != '.' && atoi(e->d_name) != pid)
			sum += switches_of(pid, e->d_name);
	}
	closedir(tasks);
	return sum;
}

static void exchange(struct resources *r, struct endpoint *ep, int sock)
{
	struct ibv_wc wc;

	resources_open(r, 16, false);
	ep_open_on(ep, r, NULL, NULL, SIZE);
	for (uint64_t i = 0; i < 2; i++)
		CHECK_ZERO(ep_recv(ep, i, 0, 64));
	ep_exchange(ep, sock);
	CHECK_ZERO(ep_send(ep, 2, 64, 64, IBV_SEND_SIGNALED));
	for (int i = 0; i < 2; i++) {
		completion_next(r->cq, &wc);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	}
}

static int peer(int sock, void *unused)
{
	struct resources resources;
	struct endpoint ep;

	(void)unused;
	exchange(&resources, &ep, sock);
	message_meet(sock);
	while (pause() < 0) /* killed here */
		;
	return 0;
}

/* Whether neither process was woken for so long. */
static bool rests(pid_t other)
{
	unsigned long long before = switches(getpid()) + switches(other);

	sleep_ms(REST_MS);
	return switches(getpid()) + switches(other) == before;
}

int main(void)
{
	struct resources resources;
	struct process process;
	struct endpoint ep;
	uint64_t begun;

	watchdog(100);
	process_start(&process, peer, NULL);
	promise("an idle process is not woken");
	exchange(&resources, &ep, process.sock);
	message_meet(process.sock);
	begun = now_ms();
	/* What is left of the exchange, and a last look, come before the rest. */
	while (!rests(process.pid))
		CHECK_SAY(now_ms() - begun < BOUND_MS, "woken again and again");
	promise("and is told when its peer ends");
	CHECK_ZERO(kill(process.pid, SIGKILL));
	sleep_ms(1000);
	CHECK_ZERO(ep_send(&ep, 3, 64, 64, IBV_SEND_SIGNALED));
	completion_expect(resources.cq, 3, IBV_WC_RETRY_EXC_ERR, NULL);
	return 0;
}

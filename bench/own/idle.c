/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What two connected processes cost while neither has anything to do: after one message each way
 * both sleep, and how often a thread of theirs ran is counted (floor/two.h says how to call it).
 *
 *   wakeups  of all threads of both processes in 10 s, or in so many as the size says, without the
 *            sleep's own
 *   cpu      ms of processor time in that time
 */
#include "bench/floor/two.h"
#include "support/check.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Timers of the last message run out meanwhile (VB_REPAIR_NS). */
enum { SECONDS = 10, SETTLE_MS = 1500 };

struct usage {
	uint64_t switches; /* of all threads, voluntary ones */
	uint64_t ns;       /* of processor time */
};

static uint64_t switches_of(const char *thread)
{
	char path[300], line[256];
	unsigned long long count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", thread);
	file = fopen(path, "re");
	if (!file)
		return 0; /* it has ended */
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "voluntary_ctxt_switches: %llu", &count) == 1)
			break;
	}
	fclose(file);
	return count;
}

static struct usage usage_now(void)
{
	struct usage usage = {0, 0};
	DIR *tasks = opendir("/proc/self/task");
	struct timespec t;

	CHECK(tasks);
	for (struct dirent *entry; (entry = readdir(tasks));) {
		if (entry->d_name[0] != '.')
			usage.switches += switches_of(entry->d_name);
	}
	closedir(tasks);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	usage.ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	return usage;
}

static void sleep_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

/* Connects, exchanges a message, rests. What was used meanwhile, but for this function's sleep. */
static struct usage rest(int sock, long seconds)
{
	struct resources resources;
	struct usage before, after;
	struct endpoint ep;

	resources_open(&resources, 16, false);
	ep_open_on(&ep, &resources, NULL, NULL, 4096);
	CHECK_ZERO(ep_recv(&ep, 1, 0, 64));
	ep_exchange(&ep, sock);
	CHECK_ZERO(ep_send(&ep, 2, 64, 64, IBV_SEND_SIGNALED));
	for (int i = 0; i < 2; i++) {
		struct ibv_wc wc;

		completion_next(resources.cq, &wc);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	}
	message_meet(sock);
	sleep_ms(SETTLE_MS);
	before = usage_now();
	sleep_ms(seconds * 1000);
	after = usage_now();
	message_meet(sock);
	ep_close(&ep);
	resources_close(&resources);
	return (struct usage){after.switches - before.switches - 1, after.ns - before.ns};
}

struct other {
	int sock;
	long seconds;
};

static void other_rest(void *argument)
{
	const struct other *other = argument;
	struct usage usage = rest(other->sock, other->seconds);

	message_send(other->sock, &usage, sizeof(usage));
}

static struct usage both(size_t size)
{
	const long seconds = size ? (long)size : SECONDS;
	struct usage own, others;
	struct other other;
	int sock[2];
	pid_t pid;

	CHECK_ZERO(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock));
	other = (struct other){sock[1], seconds};
	pid = two_start(other_rest, &other);
	close(sock[1]);
	own = rest(sock[0], seconds);
	message_receive(sock[0], &others, sizeof(others));
	close(sock[0]);
	two_end(pid);
	return (struct usage){own.switches + others.switches, own.ns + others.ns};
}

static double wakeups(size_t size)
{
	return (double)both(size).switches;
}

static double cpu(size_t size)
{
	return (double)both(size).ns / 1e6;
}

int main(int argc, char **argv)
{
	static const struct two_figure figures[] = {
		{"wakeups", wakeups}, {"cpu", cpu}, {NULL, NULL}};

	promise("two processes rest");
	return two_main(argc, argv, figures);
}

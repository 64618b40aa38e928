/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: what is closed is gone. A process that again and again opens the
 * device, talks with another process, and closes everything, grows neither in
 * descriptors nor in mappings nor in threads; and neither does the other one.
 *
 * usage: open_close [ROUNDS]
 */
#include "procs/leftovers.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 64 * 1024, MESSAGE = 512, MESSAGES = 8, SETTLED = 20 };
/* A peer's page or ring may still wait to be unmapped. */
enum { DESCRIPTOR_SLACK = 4, MAPPING_SLACK = 16, SOME_KIB = 6 * 1024 };
/* Instrumented builds keep freed memory back to catch its use; only leaks proper count there. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { RESIDENT_COUNTS = 0 };
#else
enum { RESIDENT_COUNTS = 1 };
#endif

struct footprint {
	int descriptors;
	int mappings;
	int threads;
	long resident_kib;
};

static int lines_of(const char *path)
{
	FILE *file = fopen(path, "r");
	char line[512];
	int count = 0;

	CHECK(file);
	while (fgets(line, sizeof(line), file))
		count++;
	fclose(file);
	return count;
}

static int entries_of(const char *path)
{
	DIR *folder = opendir(path);
	int count = 0;

	CHECK(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count - 2;
}

static long resident_kib(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	long value = 0;

	CHECK(file);
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, "VmRSS:", 6) == 0)
			value = atol(line + 6);
	fclose(file);
	return value;
}

static struct footprint measure(void)
{
	return (struct footprint){
		.descriptors = descriptors_open(),
		.mappings = lines_of("/proc/self/maps"),
		.threads = entries_of("/proc/self/task"),
		.resident_kib = resident_kib(),
	};
}

static void compare(const struct footprint *first, const struct footprint *now, int round)
{
	CHECK_SAY(now->descriptors <= first->descriptors + DESCRIPTOR_SLACK,
		  "round %d: %d descriptors, %d before", round, now->descriptors,
		  first->descriptors);
	CHECK_SAY(now->mappings <= first->mappings + MAPPING_SLACK,
		  "round %d: %d mappings, %d before", round, now->mappings, first->mappings);
	CHECK_SAY(now->threads <= first->threads, "round %d: %d threads, %d before", round,
		  now->threads, first->threads);
	CHECK_SAY(!RESIDENT_COUNTS || now->resident_kib <= first->resident_kib + SOME_KIB,
		  "round %d: %ld KiB resident, %ld before", round, now->resident_kib,
		  first->resident_kib);
}

static void talk(struct endpoint *ep)
{
	struct ibv_wc wc = {0};
	int sent = 0, received = 0;
	int i;

	for (i = 0; i < MESSAGES; i++)
		CHECK_ZERO(ep_send(ep, 2, 0, MESSAGE, IBV_SEND_SIGNALED));
	while (sent < MESSAGES || received < MESSAGES) {
		completion_next(ep->resources->cq, &wc);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		*(wc.wr_id == 1 ? &received : &sent) += 1;
	}
	CHECK_ZERO(ep_write(ep, 3, 0, SIZE / 2, SIZE / 2, IBV_SEND_SIGNALED));
	completion_expect(ep->resources->cq, 3, IBV_WC_SUCCESS, NULL);
}

static int rounds;

static int run(int sock, void *unused)
{
	struct footprint first = {0}, now;
	struct resources resources;
	struct endpoint ep;
	int i, k;

	(void)unused;
	promise("what is closed is gone");
	for (i = 0; i < rounds; i++) {
		resources_open(&resources, 64, true);
		ep_open_on(&ep, &resources, NULL, NULL, SIZE);
		for (k = 0; k < MESSAGES; k++)
			CHECK_ZERO(ep_recv(&ep, 1, 0, MESSAGE));
		ep_exchange(&ep, sock);
		talk(&ep);
		message_meet(sock);
		ep_close(&ep);
		resources_close(&resources);
		now = measure();
		if (i == SETTLED)
			first = now;
		if (i > SETTLED)
			compare(&first, &now, i);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct process a, b;

	rounds = argc > 1 ? atoi(argv[1]) : 300;
	watchdog(90);
	process_start_pair(&a, run, &b, run, NULL);
	process_expect_success(&a, 80000);
	process_expect_success(&b, PROCESS_PATIENCE_MS);
	return 0;
}

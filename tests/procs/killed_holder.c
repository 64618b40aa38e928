/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: an initiator that is killed in the middle of direct access takes
 * nothing with it. The target's atomic lock, which it may have held, is free for
 * others; the mark it may have set does not keep ibv_dereg_mr waiting; and every
 * atomic it was told about is in the counter, at most one window more.
 *
 * The victims are killed (SIGKILL) at random moments while they do nothing but
 * atomics, or nothing but large WRITEs.
 *
 * usage: killed_holder [ROUNDS [SEED]]
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"
#include "support/random.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 1024 * 1024, WINDOW = 4, RESULT_AT = 64, LATEST_US = 3000, BOUND_MS = 1500 };

static volatile uint64_t *completed;
static bool atomics;

static int victim(int sock, void *unused)
{
	struct resources resources;
	struct ibv_wc wc = {0};
	uint64_t posted = 0;
	struct endpoint ep;

	(void)unused;
	promise("the victim works until it is killed");
	resources_open(&resources, 256, false);
	ep_open_on(&ep, &resources, NULL, NULL, SIZE);
	ep_exchange(&ep, sock);
	for (;;) {
		while (posted - *completed < WINDOW) {
			CHECK_ZERO(
				atomics ? ep_fetch_add(&ep, 0, RESULT_AT, 0, 1, IBV_SEND_SIGNALED)
					: ep_write(&ep, 0, 0, SIZE, 0, IBV_SEND_SIGNALED));
			posted++;
		}
		completion_next(resources.cq, &wc);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		++*completed;
	}
}

/* The target's own atomic, through the same lock. */
static uint64_t own_atomic(struct endpoint *here)
{
	uint64_t old;

	CHECK_ZERO(ep_fetch_add(here, 5, RESULT_AT, 0, 0, IBV_SEND_SIGNALED));
	completion_expect(here->resources->cq, 5, IBV_WC_SUCCESS, NULL);
	memcpy(&old, here->buffer + RESULT_AT, sizeof(old));
	return old;
}

static void in_time(const char *what, uint64_t since)
{
	CHECK_SAY(now_ms() - since < BOUND_MS, "%s took %llu ms after the kill", what,
		  (unsigned long long)(now_ms() - since));
}

/* One target per round, in a process of its own; argument: how long until the kill. */
static int round_main(int unused_sock, void *argument)
{
	struct resources resources, own;
	struct endpoint ep, here, there;
	struct process process;
	uint64_t since, count;

	(void)unused_sock;
	process_start(&process, victim, NULL);
	promise("a killed initiator takes nothing with it");
	resources_open(&resources, 256, false);
	resources_open(&own, 256, false);
	ep_open_on(&ep, &resources, NULL, NULL, SIZE);
	ep_open_on(&here, &own, NULL, NULL, 4096);
	ep_open_on(&there, &own, NULL, ep.buffer, SIZE);
	ep_link(&here, &there);
	ep_exchange(&ep, process.sock);
	usleep(*(const useconds_t *)argument);
	since = now_ms();
	process_kill(&process);
	if (atomics) {
		count = own_atomic(&here);
		in_time("an atomic", since);
		CHECK_SAY(count >= *completed && count <= *completed + WINDOW,
			  "the counter is %llu, the victim was told of %llu",
			  (unsigned long long)count, (unsigned long long)*completed);
	}
	CHECK_ZERO(ibv_dereg_mr(ep.mr));
	ep.mr = NULL;
	in_time("ibv_dereg_mr", since);
	ep_close(&here);
	ep_close(&there);
	ep_close(&ep);
	in_time("closing", since);
	resources_close(&own);
	resources_close(&resources);
	return 0;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 100;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (now_us() | 1);
	int i;

	printf("seed %llu\n", (unsigned long long)seed);
	watchdog(120);
	promise("a killed initiator takes nothing with it");
	completed = memory_shared(4096);
	for (i = 0; i < rounds; i++) {
		useconds_t wait = (useconds_t)(random_next(&seed) % LATEST_US);
		struct process process;

		atomics = i % 2;
		*completed = 0;
		process_start(&process, round_main, &wait);
		process_expect_success(&process, PROCESS_PATIENCE_MS);
	}
	return 0;
}

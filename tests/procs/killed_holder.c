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
	struct endpoint endpoint;
	struct ibv_wc wc = {0};
	uint64_t posted = 0;
	struct side side;

	(void)unused;
	promise("the victim works until it is killed");
	endpoint_open(&endpoint, 256, false);
	side_open(&side, &endpoint, NULL, NULL, SIZE);
	side_exchange(&side, sock);
	for (;;) {
		while (posted - *completed < WINDOW) {
			CHECK_ZERO(atomics ? post_fetch_add(&side, 0, RESULT_AT, 0, 1,
							    IBV_SEND_SIGNALED)
					   : post_write(&side, 0, 0, SIZE, 0, IBV_SEND_SIGNALED));
			posted++;
		}
		completion_next(endpoint.cq, &wc);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		++*completed;
	}
}

/* The target's own atomic, through the same lock. */
static uint64_t own_atomic(struct side *here)
{
	uint64_t old;

	CHECK_ZERO(post_fetch_add(here, 5, RESULT_AT, 0, 0, IBV_SEND_SIGNALED));
	completion_expect(here->endpoint->cq, 5, IBV_WC_SUCCESS, NULL);
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
	struct endpoint endpoint, own;
	struct side side, here, there;
	struct process process;
	uint64_t since, count;

	(void)unused_sock;
	process_start(&process, victim, NULL);
	promise("a killed initiator takes nothing with it");
	endpoint_open(&endpoint, 256, false);
	endpoint_open(&own, 256, false);
	side_open(&side, &endpoint, NULL, NULL, SIZE);
	side_open(&here, &own, NULL, NULL, 4096);
	side_open(&there, &own, NULL, side.buffer, SIZE);
	sides_connect(&here, &there);
	side_exchange(&side, process.sock);
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
	CHECK_ZERO(ibv_dereg_mr(side.mr));
	side.mr = NULL;
	in_time("ibv_dereg_mr", since);
	side_close(&here);
	side_close(&there);
	side_close(&side);
	in_time("closing", since);
	endpoint_close(&own);
	endpoint_close(&endpoint);
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

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: an initiator of ATOMICs that is stopped (SIGSTOP) or killed holds up nobody, also when
 * it stops in the middle of an operation that the target has let it do. The target's own ATOMICs on
 * the same word, its ibv_poll_cq and the other initiators go on. The sum stays exact: an operation
 * that another one overtook is done once, neither twice nor not at all. The initiators do nothing
 * but FETCH_ADD, one at a time, and count their completions. A random one is stopped for a few
 * milliseconds, thousands of times. In the end one is killed, whose last operation may or may not
 * have been done.
 *
 * usage: stopped_atomics [ROUNDS [SEED]]
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"
#include "support/random.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INITIATORS = 3, SIZE = 4096, RESULT_AT = 64, LATEST_US = 300, BOUND_MS = 3000 };

struct shared {
	volatile uint64_t done[INITIATORS];
	volatile int end;
};

static struct shared *shared;

static int initiator(int sock, void *argument)
{
	volatile uint64_t *done = argument;
	struct resources resources;
	struct endpoint ep;

	promise("an initiator's atomics succeed");
	resources_open(&resources, 256, false);
	ep_open_on(&ep, &resources, NULL, NULL, SIZE);
	ep_exchange(&ep, sock);
	while (!shared->end) {
		CHECK_ZERO(ep_fetch_add(&ep, 1, RESULT_AT, 0, 1, IBV_SEND_SIGNALED));
		completion_expect(resources.cq, 1, IBV_WC_SUCCESS, NULL);
		++*done;
	}
	message_meet(sock);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

struct target {
	struct resources resources, own;
	struct endpoint from[INITIATORS], here, there;
	uint64_t done, longest;
};

/*
 * The target's own share, through a queue pair to itself, and a look at the CQ that the initiators'
 * queue pairs belong to.
 */
static void own_atomic(struct target *t)
{
	uint64_t since = now_ms(), took;
	struct ibv_wc wc;

	CHECK_ZERO(ep_fetch_add(&t->here, 5, RESULT_AT, 0, 1, IBV_SEND_SIGNALED));
	completion_expect(t->own.cq, 5, IBV_WC_SUCCESS, NULL);
	t->done++;
	CHECK_EQ(ibv_poll_cq(t->resources.cq, 1, &wc), 0);
	took = now_ms() - since;
	CHECK_SAY(took < BOUND_MS, "an atomic of the target took %llu ms",
		  (unsigned long long)took);
	t->longest = took > t->longest ? took : t->longest;
}

static void target_open(struct target *t, struct process *processes, unsigned char *memory)
{
	resources_open(&t->resources, 256, false);
	resources_open(&t->own, 256, false);
	for (int i = 0; i < INITIATORS; i++)
		ep_open_on(&t->from[i], &t->resources, NULL, memory, SIZE);
	ep_open_on(&t->here, &t->own, NULL, NULL, SIZE);
	ep_open_on(&t->there, &t->own, NULL, memory, SIZE);
	ep_link(&t->here, &t->there);
	for (int i = 0; i < INITIATORS; i++)
		ep_exchange(&t->from[i], processes[i].sock);
}

/* While one stands still, the target and the others do atomics. */
static void play(struct target *t, struct process *processes, uint64_t *seed)
{
	int victim = (int)(random_next(seed) % INITIATORS);
	uint64_t until = now_us() + random_next(seed) % LATEST_US;

	while (now_us() < until)
		sched_yield();
	process_stop(&processes[victim]);
	for (uint64_t n = random_next(seed) % 8; n; n--)
		own_atomic(t);
	/* Going on in the middle of a take-over is the worst moment. */
	process_continue(&processes[victim]);
	own_atomic(t);
}

int main(int argc, char **argv)
{
	uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 0) : 2000;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (now_us() | 1);
	_Alignas(4096) static unsigned char memory[SIZE];
	struct process processes[INITIATORS];
	static struct target t;
	uint64_t sum, told = 0;

	printf("seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	watchdog(200);
	shared = memory_shared(sizeof(*shared));
	for (int i = 0; i < INITIATORS; i++)
		process_start(&processes[i], initiator, (void *)(uintptr_t)&shared->done[i]);
	promise("a stopped initiator of atomics keeps nobody waiting");
	target_open(&t, processes, memory);
	for (uint64_t i = 0; i < rounds; i++)
		play(&t, processes, &seed);
	promise("a killed one neither");
	process_kill(&processes[0]);
	own_atomic(&t);
	shared->end = 1;
	for (int i = 1; i < INITIATORS; i++)
		message_meet(processes[i].sock);
	promise("the sum is exact");
	for (int i = 0; i < INITIATORS; i++)
		told += shared->done[i];
	told += t.done;
	memcpy(&sum, memory, sizeof(sum));
	CHECK_SAY(sum == told || sum == told + 1, "the sum is %llu, completed were %llu",
		  (unsigned long long)sum, (unsigned long long)told);
	for (int i = 1; i < INITIATORS; i++)
		process_expect_success(&processes[i], PROCESS_PATIENCE_MS);
	printf("%llu stops, %llu atomics, the sum exact; the longest of the target took %llu ms\n",
	       (unsigned long long)rounds, (unsigned long long)sum, (unsigned long long)t.longest);
	for (int i = 0; i < INITIATORS; i++)
		ep_close(&t.from[i]);
	ep_close(&t.here);
	ep_close(&t.there);
	resources_close(&t.own);
	resources_close(&t.resources);
	return 0;
}

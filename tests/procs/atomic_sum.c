/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise (IBV_ATOMIC_HCA): atomics on one word are serialised whichever way they come. At the same
 * time they come from
 *   - an initiator with nothing in flight (direct access),
 *   - an initiator whose atomics are behind a SEND (through the ring),
 *   - an initiator of compare-and-swap loops, one half of them behind a SEND,
 *   - the target itself, from a queue pair of its own process to itself.
 * The sum is exact, and no two operations got the same old value.
 *
 * usage: atomic_sum [OPERATIONS_EACH]
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INITIATORS = 3, MESSAGE = 64, RECEIVES = 32, COUNTER_AT = 0, SIZE = 8192 };
/* Where results and messages are in every buffer. */
enum { RESULT_AT = 1024, SEND_AT = 2048, RECEIVE_AT = 4096 };
enum kind { DIRECT, BEHIND_SEND, SWAP_LOOP };

struct initiator {
	struct process process;
	enum kind kind;
};

static uint64_t each;
/* One byte for each value of the counter: set by the operation that got it as the old value. */
static unsigned char *taken;
static volatile uint64_t *ended;

static uint64_t result_of(const struct endpoint *ep)
{
	uint64_t value;

	memcpy(&value, ep->buffer + RESULT_AT, sizeof(value));
	return value;
}

static void take(uint64_t old)
{
	CHECK_SAY(old < each * (INITIATORS + 1), "old value %llu was never in the counter",
		  (unsigned long long)old);
	CHECK_SAY(!__atomic_exchange_n(&taken[old], 1, __ATOMIC_RELAXED),
		  "two operations were given the old value %llu", (unsigned long long)old);
}

/* One operation, perhaps behind a SEND; returns the old value of the counter. */
static uint64_t operate(struct endpoint *ep, bool behind, bool swap, uint64_t guess)
{
	struct ibv_cq *cq = ep->resources->cq;

	if (behind)
		CHECK_ZERO(ep_send(ep, 1, SEND_AT, MESSAGE, 0));
	if (swap)
		CHECK_ZERO(ep_compare_swap(ep, 2, RESULT_AT, COUNTER_AT, guess, guess + 1,
					   IBV_SEND_SIGNALED));
	else
		CHECK_ZERO(ep_fetch_add(ep, 2, RESULT_AT, COUNTER_AT, 1, IBV_SEND_SIGNALED));
	completion_expect(cq, 2, IBV_WC_SUCCESS, NULL);
	return result_of(ep);
}

static int initiator(int sock, void *argument)
{
	enum kind kind = ((struct initiator *)argument)->kind;
	struct resources resources;
	uint64_t previous = 0;
	uint64_t guess = 0;
	struct endpoint ep;
	uint64_t i;

	promise("an initiator's atomics succeed and its old values only grow");
	resources_open(&resources, 256, false);
	ep_open_on(&ep, &resources, NULL, NULL, SIZE);
	ep_exchange(&ep, sock);
	message_meet(sock);
	for (i = 0; i < each; i++) {
		bool behind = kind == BEHIND_SEND || (kind == SWAP_LOOP && i % 2);
		uint64_t old = operate(&ep, behind, kind == SWAP_LOOP, guess);

		while (kind == SWAP_LOOP && old != guess) {
			guess = old;
			old = operate(&ep, false, true, guess);
		}
		CHECK_SAY(i == 0 || old > previous, "old value %llu after %llu",
			  (unsigned long long)old, (unsigned long long)previous);
		previous = old;
		guess = old + 1;
		take(old);
	}
	__atomic_fetch_add(ended, 1, __ATOMIC_RELEASE);
	message_meet(sock);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

/* The target's endpoints: one per initiator, and two that lead to each other. */
struct target {
	struct resources resources;
	struct resources own;
	struct endpoint from[INITIATORS];
	struct endpoint here, there;
	uint64_t outstanding;
	uint64_t done;
};

static void target_open(struct target *target, unsigned char *memory)
{
	int i, k;

	resources_open(&target->resources, 1024, false);
	resources_open(&target->own, 256, false);
	for (i = 0; i < INITIATORS; i++) {
		ep_open_on(&target->from[i], &target->resources, NULL, memory, SIZE);
		for (k = 0; k < RECEIVES; k++)
			CHECK_ZERO(ep_recv(&target->from[i], (uint64_t)i, RECEIVE_AT, MESSAGE));
	}
	ep_open_on(&target->here, &target->own, NULL, NULL, SIZE);
	ep_open_on(&target->there, &target->own, NULL, memory, SIZE);
	ep_link(&target->here, &target->there);
}

/* Posts receives for the initiators. */
static void target_serve(struct target *target)
{
	struct ibv_wc wc = {0};

	while (ibv_poll_cq(target->resources.cq, 1, &wc) == 1) {
		if (wc.status != IBV_WC_SUCCESS) {
			completion_print(&wc);
			check_failed(__FILE__, __LINE__, "a receive of the target failed");
		}
		CHECK_ZERO(ep_recv(&target->from[wc.wr_id], wc.wr_id, RECEIVE_AT, MESSAGE));
	}
}

/* The target's own share, through its own queue pair. */
static void target_operate(struct target *target)
{
	struct ibv_wc wc = {0};

	if (target->outstanding == 0 && target->done < each) {
		CHECK_ZERO(ep_fetch_add(&target->here, 3, RESULT_AT, COUNTER_AT, 1,
					IBV_SEND_SIGNALED));
		target->outstanding = 1;
	}
	if (ibv_poll_cq(target->own.cq, 1, &wc) == 1) {
		if (wc.status != IBV_WC_SUCCESS)
			completion_print(&wc);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		take(result_of(&target->here));
		target->outstanding = 0;
		target->done++;
	}
}

static void run_target(struct initiator *initiators, unsigned char *memory)
{
	struct target target = {0};
	unsigned int turns = 0;
	int i;

	target_open(&target, memory);
	for (i = 0; i < INITIATORS; i++)
		ep_exchange(&target.from[i], initiators[i].process.sock);
	for (i = 0; i < INITIATORS; i++)
		message_meet(initiators[i].process.sock);
	while (target.done < each || __atomic_load_n(ended, __ATOMIC_ACQUIRE) < INITIATORS) {
		target_serve(&target);
		target_operate(&target);
		if (++turns % 65536 == 0)
			processes_check();
		if (target.done == each)
			sched_yield();
	}
	for (i = 0; i < INITIATORS; i++)
		message_meet(initiators[i].process.sock);
	for (i = 0; i < INITIATORS; i++)
		ep_close(&target.from[i]);
	ep_close(&target.here);
	ep_close(&target.there);
	resources_close(&target.resources);
	resources_close(&target.own);
}

int main(int argc, char **argv)
{
	static struct initiator initiators[INITIATORS] = {
		{.kind = DIRECT}, {.kind = BEHIND_SEND}, {.kind = SWAP_LOOP}};
	_Alignas(4096) static unsigned char memory[SIZE];
	uint64_t total, sum;
	int i;

	each = argc > 1 ? strtoull(argv[1], NULL, 0) : 50000;
	total = each * (INITIATORS + 1);
	watchdog(180);
	promise("the sum of atomics through different paths is exact");
	taken = memory_shared(total);
	ended = memory_shared(4096);
	for (i = 0; i < INITIATORS; i++)
		process_start(&initiators[i].process, initiator, &initiators[i]);
	run_target(initiators, memory);
	for (i = 0; i < INITIATORS; i++)
		process_expect_success(&initiators[i].process, PROCESS_PATIENCE_MS);
	memcpy(&sum, memory + COUNTER_AT, sizeof(sum));
	CHECK_EQ(sum, total);
	printf("%llu atomics, sum exact\n", (unsigned long long)total);
	return 0;
}

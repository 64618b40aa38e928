/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise (IBV_ATOMIC_HCA): ATOMICs on one word are atomic, whichever process registered the word.
 * Two processes register the same shared page. One initiator does FETCH_ADD through the first
 * registration, another through the second; each owner does so through a queue pair to itself, and
 * one owner uses the processor's own atomic operations besides. The sum is exact.
 *
 * usage: shared_word [OPERATIONS_EACH]
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <stdio.h>
#include <stdlib.h>

enum { OWNERS = 2, SIZE = 4096, RESULT_AT = 64 };

static uint64_t each;
static uint64_t *word;
static volatile uint64_t *ended;

static void add(struct endpoint *ep)
{
	CHECK_ZERO(ep_fetch_add(ep, 1, RESULT_AT, 0, 1, IBV_SEND_SIGNALED));
	completion_expect(ep->resources->cq, 1, IBV_WC_SUCCESS, NULL);
}

static int initiator(int sock, void *unused)
{
	struct resources resources;
	struct endpoint ep;

	(void)unused;
	promise("atomics on shared memory succeed");
	resources_open(&resources, 256, false);
	ep_open_on(&ep, &resources, NULL, NULL, SIZE);
	ep_exchange(&ep, sock);
	for (uint64_t i = 0; i < each; i++)
		add(&ep);
	__atomic_fetch_add(ended, 1, __ATOMIC_RELEASE);
	message_meet(sock);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

static int owner(int sock, void *unused)
{
	struct resources resources, own;
	struct endpoint ep, here, there;
	struct ibv_wc wc;

	(void)unused;
	promise("who owns a queue pair to a shared page does its atomics");
	resources_open(&resources, 256, false);
	resources_open(&own, 256, false);
	ep_open_on(&ep, &resources, NULL, word, SIZE);
	ep_open_on(&here, &own, NULL, NULL, SIZE);
	ep_open_on(&there, &own, NULL, word, SIZE);
	ep_link(&here, &there);
	ep_exchange(&ep, sock);
	for (uint64_t i = 0; i < each; i++) {
		add(&here);
		CHECK_EQ(ibv_poll_cq(resources.cq, 1, &wc), 0);
		__atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
	}
	/* What is left comes from its progress thread. */
	message_meet(sock);
	ep_close(&ep);
	ep_close(&here);
	ep_close(&there);
	resources_close(&own);
	resources_close(&resources);
	return 0;
}

int main(int argc, char **argv)
{
	struct process owners[OWNERS], initiators[OWNERS];

	each = argc > 1 ? strtoull(argv[1], NULL, 0) : 20000;
	watchdog(150);
	promise("the sum of atomics through two registrations of one page is exact");
	word = memory_shared(SIZE);
	ended = memory_shared(SIZE);
	for (int i = 0; i < OWNERS; i++)
		process_start_pair(&owners[i], owner, &initiators[i], initiator, NULL);
	for (int i = 0; i < OWNERS; i++) {
		process_expect_success(&initiators[i], 120000);
		process_expect_success(&owners[i], PROCESS_PATIENCE_MS);
	}
	CHECK_EQ(*ended, OWNERS);
	CHECK_SAY(*word == 3 * OWNERS * each, "the sum is %llu instead of %llu",
		  (unsigned long long)*word, (unsigned long long)(3 * OWNERS * each));
	printf("%llu atomics, the sum exact\n", (unsigned long long)*word);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promises about the ways of messages between two processes, which only their cost would show:
 *
 * small: SENDs of 8 bytes, to and fro, take the short way (local/express.c) on both sides.
 * long: a sender that polls stores a part of what it has lent (local/lend.c), as the receiver that
 * polls has offered it.
 *
 * usage: short_way small|long MESSAGES
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/paths.h"
#include "support/process.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SMALL = 8,
	LONG = 1 << 18,
	SIZE = LONG,
	PERCENT = 95,
	SOME = 20,
	TRIES = 20,
	PAUSE_MS = 100,
	YIELD_EVERY = 20000
};

static uint32_t messages;
static struct paths *result; /* of both sides, shared */

static void completions(struct endpoint *ep, uint32_t count)
{
	uint32_t in_vain = 0;
	struct ibv_wc wc;

	while (count) {
		int n = ibv_poll_cq(ep->resources->cq, 1, &wc);

		CHECK(n >= 0);
		if (n)
			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		else if (++in_vain % YIELD_EVERY == 0)
			sched_yield(); /* the other side may want this processor */
		count -= (uint32_t)n;
	}
}

static void small_first(struct endpoint *ep)
{
	for (uint32_t i = 0; i < messages; i++) {
		CHECK_ZERO(ep_recv(ep, i, 0, SMALL));
		CHECK_ZERO(ep_send(ep, i, SMALL, SMALL, IBV_SEND_SIGNALED));
		completions(ep, 2);
	}
}

/* The receive of the next message is there before the answer to this one. */
static void small_second(struct endpoint *ep)
{
	for (uint32_t i = 0; i < messages; i++) {
		completions(ep, i ? 2 : 1);
		CHECK_ZERO(ep_recv(ep, i, 0, SMALL));
		CHECK_ZERO(ep_send(ep, i, SMALL, SMALL, IBV_SEND_SIGNALED));
	}
	completions(ep, 1);
}

static void long_first(struct endpoint *ep)
{
	for (uint32_t i = 0; i < messages; i++) {
		CHECK_ZERO(ep_send(ep, i, 0, LONG, IBV_SEND_SIGNALED));
		completions(ep, 1);
	}
}

static void long_second(struct endpoint *ep)
{
	for (uint32_t i = 0; i < messages; i++) {
		completions(ep, 1);
		CHECK_ZERO(ep_recv(ep, i, 0, LONG));
	}
}

struct kind {
	size_t receive;
	void (*side[2])(struct endpoint *ep);
};

static const struct kind kinds[] = {
	{SMALL, {small_first, small_second}},
	{LONG, {long_first, long_second}},
};

static struct paths run(const struct kind *kind, int sock, bool second)
{
	struct resources resources;
	struct endpoint ep;

	paths_begin();
	resources_open(&resources, 64, false);
	ep_open_on(&ep, &resources, NULL, NULL, SIZE);
	if (second)
		CHECK_ZERO(ep_recv(&ep, 0, 0, kind->receive));
	ep_exchange(&ep, sock);
	kind->side[second](&ep);
	message_meet(sock);
	ep_close(&ep);
	resources_close(&resources);
	return paths_end();
}

static int side(const struct kind *kind, int sock, bool second)
{
	result[second] = run(kind, sock, second);
	return 0;
}

static int first(int sock, void *kind)
{
	return side(kind, sock, false);
}

static int second(int sock, void *kind)
{
	return side(kind, sock, true);
}

/* The first messages go before there is a ring. */
static bool is_small_as_promised(const struct paths *p)
{
	uint32_t most = messages * PERCENT / 100;

	return p->short_sent >= most && p->short_received >= most;
}

static bool is_as_promised(const struct kind *kind)
{
	if (kind->receive == SMALL)
		return is_small_as_promised(&result[0]) && is_small_as_promised(&result[1]);
	return result[1].lent_offered >= messages / SOME && result[1].lent_taken >= messages / SOME;
}

static void result_print(void)
{
	for (int i = 0; i < 2; i++)
		fprintf(stderr, "%llu sent, %llu received; %llu offered, %llu taken of %u\n",
			result[i].short_sent, result[i].short_received, result[i].lent_offered,
			result[i].lent_taken, messages);
}

static uint32_t processors(void)
{
	cpu_set_t set;

	CHECK_ZERO(sched_getaffinity(0, sizeof(set), &set));
	return (uint32_t)CPU_COUNT(&set);
}

/* On a busy machine the two may have one processor together, for a while. */
int main(int argc, char **argv)
{
	const struct kind *kind;
	struct process a, b;
	int tries = 0;

	CHECK(argc == 3);
	watchdog(100);
	promise("messages take the way that is made for them");
	kind = &kinds[!strcmp(argv[1], "long")];
	messages = (uint32_t)strtoul(argv[2], NULL, 0);
	if (kind->receive == LONG && processors() < 2)
		SKIP("a sender and a receiver that poll need a processor each");
	result = memory_shared(2 * sizeof(*result));
	do {
		CHECK(tries++ < TRIES);
		process_start_pair(&a, first, &b, second, (void *)(uintptr_t)kind);
		process_expect_success(&a, PROCESS_PATIENCE_MS);
		process_expect_success(&b, PROCESS_PATIENCE_MS);
		if (!is_as_promised(kind)) {
			result_print();
			sleep_ms(PAUSE_MS);
		}
	} while (!is_as_promised(kind));
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: two processes that poll for each other's messages on one processor give it to each other.
 * Otherwise each message takes the time that the scheduler gives to a process, some 3 ms.
 *
 * The test counts calls of sched_yield(2), by a function of its own in front of the C library's. How
 * long they take is not looked at.
 *
 * usage: one_core [MESSAGES [udp]]
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MESSAGE = 8, SIZE = 4096, RECEIVES = 4, LEAST = 20 };

static atomic_uint yields;
static unsigned long messages;

__attribute__((visibility("default"))) int sched_yield(void)
{
	atomic_fetch_add(&yields, 1);
	return (int)syscall(SYS_sched_yield);
}

/* The lowest processor that this process may use; all of its threads are bound to it. */
static void bind_to_one(void)
{
	cpu_set_t set;
	int cpu = 0;

	CHECK_ZERO(sched_getaffinity(0, sizeof(set), &set));
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	CHECK_ZERO(sched_setaffinity(0, sizeof(set), &set));
}

static void await(struct resources *r, int completions)
{
	struct ibv_wc wc;

	while (completions) {
		int n = ibv_poll_cq(r->cq, 1, &wc);

		CHECK(n >= 0);
		if (n)
			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		completions -= n;
	}
}

static void send_one(struct endpoint *ep)
{
	CHECK_ZERO(ep_send(ep, 1, 0, MESSAGE, IBV_SEND_SIGNALED));
	await(ep->resources, 1);
}

static void receive_one(struct endpoint *ep)
{
	await(ep->resources, 1);
	CHECK_ZERO(ep_recv(ep, 2, SIZE / 2, MESSAGE));
}

static void begin(struct endpoint *ep, struct resources *r, int sock)
{
	promise("processes that poll on one processor give it to each other");
	resources_open(r, 64, false);
	ep_open_on(ep, r, NULL, NULL, SIZE);
	for (int i = 0; i < RECEIVES; i++)
		CHECK_ZERO(ep_recv(ep, 2, SIZE / 2, MESSAGE));
	ep_exchange(ep, sock);
	message_meet(sock);
	atomic_store(&yields, 0);
}

static void end(struct endpoint *ep, struct resources *r, int sock)
{
	unsigned int given = atomic_load(&yields);

	/* Fewer where others want this processor, too, and polls are slow: their time counts then. */
	CHECK_SAY(given >= messages / LEAST, "it gave the processor away %u times in %lu messages",
		  given, messages);
	message_meet(sock);
	ep_close(ep);
	resources_close(r);
}

static int play(int sock, bool asks)
{
	struct resources r;
	struct endpoint ep;

	begin(&ep, &r, sock);
	for (unsigned long i = 0; i < messages; i++) {
		if (asks)
			send_one(&ep);
		receive_one(&ep);
		if (!asks)
			send_one(&ep);
	}
	end(&ep, &r, sock);
	return 0;
}

static int asker(int sock, void *unused)
{
	(void)unused;
	return play(sock, true);
}

static int answerer(int sock, void *unused)
{
	(void)unused;
	return play(sock, false);
}

int main(int argc, char **argv)
{
	struct process a, b;

	messages = argc > 1 ? strtoul(argv[1], NULL, 0) : 500;
	if (argc > 2 && !strcmp(argv[2], "udp"))
		CHECK_ZERO(setenv("VERBATIM_LINK", "udp", 1));
	watchdog(90);
	bind_to_one();
	process_start_pair(&a, asker, &b, answerer, NULL);
	process_expect_success(&a, 80000);
	process_expect_success(&b, PROCESS_PATIENCE_MS);
	return 0;
}

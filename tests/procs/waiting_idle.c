/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a process whose requests wait for a stopped peer (SIGSTOP) leaves the processor to
 * others while it does not poll: while contact is still to be made, and while the ring to the peer
 * is full. When the peer goes on, everything that waited arrives.
 *
 * usage: waiting_idle [contact | room]
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <string.h>
#include <time.h>

enum { DEPTH = 512, LENGTH = 4096, SIZE = 65536, WAIT_MS = 1000 };
/* Looking every 2 ms takes some 10 ms of a second; looking all the time, a whole one. */
enum { CPU_MS = 300 };

static bool contact;

static void open_here(struct resources *resources, struct endpoint *ep)
{
	struct ep_config config;

	config = ep_defaults(IBV_QPT_RC);
	config.cap.max_send_wr = config.cap.max_recv_wr = DEPTH;
	resources_open(resources, 2 * DEPTH, false);
	ep_open_on(ep, resources, &config, NULL, SIZE);
}

static int peer(int sock, void *unused)
{
	struct resources resources;
	struct endpoint ep;
	int i;

	(void)unused;
	promise("what waited for a stopped process arrives");
	open_here(&resources, &ep);
	for (i = 0; i < DEPTH; i++)
		CHECK_ZERO(ep_recv(&ep, (uint64_t)i, 0, LENGTH));
	ep_exchange(&ep, sock);
	message_meet(sock);
	/* Stopped somewhere here. */
	for (i = 0; i < DEPTH; i++)
		completion_expect(resources.cq, (uint64_t)i, IBV_WC_SUCCESS, NULL);
	message_meet(sock);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

static uint64_t cpu_ms(void)
{
	struct timespec t;

	CHECK_ZERO(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t));
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

static void check_waits_idly(void)
{
	uint64_t before, used;

	sleep_ms(100);
	before = cpu_ms();
	sleep_ms(WAIT_MS);
	used = cpu_ms() - before;
	CHECK_SAY(used < CPU_MS, "%llu ms of processor time in %d ms of waiting",
		  (unsigned long long)used, WAIT_MS);
}

int main(int argc, char **argv)
{
	struct resources resources;
	struct process process;
	struct endpoint ep;
	int i;

	contact = argc < 2 || strcmp(argv[1], "contact") == 0;
	watchdog(60);
	process_start(&process, peer, NULL);
	open_here(&resources, &ep);
	promise("a process that waits for a stopped one needs no processor time");
	if (contact) {
		struct peer theirs;

		message_swap(process.sock, &ep.local, &theirs, sizeof(theirs));
		process_stop(&process);
		ep_connect(&ep, &theirs);
		check_waits_idly();
		process_continue(&process);
		message_meet(process.sock);
		message_meet(process.sock);
	} else {
		ep_exchange(&ep, process.sock);
		message_meet(process.sock);
		process_stop(&process);
	}
	for (i = 0; i < DEPTH; i++)
		CHECK_ZERO(ep_send(&ep, (uint64_t)i, 0, LENGTH, IBV_SEND_SIGNALED));
	if (!contact) {
		check_waits_idly();
		process_continue(&process);
	}
	for (i = 0; i < DEPTH; i++)
		completion_expect(resources.cq, (uint64_t)i, IBV_WC_SUCCESS, NULL);
	message_meet(process.sock);
	ep_close(&ep);
	resources_close(&resources);
	process_expect_success(&process, PROCESS_PATIENCE_MS);
	return 0;
}

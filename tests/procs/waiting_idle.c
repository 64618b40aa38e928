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

static void open_here(struct endpoint *endpoint, struct side *side)
{
	struct qp_settings settings;

	qp_settings_default(&settings, IBV_QPT_RC);
	settings.cap.max_send_wr = settings.cap.max_recv_wr = DEPTH;
	endpoint_open(endpoint, 2 * DEPTH, false);
	side_open(side, endpoint, &settings, NULL, SIZE);
}

static int peer(int sock, void *unused)
{
	struct endpoint endpoint;
	struct side side;
	int i;

	(void)unused;
	promise("what waited for a stopped process arrives");
	open_here(&endpoint, &side);
	for (i = 0; i < DEPTH; i++)
		CHECK_ZERO(post_receive(&side, (uint64_t)i, 0, LENGTH));
	side_exchange(&side, sock);
	message_meet(sock);
	/* Stopped somewhere here. */
	for (i = 0; i < DEPTH; i++)
		completion_expect(endpoint.cq, (uint64_t)i, IBV_WC_SUCCESS, NULL);
	message_meet(sock);
	side_close(&side);
	endpoint_close(&endpoint);
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
	struct endpoint endpoint;
	struct process process;
	struct side side;
	int i;

	contact = argc < 2 || strcmp(argv[1], "contact") == 0;
	watchdog(60);
	process_start(&process, peer, NULL);
	open_here(&endpoint, &side);
	promise("a process that waits for a stopped one needs no processor time");
	if (contact) {
		struct peer theirs;

		message_swap(process.sock, &side.local, &theirs, sizeof(theirs));
		process_stop(&process);
		side_connect(&side, &theirs);
		check_waits_idly();
		process_continue(&process);
		message_meet(process.sock);
		message_meet(process.sock);
	} else {
		side_exchange(&side, process.sock);
		message_meet(process.sock);
		process_stop(&process);
	}
	for (i = 0; i < DEPTH; i++)
		CHECK_ZERO(post_send(&side, (uint64_t)i, 0, LENGTH, IBV_SEND_SIGNALED));
	if (!contact) {
		check_waits_idly();
		process_continue(&process);
	}
	for (i = 0; i < DEPTH; i++)
		completion_expect(endpoint.cq, (uint64_t)i, IBV_WC_SUCCESS, NULL);
	message_meet(process.sock);
	side_close(&side);
	endpoint_close(&endpoint);
	process_expect_success(&process, PROCESS_PATIENCE_MS);
	return 0;
}

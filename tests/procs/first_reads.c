/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: of large READs that are posted together right after connecting, all but the first are
 * one-sided, although no packet went to the target before. The target stays in RTR, where a first
 * packet is owed (COMM_EST), and has given its memory or is about to. It is stopped (SIGSTOP) as soon as
 * the first READ is complete; the others finish all the same, in order.
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <string.h>

enum { READS = 32, LENGTH = 1024 * 1024, ROUNDS = 8 };

static int target(int sock, void *unused)
{
	struct resources resources;

	(void)unused;
	for (int i = 0; i < ROUNDS; i++) {
		struct endpoint ep;
		struct peer remote;

		resources_open(&resources, 16, false);
		ep_open_on(&ep, &resources, NULL, NULL, LENGTH);
		memset(ep.buffer, i + 1, LENGTH);
		message_swap(sock, &ep.local, &remote, sizeof(remote));
		CHECK_ZERO(ep_bring_to(&ep, &remote, IBV_QPS_RTR));
		message_meet(sock);
		message_meet(sock);
		ep_close(&ep);
		resources_close(&resources);
	}
	return 0;
}

static void play(struct process *process, int round)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct resources resources;
	struct endpoint ep;

	config.cap.max_send_wr = READS;
	config.max_rd_atomic = READS;
	resources_open(&resources, READS, false);
	ep_open_on(&ep, &resources, &config, NULL, LENGTH);
	ep_exchange(&ep, process->sock);
	for (uint64_t i = 0; i < READS; i++)
		CHECK_ZERO(ep_read(&ep, i, 0, LENGTH, 0, IBV_SEND_SIGNALED));
	for (uint64_t i = 0; i < READS; i++) {
		completion_expect(resources.cq, i, IBV_WC_SUCCESS, NULL);
		if (i == 0)
			process_stop(process);
		CHECK(ep_is_filled(&ep, 0, round + 1, LENGTH));
	}
	process_continue(process);
	message_meet(process->sock);
	ep_close(&ep);
	resources_close(&resources);
}

int main(void)
{
	struct process process;

	watchdog(60);
	promise("large READs behind the first one do not need the target's threads");
	process_start(&process, target, NULL);
	for (int i = 0; i < ROUNDS; i++)
		play(&process, i);
	process_expect_success(&process, PROCESS_PATIENCE_MS);
	return 0;
}

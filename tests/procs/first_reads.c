/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: of large READs that are posted together right after connecting, all but the first are
 * one-sided, although no packet went to the target before. The target stays in RTR, where a first
 * packet is owed (COMM_EST), and has given its memory or is about to. It is stopped (SIGSTOP) as soon as
 * the first READ is complete; the others finish all the same, in order.
 *
 * The target's memory is asked for with the first READ, and its progress thread may be slower than that
 * READ. Such a target goes on after a while, and must be one of few.
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <string.h>

enum { READS = 32, LENGTH = 1024 * 1024, ROUNDS = 8, LATE_MOST = 2, LATE_MS = 2000 };

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

/* False: not while the target stands still. */
static bool comes(struct ibv_cq *cq, uint64_t wr_id)
{
	struct ibv_wc wc;

	if (!completion_try(cq, &wc, LATE_MS))
		return false;
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.wr_id, wr_id);
	return true;
}

/* Whether all but the first READ were complete while the target stood still. */
static bool play(struct process *process, int round)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct resources resources;
	struct endpoint ep;
	bool stands = false;

	config.cap.max_send_wr = READS;
	config.max_rd_atomic = READS;
	resources_open(&resources, READS, false);
	ep_open_on(&ep, &resources, &config, NULL, LENGTH);
	ep_exchange(&ep, process->sock);
	for (uint64_t i = 0; i < READS; i++)
		CHECK_ZERO(ep_read(&ep, i, 0, LENGTH, 0, IBV_SEND_SIGNALED));
	for (uint64_t i = 0; i < READS; i++) {
		if (!stands || !comes(resources.cq, i)) {
			if (stands)
				process_continue(process);
			stands = false;
			completion_expect(resources.cq, i, IBV_WC_SUCCESS, NULL);
		}
		if (i == 0) {
			process_stop(process);
			stands = true;
		}
		CHECK(ep_is_filled(&ep, 0, round + 1, LENGTH));
	}
	if (stands)
		process_continue(process);
	message_meet(process->sock);
	ep_close(&ep);
	resources_close(&resources);
	return stands;
}

int main(void)
{
	struct process process;
	int late = 0;

	watchdog(60);
	promise("large READs behind the first one do not need the target's threads");
	process_start(&process, target, NULL);
	for (int i = 0; i < ROUNDS; i++)
		late += !play(&process, i);
	CHECK_SAY(late <= LATE_MOST, "%d of %d rounds needed them", late, ROUNDS);
	process_expect_success(&process, PROCESS_PATIENCE_MS);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a process whose peer is stopped (SIGSTOP) is not held up by it. With
 * SENDs waiting for the peer it deregisters, destroys, closes, opens again and
 * works with others, all without waiting; the peer, when it goes on, gets what
 * had been sent and learns that the connection is gone.
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"
#include "support/qp_state.h"

#include <stdio.h>

enum { SIZE = 64 * 1024, MESSAGE = 256, MESSAGES = 16, PROMPT_MS = 1000 };

static int target(int sock, void *unused)
{
	struct resources resources;
	struct ibv_wc wc = {0};
	struct endpoint ep;
	int i, whole = 0;
	char go;

	(void)unused;
	promise("the stopped side goes on in order");
	resources_open(&resources, 256, false);
	ep_open_on(&ep, &resources, NULL, NULL, SIZE);
	for (i = 0; i < MESSAGES; i++)
		CHECK_ZERO(ep_recv(&ep, (uint64_t)i, 0, MESSAGE));
	ep_exchange(&ep, sock);
	message_meet(sock);
	/* Stopped here until the other side is long gone. */
	message_receive(sock, &go, 1);
	while (completion_try(resources.cq, &wc, 100)) {
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK_EQ(wc.wr_id, whole);
		whole++;
	}
	CHECK_EQ(qp_state(ep.qp), IBV_QPS_RTS);
	CHECK_ZERO(ep_send(&ep, 100, 0, MESSAGE, IBV_SEND_SIGNALED));
	completion_expect(resources.cq, 100, IBV_WC_RETRY_EXC_ERR, NULL);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

static void prompt(const char *what, uint64_t since)
{
	CHECK_SAY(now_ms() - since < PROMPT_MS, "%s took %llu ms beside a stopped peer", what,
		  (unsigned long long)(now_ms() - since));
}

/* Ordinary work that has nothing to do with the stopped process. */
static void own_pair_works(void)
{
	struct resources resources;

	resources_open(&resources, 64, false);
	resources_try(&resources);
	resources_close(&resources);
}

int main(void)
{
	struct resources resources;
	struct process process;
	struct endpoint ep;
	uint64_t since;
	int i;

	watchdog(60);
	process_start(&process, target, NULL);
	promise("a stopped peer holds nobody up");
	resources_open(&resources, 256, false);
	ep_open_on(&ep, &resources, NULL, NULL, SIZE);
	ep_exchange(&ep, process.sock);
	CHECK_ZERO(ep_write(&ep, 50, 0, 64, 0, IBV_SEND_SIGNALED));
	completion_expect(resources.cq, 50, IBV_WC_SUCCESS, NULL);
	message_meet(process.sock);
	process_stop(&process);

	since = now_ms();
	for (i = 0; i < MESSAGES; i++)
		CHECK_ZERO(ep_send(&ep, (uint64_t)i, 0, MESSAGE, IBV_SEND_SIGNALED));
	prompt("ibv_post_send", since);
	since = now_ms();
	CHECK_ZERO(ibv_dereg_mr(ep.mr));
	ep.mr = NULL;
	prompt("ibv_dereg_mr", since);
	since = now_ms();
	ep_close(&ep);
	prompt("ibv_destroy_qp", since);
	since = now_ms();
	resources_close(&resources);
	prompt("ibv_close_device", since);
	since = now_ms();
	own_pair_works();
	prompt("work with others", since);

	process_continue(&process);
	message_send(process.sock, "g", 1);
	process_expect_success(&process, PROCESS_PATIENCE_MS);
	return 0;
}

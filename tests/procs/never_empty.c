/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a program whose completion queue never becomes empty, because one-sided requests are
 * complete as soon as they are posted and each poll takes one entry, gets what other processes send
 * after some polls, and these get their acknowledgements.
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <stdatomic.h>

enum {
	LENGTH = 64,
	AHEAD = 8,            /* entries that the queue holds, about */
	STEADY = 1000,        /* polls in a row that found one */
	MESSAGE = UINT16_MAX, /* wr_id of the receives */
	MESSAGES = 20,
	LATER_MS = 300,
	TURNS = 2000, /* polls, at most, until a message that was sent is received */
	PATIENCE_US = 20000000,
};

static _Atomic int *sent; /* shared: messages that are on their way or have come */

static int sender(int sock, void *unused)
{
	struct resources resources;
	struct endpoint ep;

	(void)unused;
	resources_open(&resources, 16, false);
	ep_open_on(&ep, &resources, NULL, NULL, 4096);
	ep_exchange(&ep, sock);
	message_meet(sock);
	sleep_ms(LATER_MS);
	for (int i = 0; i < MESSAGES; i++) {
		CHECK_ZERO(ep_send(&ep, (uint64_t)i, 0, LENGTH, IBV_SEND_SIGNALED));
		atomic_store(sent, i + 1);
		completion_expect(resources.cq, (uint64_t)i, IBV_WC_SUCCESS, NULL);
	}
	message_meet(sock);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

/* Posts a WRITE and polls one entry. Returns how many receives that was; *found: there was one. */
static int turn(struct endpoint *ep, bool *found)
{
	struct ibv_wc wc;

	CHECK_ZERO(ep_write(ep, 0, 0, LENGTH, 0, IBV_SEND_SIGNALED));
	*found = ibv_poll_cq(ep->resources->cq, 1, &wc) == 1;
	if (!*found)
		return 0;
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	return wc.wr_id == MESSAGE;
}

/* A program that polls, and from some time on so many polls in a row find an entry. */
static void become_steady(struct endpoint *ep)
{
	uint64_t end = now_us() + PATIENCE_US;
	struct ibv_wc wc;
	bool found;

	for (int i = 0; i < STEADY; i++)
		CHECK_EQ(ibv_poll_cq(ep->resources->cq, 1, &wc), 0);
	for (int i = 0; i < AHEAD; i++)
		CHECK_ZERO(ep_write(ep, 0, 0, LENGTH, 0, IBV_SEND_SIGNALED));
	for (int steady = 0; steady < STEADY; steady = found ? steady + 1 : 0) {
		CHECK_EQ(turn(ep, &found), 0);
		CHECK_SAY(now_us() < end, "WRITEs are not complete when they were posted");
	}
}

/* Takes what the sender sends. */
static void receive(struct endpoint *ep)
{
	uint64_t end = now_us() + PATIENCE_US;
	int received = 0, late = 0;
	bool found;

	while (received < MESSAGES) {
		bool due = atomic_load(sent) > received;
		int n = turn(ep, &found);

		received += n;
		late = due && !n ? late + 1 : 0;
		CHECK_SAY(late < TURNS, "message %d was not received in %d polls", received, late);
		CHECK_SAY(now_us() < end, "%d of %d messages came", received, MESSAGES);
	}
}

int main(void)
{
	struct process process;
	struct resources resources;
	struct endpoint ep;

	watchdog(90);
	promise("messages arrive at a queue that is never empty");
	sent = memory_shared(sizeof(*sent));
	process_start(&process, sender, NULL);
	resources_open(&resources, 4096, false);
	ep_open_on(&ep, &resources, NULL, NULL, 4096);
	for (int i = 0; i < MESSAGES; i++)
		CHECK_ZERO(ep_recv(&ep, MESSAGE, 1024, LENGTH));
	ep_exchange(&ep, process.sock);
	process_await_memory(&process);
	message_meet(process.sock);
	become_steady(&ep);
	receive(&ep);
	message_meet(process.sock);
	process_expect_success(&process, PROCESS_PATIENCE_MS);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

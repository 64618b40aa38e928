/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A backlog stays in the ring: a poll that finds as many entries as it asks for takes no message out
 * of the ring. A program that takes entry by entry therefore has time to post a receive for what
 * still lies there, and the sender is told of no lack of one.
 *
 * The sender of each try has no RNR retry: a message that is taken out too early fails. The progress
 * thread may take it, too, when it finds that nobody has polled for a while; nobody has promised
 * that it does not. So the message is to arrive in one of many tries, which take microseconds each.
 */
#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

enum { BYTES = 8, HELD = 4, LATE = 77, TRIES = 200 };

/* HELD messages are entries of the receiver's queue. */
static void entries_wait(struct endpoint *near, struct endpoint *far)
{
	struct ibv_wc wc;

	for (uint64_t id = 0; id < HELD; id++) {
		CHECK_ZERO(ep_recv(far, id, 0, BYTES));
		CHECK_ZERO(ep_send(near, id, 0, BYTES, IBV_SEND_SIGNALED));
	}
	for (uint64_t id = 0; id < HELD; id++) {
		CHECK_EQ(ibv_poll_cq(far->cq[EP_SEND_CQ], 1, &wc), 0); /* it drives the far side */
		CHECK_EQ(ep_poll_one(near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	}
}

static void entries_taken(struct endpoint *far, int at_once)
{
	struct ibv_wc wc[HELD];

	for (int taken = 0; taken < HELD; taken += at_once)
		CHECK_EQ(ibv_poll_cq(far->cq[EP_RECV_CQ], at_once, wc), at_once);
}

/* Did the message that came without a receive wait for one? */
static bool backlog_waits(int at_once)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct endpoint near, far;
	struct ibv_wc wc;
	int status;

	config.rnr_retry = 0;
	ep_pair(&near, &far, &config, &config, EP_HERE);
	entries_wait(&near, &far);
	CHECK_ZERO(ep_send(&near, LATE, 0, BYTES, IBV_SEND_SIGNALED));
	entries_taken(&far, at_once);
	CHECK_ZERO(ep_recv(&far, LATE, 0, BYTES));
	do {
		CHECK(ibv_poll_cq(far.cq[EP_RECV_CQ], 1, &wc) >= 0);
		status = ep_poll(&near, EP_SEND_CQ, &wc, 1, 1) == 1 ? (int)wc.status : -1;
	} while (status < 0);
	CHECK_EQ(wc.wr_id, LATE);
	CHECK(status == IBV_WC_SUCCESS || status == IBV_WC_RNR_RETRY_EXC_ERR);
	ep_pair_close(&near, &far);
	return status == IBV_WC_SUCCESS;
}

int main(void)
{
	static const int counts[] = {1, 2, HELD};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		int tries = 0;
		bool waits = false;

		expect_case("polls that take %d of %d entries leave the next message in the ring",
			    counts[i], HELD);
		while (!waits && tries++ < TRIES)
			waits = backlog_waits(counts[i]);
		EXPECT_SAY(waits, "in none of %d tries", TRIES);
	}
	return expect_done();
}

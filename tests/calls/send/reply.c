/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Request and reply: of a program that has always replied at once, the acknowledgement of a message
 * waits for the reply and travels with it. It does not wait when the reply does not come.
 */
#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

enum {
	BYTES = 8,
	ROUNDS = 40,      /* far more than make a habit */
	AWAKE_POLLS = 40, /* a thread that polls so often in a row polls steadily */
	FEW_POLLS = 20,
};

static void polled_steadily(struct endpoint *ep)
{
	struct ibv_wc wc;

	for (int i = 0; i < AWAKE_POLLS; i++)
		EXPECT_EQ(ibv_poll_cq(ep->cq[EP_RECV_CQ], 1, &wc), 0);
}

static void one_way(struct endpoint *from, struct endpoint *to, uint64_t id)
{
	struct ibv_wc wc;

	EXPECT_EQ(ep_recv(to, id, BYTES, BYTES), 0);
	EXPECT_EQ(ep_send(from, id, 0, BYTES, IBV_SEND_SIGNALED), 0);
	EXPECT_EQ(ep_poll_one(to, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, id);
}

static void conversation(struct endpoint *near, struct endpoint *far)
{
	struct ibv_wc wc;

	polled_steadily(near);
	polled_steadily(far);
	for (uint64_t id = 0; id < ROUNDS; id++) {
		one_way(near, far, id);
		one_way(far, near, id);
		/* The acknowledgement has come with the reply at the latest. */
		EXPECT_EQ(ibv_poll_cq(near->cq[EP_SEND_CQ], 1, &wc), 1);
		EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
		EXPECT_EQ(wc.wr_id, id);
		EXPECT_EQ(ep_poll_one(far, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_EQ(wc.wr_id, id);
	}
}

/* The far program polls this queue so often, and finds nothing; the sender learns that its message has come. */
static void acknowledged_soon(struct endpoint *near, struct endpoint *far, enum ep_cq queue,
			      int far_polls, uint64_t id)
{
	struct ibv_wc wc;
	int n = 0;

	for (int polls = 0; !n && polls < FEW_POLLS; polls++) {
		if (polls < far_polls)
			EXPECT_EQ(ibv_poll_cq(far->cq[queue], 1, &wc), 0);
		n = ibv_poll_cq(near->cq[EP_SEND_CQ], 1, &wc);
	}
	if (!EXPECT_EQ(n, 1))
		return;
	EXPECT_EQ(wc.wr_id, id);
	EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
}

/* The program has polled the message, and polls again instead of replying. */
static void no_reply(struct endpoint *near, struct endpoint *far)
{
	expect_case("the reply does not come, but the program polls");
	one_way(near, far, 77);
	acknowledged_soon(near, far, EP_RECV_CQ, 1, 77);
	conversation(near, far);
}

/* The message lies in the queue, and the program polls another one again and again. */
static void not_seen(struct endpoint *near, struct endpoint *far)
{
	struct ibv_wc wc;

	expect_case("the message is not polled");
	EXPECT_EQ(ep_recv(far, 78, BYTES, BYTES), 0);
	EXPECT_EQ(ep_send(near, 78, 0, BYTES, IBV_SEND_SIGNALED), 0);
	acknowledged_soon(near, far, EP_SEND_CQ, FEW_POLLS, 78);
	EXPECT_EQ(ep_poll_one(far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
}

static void nobody_polls(struct endpoint *near, struct endpoint *far)
{
	struct ibv_wc wc;

	expect_case("the program stops polling");
	one_way(near, far, 79);
	EXPECT_EQ(ep_poll_one(near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, 79);
}

int main(void)
{
	void (*const cases[])(struct endpoint * near, struct endpoint * far) = {no_reply, not_seen,
										nobody_polls};
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct endpoint near, far;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		expect_case("a conversation");
		ep_pair(&near, &far, &config, &config, EP_HERE);
		conversation(&near, &far);
		cases[i](&near, &far);
		ep_pair_close(&near, &far);
	}
	return expect_done();
}

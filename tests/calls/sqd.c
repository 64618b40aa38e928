/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The drained send queue: started work finishes, later work waits, an event (IBA 10.3.1.4). */
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "end.h"
#include "expect.h"

static enum end_place place;
static struct end near, far;

static void open_pair(void)
{
	struct end_config config = end_defaults(IBV_QPT_RC);

	end_pair(&near, &far, &config, &config, place);
}

static int to_sqd(bool notify)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_SQD,
		.en_sqd_async_notify = notify,
	};

	return end_modify(&near, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
}

static bool draining(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	REQUIRE(ibv_query_qp(near.qp, &attr, IBV_QP_STATE, &init) == 0);
	EXPECT_EQ(attr.qp_state, IBV_QPS_SQD);
	return attr.sq_draining;
}

static void wait_drained(void)
{
	for (int i = 0; i < END_WAIT_MS && draining(); i++)
		usleep(1000);
	EXPECT(!draining());
}

static int post_send(uint64_t wr_id)
{
	struct ibv_send_wr wr = end_wr(IBV_WR_SEND, wr_id, NULL, 0);

	return end_post_send(&near, &wr);
}

static void idle(bool notify)
{
	struct end_event event;

	expect_case("idle queue, notification %d", notify);
	open_pair();
	EXPECT_EQ(to_sqd(notify), 0);
	wait_drained();
	EXPECT_EQ(end_event(&near, &event, notify ? END_WAIT_MS : END_QUIET_MS), notify);
	if (notify) {
		EXPECT_EQ(event.type, IBV_EVENT_SQ_DRAINED);
		EXPECT(event.own_qp);
		EXPECT(!end_event(&near, &event, END_QUIET_MS));
	}
	EXPECT_EQ(end_move(&near, IBV_QPS_RTS), 0);
	end_pair_close(&near, &far);
}

/* Requests that wait for a receive are started work: they drain when the receive comes. */
static void under_way(void)
{
	struct end_event event;
	struct ibv_wc wc;

	expect_case("started work drains");
	open_pair();
	EXPECT_EQ(post_send(1), 0);
	EXPECT_EQ(end_poll_none(&near, END_SEND_CQ), 0);
	EXPECT_EQ(to_sqd(true), 0);
	EXPECT(draining());
	expect_case("back to RTS while draining");
	EXPECT_REFUSED(end_move(&near, IBV_QPS_RTS), EINVAL);
	expect_case("work posted in SQD waits");
	EXPECT_EQ(post_send(2), 0);
	REQUIRE(end_post_recv(&far, 10, NULL, 0) == 0);
	REQUIRE(end_post_recv(&far, 11, NULL, 0) == 0);
	EXPECT_STATUS(end_poll_one(&near, END_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, 1);
	wait_drained();
	if (EXPECT(end_event(&near, &event, END_WAIT_MS)))
		EXPECT_EQ(event.type, IBV_EVENT_SQ_DRAINED);
	EXPECT_EQ(end_poll_none(&near, END_SEND_CQ), 0);
	EXPECT_STATUS(end_poll_one(&far, END_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(end_poll_none(&far, END_RECV_CQ), 0);
	expect_case("RTS starts it");
	EXPECT_EQ(end_move(&near, IBV_QPS_RTS), 0);
	EXPECT_STATUS(end_poll_one(&near, END_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, 2);
	EXPECT_STATUS(end_poll_one(&far, END_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, 11);
	EXPECT(!end_event(&near, &event, 0));
	end_pair_close(&near, &far);
}

/* The receive side of a queue pair in SQD goes on. */
static void receives(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = end_wr(IBV_WR_SEND, 1, NULL, 0);
	struct ibv_wc wc;

	expect_case("SQD serves requests");
	open_pair();
	EXPECT_EQ(to_sqd(false), 0);
	wait_drained();
	REQUIRE(end_post_recv(&near, 5, NULL, 0) == 0);
	REQUIRE(end_post_send(&far, &wr) == 0);
	EXPECT_STATUS(end_poll_one(&near, END_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_STATUS(end_poll_one(&far, END_SEND_CQ, &wc), IBV_WC_SUCCESS);
	sge = end_sge(&far, 0, 100);
	wr = end_wr(IBV_WR_RDMA_READ, 2, &sge, 1);
	wr.wr.rdma.remote_addr = near.info.addr;
	wr.wr.rdma.rkey = near.info.rkey;
	REQUIRE(end_post_send(&far, &wr) == 0);
	EXPECT_STATUS(end_poll_one(&far, END_SEND_CQ, &wc), IBV_WC_SUCCESS);
	expect_case("SQD to ERR flushes what waits");
	EXPECT_EQ(post_send(7), 0);
	EXPECT_EQ(end_move(&near, IBV_QPS_ERR), 0);
	EXPECT_STATUS(end_poll_one(&near, END_SEND_CQ, &wc), IBV_WC_WR_FLUSH_ERR);
	EXPECT_EQ(wc.wr_id, 7);
	end_pair_close(&near, &far);
}

/* A full queue of one-sided work drains in order. */
static void busy(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	expect_case("a queue full of WRITEs");
	open_pair();
	sge = end_sge(&near, 0, 30000);
	wr = end_wr(IBV_WR_RDMA_WRITE, 0, &sge, 1);
	wr.wr.rdma.remote_addr = far.info.addr;
	wr.wr.rdma.rkey = far.info.rkey;
	for (uint64_t i = 0; i < 60; i++) {
		wr.wr_id = i;
		REQUIRE(end_post_send(&near, &wr) == 0);
		if (i == 30)
			EXPECT_EQ(to_sqd(false), 0);
	}
	wait_drained();
	EXPECT_EQ(end_move(&near, IBV_QPS_RTS), 0);
	for (uint64_t i = 0; i < 60; i++) {
		EXPECT_STATUS(end_poll_one(&near, END_SEND_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_EQ(wc.wr_id, i);
	}
	end_pair_close(&near, &far);
}

int main(int argc, char **argv)
{
	place = end_main(argc, argv);
	idle(false);
	idle(true);
	under_way();
	receives();
	busy();
	return expect_done();
}

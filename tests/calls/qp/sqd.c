/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The drained send queue: started work finishes, later work waits, an event (IBA 10.3.1.4). */
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

static enum ep_place place;
static struct endpoint near, far;

static void open_pair(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	ep_pair(&near, &far, &config, &config, place);
}

static int to_sqd(bool notify)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_SQD,
		.en_sqd_async_notify = notify,
	};

	return ep_modify(&near, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
}

static bool draining(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(ibv_query_qp(near.qp, &attr, IBV_QP_STATE, &init) == 0);
	EXPECT_EQ(attr.qp_state, IBV_QPS_SQD);
	return attr.sq_draining;
}

static void wait_drained(void)
{
	for (int i = 0; i < EP_WAIT_MS && draining(); i++)
		usleep(1000);
	EXPECT(!draining());
}

static int post_send(uint64_t wr_id)
{
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, wr_id, NULL, 0);

	return ep_post_send(&near, &wr);
}

static void idle(bool notify)
{
	struct ep_event event;

	expect_case("idle queue, notification %d", notify);
	open_pair();
	EXPECT_EQ(to_sqd(notify), 0);
	wait_drained();
	EXPECT_EQ(ep_event(&near, &event, notify ? EP_WAIT_MS : EP_QUIET_MS), notify);
	if (notify) {
		EXPECT_EQ(event.type, IBV_EVENT_SQ_DRAINED);
		EXPECT(event.own_qp);
		EXPECT(!ep_event(&near, &event, EP_QUIET_MS));
	}
	EXPECT_EQ(ep_move(&near, IBV_QPS_RTS), 0);
	ep_pair_close(&near, &far);
}

/* Requests that wait for a receive are started work: they drain when the receive comes. */
static void under_way(void)
{
	struct ep_event event;
	struct ibv_wc wc;

	expect_case("started work drains");
	open_pair();
	EXPECT_EQ(post_send(1), 0);
	EXPECT_EQ(ep_poll_none(&near, EP_SEND_CQ), 0);
	EXPECT_EQ(to_sqd(true), 0);
	EXPECT(draining());
	expect_case("back to RTS while draining");
	EXPECT_REFUSED(ep_move(&near, IBV_QPS_RTS), EINVAL);
	expect_case("work posted in SQD waits");
	EXPECT_EQ(post_send(2), 0);
	CHECK(ep_post_recv(&far, 10, NULL, 0) == 0);
	CHECK(ep_post_recv(&far, 11, NULL, 0) == 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, 1);
	wait_drained();
	if (EXPECT(ep_event(&near, &event, EP_WAIT_MS)))
		EXPECT_EQ(event.type, IBV_EVENT_SQ_DRAINED);
	EXPECT_EQ(ep_poll_none(&near, EP_SEND_CQ), 0);
	EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(ep_poll_none(&far, EP_RECV_CQ), 0);
	expect_case("RTS starts it");
	EXPECT_EQ(ep_move(&near, IBV_QPS_RTS), 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, 2);
	EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, 11);
	EXPECT(!ep_event(&near, &event, 0));
	ep_pair_close(&near, &far);
}

/* The receive side of a queue pair in SQD goes on. */
static void receives(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, NULL, 0);
	struct ibv_wc wc;

	expect_case("SQD serves requests");
	open_pair();
	EXPECT_EQ(to_sqd(false), 0);
	wait_drained();
	CHECK(ep_post_recv(&near, 5, NULL, 0) == 0);
	CHECK(ep_post_send(&far, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_STATUS(ep_poll_one(&far, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	sge = ep_sge(&far, 0, 100);
	wr = ep_wr(IBV_WR_RDMA_READ, 2, &sge, 1);
	wr.wr.rdma.remote_addr = near.local.addr;
	wr.wr.rdma.rkey = near.local.rkey;
	CHECK(ep_post_send(&far, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&far, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	expect_case("SQD to ERR flushes what waits");
	EXPECT_EQ(post_send(7), 0);
	EXPECT_EQ(ep_move(&near, IBV_QPS_ERR), 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_WR_FLUSH_ERR);
	EXPECT_EQ(wc.wr_id, 7);
	ep_pair_close(&near, &far);
}

/* A full queue of one-sided work drains in order. */
static void busy(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	expect_case("a queue full of WRITEs");
	open_pair();
	sge = ep_sge(&near, 0, 30000);
	wr = ep_wr(IBV_WR_RDMA_WRITE, 0, &sge, 1);
	wr.wr.rdma.remote_addr = far.local.addr;
	wr.wr.rdma.rkey = far.local.rkey;
	for (uint64_t i = 0; i < 60; i++) {
		wr.wr_id = i;
		CHECK(ep_post_send(&near, &wr) == 0);
		if (i == 30)
			EXPECT_EQ(to_sqd(false), 0);
	}
	wait_drained();
	EXPECT_EQ(ep_move(&near, IBV_QPS_RTS), 0);
	for (uint64_t i = 0; i < 60; i++) {
		EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_EQ(wc.wr_id, i);
	}
	ep_pair_close(&near, &far);
}

static struct ibv_qp_attr attributes(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(ibv_query_qp(near.qp, &attr, IBV_QP_STATE, &init) == 0);
	return attr;
}

#define REFUSED(bit, ...)                                                        \
	do {                                                                     \
		struct ibv_qp_attr a = attributes(), b, c;                       \
                                                                                 \
		expect_case("refused in SQD: " #__VA_ARGS__);                    \
		__VA_ARGS__;                                                     \
		b = attributes();                                                \
		EXPECT_REFUSED(ep_modify(&near, &a, bit), EINVAL);               \
		c = attributes();                                                \
		EXPECT(c.timeout == b.timeout && c.retry_cnt == b.retry_cnt &&   \
		       c.rnr_retry == b.rnr_retry && c.port_num == b.port_num && \
		       c.max_rd_atomic == b.max_rd_atomic &&                     \
		       c.max_dest_rd_atomic == b.max_dest_rd_atomic &&           \
		       c.min_rnr_timer == b.min_rnr_timer &&                     \
		       c.qp_access_flags == b.qp_access_flags &&                 \
		       c.path_mig_state == b.path_mig_state &&                   \
		       c.ah_attr.is_global == b.ah_attr.is_global &&             \
		       c.ah_attr.grh.sgid_index == b.ah_attr.grh.sgid_index);    \
	} while (0)

/*
 * Here nearly everything of a connection may be changed, within the limits of the changes of state.
 */
static void refused_changes(void)
{
	REFUSED(IBV_QP_TIMEOUT, a.timeout = 32);
	REFUSED(IBV_QP_RETRY_CNT, a.retry_cnt = 8);
	REFUSED(IBV_QP_RNR_RETRY, a.rnr_retry = 8);
	REFUSED(IBV_QP_MAX_QP_RD_ATOMIC, a.max_rd_atomic = 129);
	REFUSED(IBV_QP_MAX_DEST_RD_ATOMIC, a.max_dest_rd_atomic = 129);
	REFUSED(IBV_QP_MIN_RNR_TIMER, a.min_rnr_timer = 32);
	REFUSED(IBV_QP_ACCESS_FLAGS, a.qp_access_flags = 1u << 31);
	REFUSED(IBV_QP_PORT, a.port_num = 2);
	REFUSED(IBV_QP_PKEY_INDEX, a.pkey_index = 1);
	REFUSED(IBV_QP_PATH_MIG_STATE, a.path_mig_state = (enum ibv_mig_state)3);
	REFUSED(IBV_QP_AV, a.ah_attr.is_global = 0);
	REFUSED(IBV_QP_AV, a.ah_attr.grh.sgid_index = 255);
	REFUSED(IBV_QP_AV | IBV_QP_TIMEOUT, a.ah_attr.port_num = 0; a.timeout = 3);
	REFUSED(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT, a.timeout = 3; a.retry_cnt = 8);
}

static int remote(struct endpoint *from, struct endpoint *to, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = ep_sge(from, 0, 64);
	struct ibv_send_wr wr = ep_wr(opcode, 3, &sge, 1);
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = to->local.addr;
	wr.wr.rdma.rkey = to->local.rkey;
	CHECK(ep_post_send(from, &wr) == 0);
	return ep_poll_one(from, EP_SEND_CQ, &wc);
}

/*
 * What was changed is what holds when the queue pair sends again; the connection is the same one.
 */
static void changes(void)
{
	struct ibv_qp_attr attr;
	struct ibv_wc wc;

	open_pair();
	CHECK(remote(&near, &far, IBV_WR_RDMA_WRITE) == IBV_WC_SUCCESS);
	CHECK(to_sqd(false) == 0);
	wait_drained();
	refused_changes();
	expect_case("changed in SQD: everything at once, to the same peer");
	attr = attributes();
	attr.timeout = 15;
	attr.retry_cnt = 3;
	attr.rnr_retry = 2;
	attr.max_rd_atomic = 1;
	attr.max_dest_rd_atomic = 1;
	attr.min_rnr_timer = 2;
	attr.ah_attr.grh.hop_limit = 9;
	EXPECT_EQ(ep_modify(&near, &attr,
			    IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
				    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ACCESS_FLAGS |
				    IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER),
		  0);
	attr = attributes();
	EXPECT(attr.timeout == 15 && attr.retry_cnt == 3 && attr.rnr_retry == 2 &&
	       attr.max_rd_atomic == 1 && attr.max_dest_rd_atomic == 1 && attr.min_rnr_timer == 2 &&
	       attr.ah_attr.grh.hop_limit == 9);
	EXPECT_EQ(ep_move(&near, IBV_QPS_RTS), 0);
	CHECK(ep_post_recv(&far, 1, NULL, 0) == 0);
	EXPECT_EQ(post_send(4), 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_STATUS(remote(&near, &far, IBV_WR_RDMA_READ), IBV_WC_SUCCESS);
	EXPECT_STATUS(remote(&near, &far, IBV_WR_RDMA_WRITE), IBV_WC_SUCCESS);
	EXPECT_STATUS(remote(&far, &near, IBV_WR_RDMA_READ), IBV_WC_SUCCESS);
	expect_case("changed in SQD: no READ is served any more");
	CHECK(to_sqd(false) == 0);
	wait_drained();
	attr.max_dest_rd_atomic = 0;
	EXPECT_EQ(ep_modify(&near, &attr, IBV_QP_MAX_DEST_RD_ATOMIC), 0);
	EXPECT_STATUS(remote(&far, &near, IBV_WR_RDMA_WRITE), IBV_WC_SUCCESS);
	EXPECT_STATUS(remote(&far, &near, IBV_WR_RDMA_READ), IBV_WC_REM_INV_REQ_ERR);
	ep_pair_close(&near, &far);
	expect_case("changed in SQD: no READ is sent any more");
	open_pair();
	CHECK(to_sqd(false) == 0);
	wait_drained();
	attr.max_rd_atomic = 0;
	EXPECT_EQ(ep_modify(&near, &attr, IBV_QP_MAX_QP_RD_ATOMIC), 0);
	EXPECT_EQ(ep_move(&near, IBV_QPS_RTS), 0);
	EXPECT_STATUS(remote(&near, &far, IBV_WR_RDMA_WRITE), IBV_WC_SUCCESS);
	EXPECT_STATUS(remote(&near, &far, IBV_WR_RDMA_READ), IBV_WC_LOC_QP_OP_ERR);
	ep_pair_close(&near, &far);
}

int main(int argc, char **argv)
{
	place = ep_main(argc, argv);
	idle(false);
	idle(true);
	under_way();
	receives();
	busy();
	changes();
	return expect_done();
}

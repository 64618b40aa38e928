/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Error, flush and reset: what completes, in which order, and what is forgotten (IBA 10.3.1). */
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

static enum ep_place place;

static int write_nothing(struct endpoint *ep, uint64_t wr_id, bool signalled)
{
	struct ibv_send_wr wr = ep_wr(IBV_WR_RDMA_WRITE, wr_id, NULL, 0);

	wr.send_flags = signalled ? IBV_SEND_SIGNALED : 0;
	return ep_post_send(ep, &wr);
}

/* Work done, then the failing request, then all behind it, the unsignalled too, once each. */
static void failing_in_the_middle(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_sge bad = {.addr = 1, .length = 8, .lkey = 0xdeadbeef};
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 3, &bad, 1);
	struct ibv_wc wc;
	struct endpoint near, far;

	expect_case("failing in the middle of a list");
	ep_pair(&near, &far, &config, &config, place);
	for (uint64_t i = 0; i < 5; i++) {
		CHECK(ep_post_recv(&near, 50 + i, NULL, 0) == 0);
		CHECK(ep_post_recv(&far, 70 + i, NULL, 0) == 0);
	}
	wr.send_flags = 0;
	{
		/* One call, so that all are posted before the first can fail. */
		struct ibv_send_wr list[8], *bad_wr = NULL;

		for (int i = 0; i < 8; i++) {
			list[i] = i == 3 ? wr : ep_wr(IBV_WR_RDMA_WRITE, (uint64_t)i, NULL, 0);
			list[i].send_flags = i < 3 && i != 1 ? IBV_SEND_SIGNALED : 0;
			list[i].next = i < 7 ? &list[i + 1] : NULL;
		}
		CHECK(ibv_post_send(near.qp, list, &bad_wr) == 0);
	}
	/* 0 and 2 signalled, 1 not; 3 fails; 4 to 7 flush. */
	{
		static const uint64_t ids[] = {0, 2, 3, 4, 5, 6, 7};

		for (int i = 0; i < 7; i++) {
			EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc),
				      i < 2    ? IBV_WC_SUCCESS
				      : i == 2 ? IBV_WC_LOC_PROT_ERR
					       : IBV_WC_WR_FLUSH_ERR);
			EXPECT_EQ(wc.wr_id, ids[i]);
			EXPECT_EQ(wc.vendor_err != 0, i >= 2);
		}
	}
	EXPECT_EQ(ep_poll_none(&near, EP_SEND_CQ), 0);
	expect_case("the own receives flush in order");
	for (uint64_t i = 0; i < 5; i++) {
		EXPECT_STATUS(ep_poll_one(&near, EP_RECV_CQ, &wc), IBV_WC_WR_FLUSH_ERR);
		EXPECT_EQ(wc.wr_id, 50 + i);
		EXPECT(wc.vendor_err != 0);
	}
	expect_case("the peer hears nothing of a local error");
	EXPECT_EQ(ep_state(&far), IBV_QPS_RTS);
	EXPECT_EQ(ep_poll_none(&far, EP_RECV_CQ), 0);
	ep_pair_close(&near, &far);
}

static void by_modify(enum ibv_qp_type type)
{
	struct ep_config config = ep_defaults(type);
	struct ibv_wc wc;
	struct endpoint ep;

	expect_case("type %d: receives flush by modify, in order", (int)type);
	ep_open(&ep, &config, EP_HERE);
	ep_link(&ep, &ep);
	for (uint64_t i = 0; i < 20; i++)
		CHECK(ep_post_recv(&ep, i, NULL, 0) == 0);
	CHECK(ep_move(&ep, IBV_QPS_ERR) == 0);
	for (uint64_t i = 0; i < 20; i++) {
		EXPECT_STATUS(ep_poll_one(&ep, EP_RECV_CQ, &wc), IBV_WC_WR_FLUSH_ERR);
		EXPECT_EQ(wc.wr_id, i);
		EXPECT_EQ(wc.qp_num, ep.local.qpn);
	}
	EXPECT_EQ(ep_poll_none(&ep, EP_RECV_CQ), 0);
	ep_close(&ep);
}

/* Requests that wait for an answer flush too, exactly once. */
static void while_waiting(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 0, NULL, 0);
	struct ibv_wc wc;
	struct endpoint near, far;

	expect_case("requests under way flush by modify");
	ep_pair(&near, &far, &config, &config, place); /* rnr_retry 7, no receive posted */
	for (uint64_t i = 0; i < 10; i++) {
		wr.wr_id = i;
		wr.send_flags = i & 1 ? IBV_SEND_SIGNALED : 0;
		CHECK(ep_post_send(&near, &wr) == 0);
	}
	EXPECT_EQ(ep_poll_none(&near, EP_SEND_CQ), 0);
	CHECK(ep_move(&near, IBV_QPS_ERR) == 0);
	for (uint64_t i = 0; i < 10; i++) {
		EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_WR_FLUSH_ERR);
		EXPECT_EQ(wc.wr_id, i);
	}
	EXPECT_EQ(ep_poll_none(&near, EP_SEND_CQ), 0);
	ep_pair_close(&near, &far);
}

/*
 * A request whose acknowledgement has arrived, and a message that has, are not flushed, although the
 * program has not polled since. Many, since the progress thread may be first.
 */
static void arrived(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct endpoint near, far;
	struct ibv_wc wc;

	expect_case("what has arrived is not flushed");
	for (int i = 0; i < 20; i++) {
		ep_pair(&near, &far, &config, &config, place);
		CHECK(ep_recv(&near, 1, 0, 8) == 0);
		CHECK(ep_recv(&far, 2, 0, 8) == 0);
		for (int polls = 0; polls < 100; polls++)
			EXPECT_EQ(ibv_poll_cq(near.cq[EP_SEND_CQ], 1, &wc), 0);
		CHECK(ep_send(&near, 3, 0, 8, IBV_SEND_SIGNALED) == 0);
		EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
		CHECK(ep_send(&far, 4, 0, 8, IBV_SEND_SIGNALED) == 0);
		CHECK(ep_move(&near, IBV_QPS_ERR) == 0);
		EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_STATUS(ep_poll_one(&near, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_STATUS(ep_poll_one(&far, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
		ep_pair_close(&near, &far);
	}
}

/* RESET empties queues without a completion, removes unpolled ones, and forgets everything. */
static void reset(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, NULL, 0);
	struct ibv_wc wc;
	struct endpoint near, far;

	ep_pair(&near, &far, &config, &config, place);
	expect_case("RESET with work posted");
	for (uint64_t i = 0; i < 10; i++)
		CHECK(ep_post_recv(&near, i, NULL, 0) == 0);
	CHECK(ep_move(&near, IBV_QPS_RESET) == 0);
	EXPECT_EQ(ep_poll_none(&near, EP_RECV_CQ), 0);

	expect_case("RESET removes unpolled completions");
	CHECK(ep_bring_to(&near, &far.local, IBV_QPS_INIT) == 0);
	for (uint64_t i = 0; i < 10; i++)
		CHECK(ep_post_recv(&near, i, NULL, 0) == 0);
	CHECK(ep_move(&near, IBV_QPS_ERR) == 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_RECV_CQ, &wc), IBV_WC_WR_FLUSH_ERR);
	CHECK(ep_move(&near, IBV_QPS_RESET) == 0);
	EXPECT_EQ(ep_poll_none(&near, EP_RECV_CQ), 0);

	expect_case("after RESET it is like a new one");
	CHECK(ep_move(&far, IBV_QPS_RESET) == 0);
	ep_link(&near, &far);
	for (uint64_t round = 0; round < 3; round++) {
		CHECK(ep_post_recv(&far, round, NULL, 0) == 0);
		CHECK(ep_post_send(&near, &wr) == 0);
		EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_EQ(wc.wr_id, round);
	}
	expect_case("from an error through RESET back to work, ten times");
	for (int i = 0; i < 10; i++) {
		CHECK(ep_move(&near, IBV_QPS_ERR) == 0);
		CHECK(ep_move(&far, IBV_QPS_ERR) == 0);
		ep_relink(&near, &far);
		CHECK(ep_post_recv(&far, 9, NULL, 0) == 0);
		CHECK(ep_post_send(&near, &wr) == 0);
		EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_EQ(write_nothing(&near, 5, true), 0);
		EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	}
	ep_pair_close(&near, &far);
}

/* Destroy takes the queue pair's unpolled completions along; others' stay. */
static void destroy(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR},
			   to_init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp *qp[2];
	struct ibv_wc wc;
	struct endpoint ep;

	expect_case("destroy removes only its own completions");
	ep_open(&ep, &config, EP_HERE);
	init.send_cq = init.recv_cq = ep.cq[EP_RECV_CQ];
	for (int i = 0; i < 2; i++) {
		qp[i] = ibv_create_qp(ep.pd, &init);
		CHECK(qp[i]);
		CHECK(ibv_modify_qp(qp[i], &to_init,
				    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					    IBV_QP_ACCESS_FLAGS) == 0);
	}
	for (int k = 0; k < 8; k++)
		for (int i = 0; i < 2; i++) {
			struct ibv_recv_wr recv = {.wr_id = (uint64_t)(10 * i + k)}, *bad;

			CHECK(ibv_post_recv(qp[i], &recv, &bad) == 0);
		}
	for (int i = 0; i < 2; i++)
		CHECK(ibv_modify_qp(qp[i], &err, IBV_QP_STATE) == 0);
	usleep(20000);
	EXPECT_EQ(ibv_destroy_qp(qp[0]), 0);
	for (uint64_t k = 0; k < 8; k++) {
		EXPECT_STATUS(ep_poll_one(&ep, EP_RECV_CQ, &wc), IBV_WC_WR_FLUSH_ERR);
		EXPECT_EQ(wc.wr_id, 10 + k);
		EXPECT_EQ(wc.qp_num, qp[1]->qp_num);
	}
	EXPECT_EQ(ep_poll_none(&ep, EP_RECV_CQ), 0);
	EXPECT_EQ(ibv_destroy_qp(qp[1]), 0);
	ep_close(&ep);
}

/* Destroying an end in the middle of traffic leaves the other to its retries, nothing worse. */
static void destroy_in_traffic(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_wc wc;
	struct endpoint near, far;
	int last = IBV_WC_SUCCESS, posted = 0;

	expect_case("destroy in the middle of traffic");
	config.timeout = 10;
	config.retry_cnt = 2;
	ep_pair(&near, &far, &config, &config, place);
	sge = ep_sge(&near, 0, 32768);
	wr = ep_wr(IBV_WR_RDMA_WRITE, 1, &sge, 1);
	wr.wr.rdma.remote_addr = far.local.addr + 32768;
	wr.wr.rdma.rkey = far.local.rkey;
	while (posted < 50) {
		CHECK(ep_post_send(&near, &wr) == 0);
		posted++;
	}
	ep_close(&far);
	while (posted < 60) {
		CHECK(ep_post_send(&near, &wr) == 0);
		posted++;
	}
	for (int i = 0; i < posted; i++) {
		int status = ep_poll_one(&near, EP_SEND_CQ, &wc);

		if (last != IBV_WC_SUCCESS)
			EXPECT_STATUS(status, IBV_WC_WR_FLUSH_ERR);
		else if (status != IBV_WC_SUCCESS)
			EXPECT_STATUS(status, IBV_WC_RETRY_EXC_ERR);
		last = status;
	}
	EXPECT(last != IBV_WC_SUCCESS);
	ep_close(&near);
}

int main(int argc, char **argv)
{
	place = ep_main(argc, argv);
	failing_in_the_middle();
	by_modify(IBV_QPT_RC);
	by_modify(IBV_QPT_UC);
	by_modify(IBV_QPT_UD);
	while_waiting();
	arrived();
	reset();
	destroy();
	destroy_in_traffic();
	return expect_done();
}

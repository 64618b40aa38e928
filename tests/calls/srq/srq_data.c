/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Traffic over a shared receive queue: order, limit event, keys, errors, LAST_WQE_REACHED. */
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

static enum ep_place place;
static struct endpoint near, far;

static struct ep_config with_srq(enum ibv_qp_type type)
{
	struct ep_config config = ep_defaults(type);

	config.srq_wr = 32;
	return config;
}

static void open_pair(enum ibv_qp_type type)
{
	struct ep_config plain = ep_defaults(type), shared = with_srq(type);

	ep_pair(&near, &far, &plain, &shared, EP_HERE);
}

static void send_one(uint64_t wr_id)
{
	struct ibv_sge sge = ep_sge(&near, 0, 64);
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, wr_id, &sge, 1);
	struct ibv_wc wc;

	CHECK(ep_post_send(&near, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
}

static void recv_one(uint64_t wr_id)
{
	struct ibv_wc wc;

	EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, wr_id);
	EXPECT_EQ(wc.qp_num, far.local.qpn);
}

/* The far end may be another process here; everything else looks into its SRQ. */
static void traffic(enum ibv_qp_type type)
{
	struct ep_config plain = ep_defaults(type), shared = with_srq(type);
	struct ibv_sge into, sge;
	struct ibv_ah *ah;
	struct ibv_wc wc;

	expect_case("type %d: receives are taken in order", (int)type);
	ep_pair(&near, &far, &plain, &shared, place);
	ah = ep_ah(&near, &far.local);
	into = ep_sge(&far, 0, 4096);
	for (uint64_t i = 0; i < 10; i++)
		CHECK(ep_post_recv(&far, i, &into, 1) == 0);
	for (uint64_t i = 0; i < 10; i++) {
		struct ibv_send_wr wr;

		sge = ep_sge(&near, 0, 100);
		wr = ep_wr(IBV_WR_SEND, i, &sge, 1);
		if (type == IBV_QPT_UD) {
			wr.wr.ud.ah = ah;
			wr.wr.ud.remote_qpn = far.local.qpn;
			wr.wr.ud.remote_qkey = plain.qkey;
		}
		CHECK(ep_post_send(&near, &wr) == 0);
		EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
		recv_one(i);
	}
	EXPECT_EQ(ibv_destroy_ah(ah), 0);
	ep_pair_close(&near, &far);
}

/* Fires once, when fewer than the limit are left; at equal it stays silent. */
static void limit(void)
{
	struct ibv_srq_attr attr = {.srq_limit = 5}, shown;
	struct ep_event event;

	expect_case("limit");
	open_pair(IBV_QPT_RC);
	for (uint64_t i = 0; i < 8; i++) {
		struct ibv_sge into = ep_sge(&far, 0, 4096);

		CHECK(ep_post_recv(&far, i, &into, 1) == 0);
	}
	CHECK(ibv_modify_srq(far.srq, &attr, IBV_SRQ_LIMIT) == 0);
	for (uint64_t i = 0; i < 3; i++) {
		send_one(i);
		recv_one(i);
	}
	expect_case("limit: five left, none below");
	EXPECT(!ep_event(&far, &event, EP_QUIET_MS));
	expect_case("limit: four left");
	send_one(3);
	recv_one(3);
	if (EXPECT(ep_event(&far, &event, EP_WAIT_MS))) {
		EXPECT_EQ(event.type, IBV_EVENT_SRQ_LIMIT_REACHED);
		EXPECT(event.own_srq);
	}
	EXPECT_EQ(ibv_query_srq(far.srq, &shown), 0);
	EXPECT_EQ(shown.srq_limit, 0);
	expect_case("limit: once");
	send_one(4);
	recv_one(4);
	EXPECT(!ep_event(&far, &event, EP_QUIET_MS));
	expect_case("limit: already below when armed");
	CHECK(ibv_modify_srq(far.srq, &attr, IBV_SRQ_LIMIT) == 0);
	if (EXPECT(ep_event(&far, &event, EP_WAIT_MS)))
		EXPECT_EQ(event.type, IBV_EVENT_SRQ_LIMIT_REACHED);
	ep_pair_close(&near, &far);
}

/* An empty SRQ: RC is told to wait and gets the receive that comes later. */
static void empty(void)
{
	struct ibv_sge sge, into;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	expect_case("empty, filled later");
	open_pair(IBV_QPT_RC);
	sge = ep_sge(&near, 0, 5000);
	wr = ep_wr(IBV_WR_SEND, 1, &sge, 1);
	CHECK(ep_post_send(&near, &wr) == 0);
	EXPECT_EQ(ep_poll_none(&near, EP_SEND_CQ), 0);
	into = ep_sge(&far, 0, 8192);
	CHECK(ep_post_recv(&far, 6, &into, 1) == 0);
	CHECK(ep_post_recv(&far, 7, &into, 1) == 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	recv_one(6);
	EXPECT_EQ(ep_poll_none(&far, EP_RECV_CQ), 0); /* no second one was taken */
	ep_pair_close(&near, &far);
}

/* The SRQ's protection domain judges receive keys, whatever the queue pair's. */
static void other_domain(void)
{
	struct ep_config plain = ep_defaults(IBV_QPT_RC), shared = with_srq(IBV_QPT_RC);
	struct ep_key key;
	struct ibv_sge into;
	struct ibv_wc wc;

	expect_case("SRQ of another PD, its own key");
	shared.srq_other_pd = 1;
	ep_pair(&near, &far, &plain, &shared, EP_HERE);
	CHECK(ep_reg(&far, 0, 8192, IBV_ACCESS_LOCAL_WRITE, true, &key) == 0);
	into = ep_sge(&far, 0, 4096);
	into.lkey = key.lkey;
	CHECK(ep_post_recv(&far, 1, &into, 1) == 0);
	send_one(1);
	recv_one(1);
	expect_case("SRQ of another PD, the queue pair's key");
	into.lkey = far.lkey;
	CHECK(ep_post_recv(&far, 2, &into, 1) == 0);
	{
		struct ibv_sge sge = ep_sge(&near, 0, 64);
		struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 2, &sge, 1);

		CHECK(ep_post_send(&near, &wr) == 0);
		EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_REM_OP_ERR);
		EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_LOC_PROT_ERR);
		EXPECT_EQ(wc.wr_id, 2);
	}
	ep_pair_close(&near, &far);
}

/* ERR does not flush what the SRQ holds; LAST_WQE_REACHED says that no more of it is taken. */
static void last_wqe(void)
{
	struct ep_event event;
	struct ibv_wc wc;

	expect_case("LAST_WQE_REACHED by modify");
	open_pair(IBV_QPT_RC);
	for (uint64_t i = 0; i < 4; i++) {
		struct ibv_sge into = ep_sge(&far, 0, 4096);

		CHECK(ep_post_recv(&far, i, &into, 1) == 0);
	}
	send_one(1);
	CHECK(ep_move(&far, IBV_QPS_ERR) == 0);
	if (EXPECT(ep_event(&far, &event, EP_WAIT_MS))) {
		EXPECT_EQ(event.type, IBV_EVENT_QP_LAST_WQE_REACHED);
		EXPECT(event.own_qp);
	}
	EXPECT(!ep_event(&far, &event, EP_QUIET_MS));
	recv_one(0); /* the last completion is there before the event */
	EXPECT_EQ(ep_poll_none(&far, EP_RECV_CQ), 0);

	expect_case("the other receives serve the next queue pair");
	ep_relink(&near, &far);
	send_one(2);
	recv_one(1);

	expect_case("LAST_WQE_REACHED by a remote error");
	{
		struct ibv_sge sge = ep_sge(&near, 0, 8);
		struct ibv_send_wr wr = ep_wr(IBV_WR_RDMA_WRITE, 3, &sge, 1);
		bool access = false, last = false;

		wr.wr.rdma.rkey = 0xdeadbeef;
		CHECK(ep_post_send(&near, &wr) == 0);
		EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_REM_ACCESS_ERR);
		for (int i = 0; i < 2 && ep_event(&far, &event, EP_WAIT_MS); i++) {
			access |= event.type == IBV_EVENT_QP_ACCESS_ERR;
			last |= event.type == IBV_EVENT_QP_LAST_WQE_REACHED;
		}
		EXPECT(access);
		EXPECT(last);
		EXPECT_EQ(ep_poll_none(&far, EP_RECV_CQ), 0);
	}
	ep_pair_close(&near, &far);
}

/* Several queue pairs share one queue; each completion names its own queue pair. */
static void shared_by_many(void)
{
	enum { PAIRS = 4 };
	struct ep_config plain = ep_defaults(IBV_QPT_RC), shared = with_srq(IBV_QPT_RC);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_send_sge = 1},
	};
	struct endpoint client[PAIRS], base;
	struct ibv_qp *first, *qp[PAIRS];
	int taken[PAIRS] = {0};

	expect_case("four queue pairs on one SRQ");
	ep_open(&base, &shared, EP_HERE);
	first = base.qp;
	init.send_cq = base.cq[EP_SEND_CQ];
	init.recv_cq = base.cq[EP_RECV_CQ];
	init.srq = base.srq;
	for (int i = 0; i < PAIRS; i++) {
		ep_open(&client[i], &plain, EP_HERE);
		qp[i] = ibv_create_qp(base.pd, &init);
		CHECK(qp[i]);
		base.qp = qp[i];
		base.local.qpn = qp[i]->qp_num;
		ep_link(&client[i], &base);
	}
	for (uint64_t i = 0; i < 4 * PAIRS; i++)
		CHECK(ep_post_recv(&base, i, NULL, 0) == 0);
	for (int i = 0; i < 4 * PAIRS; i++) {
		struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, NULL, 0);

		CHECK(ep_post_send(&client[i % PAIRS], &wr) == 0);
	}
	for (uint64_t i = 0; i < 4 * PAIRS; i++) {
		struct ibv_wc wc;

		EXPECT_STATUS(ep_poll_one(&base, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT(wc.wr_id < 4 * PAIRS);
		for (int k = 0; k < PAIRS; k++)
			taken[k] += wc.qp_num == qp[k]->qp_num;
	}
	for (int i = 0; i < PAIRS; i++) {
		EXPECT_EQ(taken[i], 4);
		ep_close(&client[i]);
		EXPECT_EQ(ibv_destroy_qp(qp[i]), 0);
	}
	base.qp = first;
	ep_close(&base);
}

int main(int argc, char **argv)
{
	place = ep_main(argc, argv);
	traffic(IBV_QPT_RC);
	traffic(IBV_QPT_UD);
	limit();
	empty();
	other_domain();
	last_wqe();
	shared_by_many();
	return expect_done();
}

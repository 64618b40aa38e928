/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What posting answers in each state of the queue pair, and what a peer in each state answers. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

struct expectation {
	enum ibv_qp_state state;
	const char *name;
	int recv, send;
	bool recv_flushed, send_flushed, send_waits;
};

/* IBA 10.3 and 10.8. */
static const struct expectation table[] = {
	{IBV_QPS_RESET, "RESET", EINVAL, EINVAL, false, false, false},
	{IBV_QPS_INIT, "INIT", 0, EINVAL, false, false, false},
	{IBV_QPS_RTR, "RTR", 0, EINVAL, false, false, false},
	{IBV_QPS_RTS, "RTS", 0, 0, false, false, false},
	{IBV_QPS_SQD, "SQD", 0, 0, false, false, true},
	{IBV_QPS_ERR, "ERR", 0, 0, true, true, false},
};

/* A request that this type can send; its destination does not matter. */
static struct ibv_send_wr request(struct endpoint *ep, struct ibv_ah *ah, uint64_t wr_id)
{
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, wr_id, NULL, 0);

	if (ep->config.type == IBV_QPT_UD) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = ep->local.qpn;
		wr.wr.ud.remote_qkey = ep->config.qkey;
	}
	return wr;
}

static void row(enum ibv_qp_type type, const struct expectation *row)
{
	struct ep_config config = ep_defaults(type);
	struct ibv_send_wr wr, *bad_send = NULL;
	struct ibv_recv_wr recv = {.wr_id = 5}, *bad_recv = NULL;
	struct ibv_wc wc;
	struct ibv_ah *ah;
	struct endpoint ep;

	expect_case("type %d in %s", (int)type, row->name);
	ep_open(&ep, &config, EP_HERE);
	ah = ep_ah(&ep, &ep.local);
	if (row->state != IBV_QPS_RESET)
		CHECK(ep_bring_to(&ep, &ep.local, row->state) == 0);
	EXPECT_EQ(ibv_post_recv(ep.qp, &recv, &bad_recv), row->recv);
	if (row->recv)
		EXPECT(bad_recv == &recv);
	if (row->recv_flushed) {
		EXPECT_STATUS(ep_poll_one(&ep, EP_RECV_CQ, &wc), IBV_WC_WR_FLUSH_ERR);
		EXPECT_EQ(wc.wr_id, 5);
		EXPECT_EQ(wc.qp_num, ep.local.qpn);
	}
	wr = request(&ep, ah, 6);
	wr.send_flags = row->send_flushed ? 0 : IBV_SEND_SIGNALED; /* a flush is told anyway */
	EXPECT_EQ(ibv_post_send(ep.qp, &wr, &bad_send), row->send);
	if (row->send)
		EXPECT(bad_send == &wr);
	if (row->send_waits)
		EXPECT_EQ(ep_poll_none(&ep, EP_SEND_CQ), 0);
	else if (row->send_flushed)
		EXPECT_STATUS(ep_poll_one(&ep, EP_SEND_CQ, &wc), IBV_WC_WR_FLUSH_ERR);
	else if (!row->send)
		EXPECT_STATUS(ep_poll_one(&ep, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(ep_state(&ep), row->state);
	EXPECT_EQ(ep_poll_none(&ep, EP_SEND_CQ), 0);
	EXPECT_EQ(ibv_destroy_ah(ah), 0);
	ep_close(&ep);
}

/* UC and UD after a failing send: SQE flushes sends, goes on receiving, and modify mends it. */
static void send_queue_error(enum ibv_qp_type type)
{
	struct ep_config config = ep_defaults(type);
	struct ibv_sge bad = {.addr = 1, .length = 8, .lkey = 0xdeadbeef}, into;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
	struct ibv_ah *near_ah, *far_ah;
	struct ibv_send_wr wr;
	struct endpoint near, far;
	struct ibv_wc wc;

	expect_case("type %d in SQE: sends flush", (int)type);
	ep_pair(&near, &far, &config, &config, EP_HERE);
	near_ah = ep_ah(&near, &far.local);
	far_ah = ep_ah(&far, &near.local);
	wr = request(&near, near_ah, 1);
	wr.sg_list = &bad;
	wr.num_sge = 1;
	wr.send_flags = 0;
	EXPECT_EQ(ep_post_send(&near, &wr), 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_LOC_PROT_ERR);
	EXPECT_EQ(wc.wr_id, 1);
	EXPECT_EQ(ep_state(&near), IBV_QPS_SQE);
	wr = request(&near, near_ah, 2);
	EXPECT_EQ(ep_post_send(&near, &wr), 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_WR_FLUSH_ERR);
	EXPECT_EQ(wc.wr_id, 2);

	expect_case("type %d in SQE: receives go on", (int)type);
	into = ep_sge(&near, 0, 256);
	EXPECT_EQ(ep_post_recv(&near, 3, &into, 1), 0);
	wr = request(&far, far_ah, 4);
	wr.wr.ud.remote_qpn = near.local.qpn;
	EXPECT_EQ(ep_post_send(&far, &wr), 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, 3);

	expect_case("type %d from SQE to RTS", (int)type);
	EXPECT_EQ(ep_modify(&near, &attr, IBV_QP_STATE), 0);
	into = ep_sge(&far, 0, 256);
	EXPECT_EQ(ep_post_recv(&far, 7, &into, 1), 0);
	wr = request(&near, near_ah, 8);
	wr.wr.ud.remote_qpn = far.local.qpn;
	EXPECT_EQ(ep_post_send(&near, &wr), 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, 7);
	EXPECT_EQ(ibv_destroy_ah(near_ah), 0);
	EXPECT_EQ(ibv_destroy_ah(far_ah), 0);
	ep_pair_close(&near, &far);
}

/* A peer that is not ready answers nothing: the requester's retries run out. */
static void peer_in(enum ibv_qp_state state, const char *name)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct endpoint near, far;
	struct ep_event event;
	struct ibv_wc wc;

	expect_case("peer in %s", name);
	config.timeout = 10; /* 4 ms */
	config.retry_cnt = 2;
	ep_open(&near, &config, EP_HERE);
	ep_open(&far, &config, EP_HERE);
	if (state != IBV_QPS_RESET)
		CHECK(ep_bring_to(&far, &near.local, state) == 0);
	CHECK(ep_bring_to(&near, &far.local, IBV_QPS_RTS) == 0);
	if (state == IBV_QPS_INIT)
		CHECK(ep_post_recv(&far, 1, NULL, 0) == 0);
	sge = ep_sge(&near, 0, 8);
	wr = ep_wr(IBV_WR_RDMA_WRITE, 1, &sge, 1);
	wr.send_flags = 0;
	wr.wr.rdma.remote_addr = far.local.addr;
	wr.wr.rdma.rkey = far.local.rkey;
	CHECK(ep_post_send(&near, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_RETRY_EXC_ERR);
	EXPECT_EQ(ep_state(&near), IBV_QPS_ERR);
	EXPECT_EQ(ep_state(&far), state);
	EXPECT_EQ(ep_poll_none(&far, EP_RECV_CQ), 0);
	EXPECT(!ep_event(&far, &event, 0));
	ep_pair_close(&near, &far);
}

/* A request that came a little too early is not lost: the requester tries again. */
static void peer_ready_later(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, NULL, 0);
	struct endpoint near, far;
	struct ibv_wc wc;

	expect_case("peer ready a little later");
	config.timeout = 16; /* 268 ms, eight tries */
	ep_open(&near, &config, EP_HERE);
	ep_open(&far, &config, EP_HERE);
	CHECK(ep_bring_to(&far, &near.local, IBV_QPS_INIT) == 0);
	CHECK(ep_bring_to(&near, &far.local, IBV_QPS_RTS) == 0);
	CHECK(ep_post_recv(&far, 5, NULL, 0) == 0);
	CHECK(ep_post_send(&near, &wr) == 0);
	EXPECT_EQ(ep_poll_none(&near, EP_SEND_CQ), 0);
	CHECK(ep_move(&far, IBV_QPS_RESET) == 0);
	CHECK(ep_bring_to(&far, &near.local, IBV_QPS_RTR) == 0);
	CHECK(ep_post_recv(&far, 6, NULL, 0) == 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, 6); /* RESET forgot the other one */
	ep_pair_close(&near, &far);
}

/* RTR serves requests that read and write memory although it may not send itself. */
static void rtr_serves(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
				   .timeout = 14,
				   .retry_cnt = 7,
				   .rnr_retry = 7,
				   .max_rd_atomic = 1,
				   .sq_psn = config.psn};
	struct endpoint near, far;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;

	expect_case("RTR serves READ");
	ep_open(&near, &config, EP_HERE);
	ep_open(&far, &config, EP_HERE);
	CHECK(ep_bring_to(&far, &near.local, IBV_QPS_RTR) == 0);
	CHECK(ep_bring_to(&near, &far.local, IBV_QPS_RTS) == 0);
	ep_fill(&far, 0, 0x5a, 4096);
	for (int i = 0; i < 20; i++) {
		sge = ep_sge(&near, 0, 4096);
		wr = ep_wr(IBV_WR_RDMA_READ, 1, &sge, 1);
		wr.wr.rdma.remote_addr = far.local.addr;
		wr.wr.rdma.rkey = far.local.rkey;
		ep_fill(&near, 0, 0, 4096);
		CHECK(ep_post_send(&near, &wr) == 0);
		/* The move to RTS in the middle does not disturb the responder's half. */
		if (i == 10)
			EXPECT_EQ(ep_modify(&far, &attr,
					    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
						    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
						    IBV_QP_MAX_QP_RD_ATOMIC),
				  0);
		EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT(ep_is_filled(&near, 0, 0x5a, 4096));
	}
	ep_pair_close(&near, &far);
}

/* Posts from one thread while another moves the queue pair: SUCCESS, then only FLUSH. */
static void *mover(void *arg)
{
	struct endpoint *ep = arg;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	usleep(2000);
	return (void *)(intptr_t)ibv_modify_qp(ep->qp, &attr, IBV_QP_STATE);
}

static void moved_while_posting(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_send_wr wr;
	struct endpoint near, far;
	pthread_t thread;
	void *failed;
	int flushed = 0, posted = 0, polled = 0;

	expect_case("to ERR while another thread posts");
	ep_pair(&near, &far, &config, &config, EP_HERE);
	wr = ep_wr(IBV_WR_RDMA_WRITE, 0, NULL, 0);
	CHECK(pthread_create(&thread, NULL, mover, &near) == 0);
	while (flushed < 100) {
		struct ibv_wc wc;

		wr.wr_id = (uint64_t)posted;
		if (posted - polled < 32) {
			int rc = ep_post_send(&near, &wr);

			if (!EXPECT_EQ(rc, 0))
				break;
			posted++;
		}
		if (ep_poll(&near, EP_SEND_CQ, &wc, 1, 0) != 1)
			continue;
		EXPECT_EQ(wc.wr_id, polled);
		polled++;
		if (wc.status == IBV_WC_WR_FLUSH_ERR)
			flushed++;
		else if (!EXPECT_STATUS(wc.status, IBV_WC_SUCCESS) ||
			 !EXPECT_SAY(!flushed, "a success after a flush"))
			break;
	}
	CHECK(pthread_join(thread, &failed) == 0);
	EXPECT(failed == NULL);
	expect_case("ERR goes on flushing a second later");
	usleep(1000000);
	{
		struct ibv_wc wc;

		while (polled < posted && ep_poll(&near, EP_SEND_CQ, &wc, 1, 1000) == 1)
			polled++;
		EXPECT_EQ(polled, posted);
		EXPECT_EQ(ep_post_send(&near, &wr), 0);
		EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_WR_FLUSH_ERR);
	}
	ep_pair_close(&near, &far);
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)
		for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
			row(types[t], &table[i]);
	send_queue_error(IBV_QPT_UC);
	send_queue_error(IBV_QPT_UD);
	peer_in(IBV_QPS_RESET, "RESET");
	peer_in(IBV_QPS_INIT, "INIT");
	peer_in(IBV_QPS_ERR, "ERR");
	peer_ready_later();
	rtr_serves();
	moved_while_posting();
	return expect_done();
}

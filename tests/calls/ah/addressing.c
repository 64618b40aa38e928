/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Requests that reach no queue pair, or one that must not take them (IBA 9.6, 9.7.5.2). */
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

static enum ep_place place;

/* A connection whose retries run out soon: 4 ms, two more tries. */
static struct ep_config impatient(enum ibv_qp_type type)
{
	struct ep_config config = ep_defaults(type);

	config.timeout = 10;
	config.retry_cnt = 2;
	return config;
}

static void expect_retry_exceeded(struct endpoint *near)
{
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, NULL, 0);
	struct ibv_wc wc;

	wr.send_flags = 0;
	CHECK(ep_post_send(near, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(near, EP_SEND_CQ, &wc), IBV_WC_RETRY_EXC_ERR);
	EXPECT_EQ(wc.wr_id, 1);
	EXPECT(wc.vendor_err != 0);
	EXPECT_EQ(ep_state(near), IBV_QPS_ERR);
}

/* A number that no process has; if the far end is another process, tried there as well. */
static void nobody(void)
{
	struct ep_config config = impatient(IBV_QPT_RC);
	struct endpoint near, far;
	struct peer info;

	expect_case("no such queue pair");
	ep_open(&near, &config, EP_HERE);
	ep_open(&far, &config, place);
	info = far.local;
	info.qpn ^= 0x800000;
	CHECK(ep_bring_to(&near, &info, IBV_QPS_RTS) == 0);
	expect_retry_exceeded(&near);
	ep_pair_close(&near, &far);
}

/* The far queue pair goes after the connection stood. */
static void gone(void)
{
	struct ep_config config = impatient(IBV_QPT_RC);
	struct ibv_send_wr wr = ep_wr(IBV_WR_RDMA_WRITE, 1, NULL, 0);
	struct endpoint near, far;
	struct ibv_wc wc;

	expect_case("queue pair destroyed");
	ep_pair(&near, &far, &config, &config, place);
	CHECK(ep_post_send(&near, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	CHECK(ep_post_recv(&near, 9, NULL, 0) == 0);
	ep_close(&far);
	expect_retry_exceeded(&near);
	EXPECT_STATUS(ep_poll_one(&near, EP_RECV_CQ, &wc), IBV_WC_WR_FLUSH_ERR);
	EXPECT_EQ(wc.wr_id, 9);
	ep_close(&near);
}

/* timeout 0 waits for ever: not an answer, not an error. */
static void for_ever(void)
{
	struct ep_config config = impatient(IBV_QPT_RC);
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, NULL, 0);
	struct endpoint near, far;
	struct ibv_wc wc;

	expect_case("timeout 0");
	config.timeout = 0;
	ep_open(&near, &config, EP_HERE);
	ep_open(&far, &config, place);
	CHECK(ep_bring_to(&near, &far.local, IBV_QPS_RTS) == 0);
	CHECK(ep_post_send(&near, &wr) == 0);
	EXPECT_EQ(ep_poll(&near, EP_SEND_CQ, &wc, 1, 500), 0);
	EXPECT_EQ(ep_state(&near), IBV_QPS_RTS);
	ep_pair_close(&near, &far);
}

static void rc_to_ud(void)
{
	struct ep_config rc = impatient(IBV_QPT_RC), ud = ep_defaults(IBV_QPT_UD);
	struct ibv_sge into;
	struct endpoint near, far;

	expect_case("RC request to a UD queue pair");
	ep_open(&near, &rc, EP_HERE);
	ep_open(&far, &ud, place);
	CHECK(ep_bring_to(&near, &far.local, IBV_QPS_RTS) == 0);
	CHECK(ep_bring_to(&far, &near.local, IBV_QPS_RTS) == 0);
	into = ep_sge(&far, 0, 256);
	CHECK(ep_post_recv(&far, 1, &into, 1) == 0);
	expect_retry_exceeded(&near);
	EXPECT_EQ(ep_poll_none(&far, EP_RECV_CQ), 0);
	EXPECT_EQ(ep_state(&far), IBV_QPS_RTS);
	ep_pair_close(&near, &far);
}

/* The far queue pair is connected to a third one: a stranger's request is dropped. */
static void not_its_peer(void)
{
	struct ep_config config = impatient(IBV_QPT_RC);
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 4, NULL, 0);
	struct endpoint near, far, third;
	struct ibv_wc wc;

	expect_case("RC request from a stranger");
	ep_open(&near, &config, EP_HERE);
	ep_open(&third, &config, EP_HERE);
	ep_open(&far, &config, place);
	CHECK(ep_bring_to(&near, &far.local, IBV_QPS_RTS) == 0);
	ep_link(&far, &third);
	CHECK(ep_post_recv(&far, 1, NULL, 0) == 0);
	expect_retry_exceeded(&near);
	expect_case("its own peer's request still comes through");
	CHECK(ep_post_send(&third, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&third, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, 1);
	ep_close(&third);
	ep_pair_close(&near, &far);
}

static void ud_send(struct endpoint *near, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct ibv_sge sge = ep_sge(near, 0, 32);
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 5, &sge, 1);
	struct ibv_wc wc;

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = qkey;
	CHECK(ep_post_send(near, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, 5);
}

/* A datagram that no queue pair may take is sent and lost; the receive stays for the right one. */
static void datagrams(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_UD), rc = ep_defaults(IBV_QPT_RC);
	struct endpoint near, far, connected;
	struct ibv_sge into;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	uint32_t before;

	ep_pair(&near, &far, &config, &config, place);
	ep_open(&connected, &rc, EP_HERE);
	ep_link(&connected, &connected);
	ah = ep_ah(&near, &far.local);
	into = ep_sge(&far, 0, 256);
	CHECK(ep_post_recv(&far, 1, &into, 1) == 0);
	CHECK(ep_post_recv(&connected, 1, NULL, 0) == 0);

	expect_case("UD, wrong qkey");
	before = ep_port_counter(&far, 0);
	ud_send(&near, ah, far.local.qpn, config.qkey + 1);
	EXPECT_EQ(ep_poll_none(&far, EP_RECV_CQ), 0);
	EXPECT_EQ(ep_port_counter(&far, 0), before + 1);
	expect_case("UD, unknown number");
	ud_send(&near, ah, far.local.qpn ^ 0x400000, config.qkey);
	EXPECT_EQ(ep_poll_none(&far, EP_RECV_CQ), 0);
	expect_case("UD to an RC queue pair");
	ud_send(&near, ah, connected.local.qpn, config.qkey);
	EXPECT_EQ(ep_poll_none(&connected, EP_RECV_CQ), 0);
	EXPECT_EQ(ep_state(&connected), IBV_QPS_RTS);
	expect_case("UD, the upper 8 bits of the number are ignored");
	ud_send(&near, ah, far.local.qpn | 0xab000000, config.qkey);
	EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, 1);

	expect_case("UD, qkey with bit 31 stands for the own one");
	CHECK(ep_post_recv(&far, 2, &into, 1) == 0);
	ud_send(&near, ah, far.local.qpn, 0x80000000);
	EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, 2);
	EXPECT_EQ(ibv_destroy_ah(ah), 0);
	ep_close(&connected);
	ep_pair_close(&near, &far);
}

/* Many queue pairs of one end talk to as many of the other. */
static void many_connections(void)
{
	enum { PAIRS = 12 };
	static struct endpoint near[PAIRS], far[PAIRS];
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 0, NULL, 0);
	struct ibv_wc wc;

	expect_case("many connections");
	for (int i = 0; i < PAIRS; i++) {
		ep_pair(&near[i], &far[i], &config, &config, EP_HERE);
		CHECK(ep_post_recv(&far[i], (uint64_t)i, NULL, 0) == 0);
	}
	for (int i = 0; i < PAIRS; i++)
		CHECK(ep_post_send(&near[i], &wr) == 0);
	for (int i = PAIRS - 1; i >= 0; i--) {
		EXPECT_STATUS(ep_poll_one(&far[i], EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_EQ(wc.wr_id, i);
		EXPECT_EQ(wc.qp_num, far[i].local.qpn);
		EXPECT_STATUS(ep_poll_one(&near[i], EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
		ep_pair_close(&near[i], &far[i]);
	}
}

int main(int argc, char **argv)
{
	place = ep_main(argc, argv);
	nobody();
	gone();
	for_ever();
	rc_to_ud();
	not_its_peer();
	datagrams();
	many_connections();
	return expect_done();
}

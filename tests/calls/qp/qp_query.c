/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ibv_query_qp(3) gives back what was set, in every state, and the creation attributes. */
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

static struct ibv_qp_attr shown;
static struct ibv_qp_init_attr init;

/* Byte for byte: whatever was written, padding too, would be seen. */
static bool same_bytes(const void *a, const void *b, size_t length)
{
	return !memcmp(a, b, length);
}

static void query(struct endpoint *ep)
{
	memset(&shown, 0xa5, sizeof(shown));
	memset(&init, 0xa5, sizeof(init));
	EXPECT_EQ(ibv_query_qp(ep->qp, &shown, IBV_QP_STATE | IBV_QP_CAP, &init), 0);
	EXPECT(!memcmp(&shown.cap, &init.cap, sizeof(init.cap)));
	EXPECT_EQ(shown.cap.max_send_wr, ep->cap.max_send_wr);
	EXPECT_EQ(shown.cap.max_recv_wr, ep->cap.max_recv_wr);
	EXPECT_EQ(shown.cap.max_send_sge, ep->cap.max_send_sge);
	EXPECT_EQ(shown.cap.max_recv_sge, ep->cap.max_recv_sge);
	EXPECT_EQ(shown.cap.max_inline_data, ep->cap.max_inline_data);
	EXPECT(init.qp_context == ep);
	EXPECT(init.send_cq == ep->cq[EP_SEND_CQ]);
	EXPECT(init.recv_cq == ep->cq[EP_RECV_CQ]);
	EXPECT(init.srq == ep->srq);
	EXPECT_EQ(init.qp_type, ep->config.type);
	EXPECT_EQ(init.sq_sig_all, ep->config.sq_sig_all);
	EXPECT_EQ(shown.cur_qp_state, shown.qp_state);
}

static void rc(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct endpoint ep;

	config.sq_sig_all = 1;
	config.psn = 0x123456;
	config.max_rd_atomic = 3;
	config.max_dest_rd_atomic = 2;
	config.min_rnr_timer = 17;
	config.timeout = 13;
	config.retry_cnt = 5;
	config.rnr_retry = 6;
	config.mtu = IBV_MTU_512;
	config.qp_access_flags = IBV_ACCESS_REMOTE_READ;
	ep_open(&ep, &config, EP_HERE);
	expect_case("RC in RESET");
	query(&ep);
	EXPECT_EQ(shown.qp_state, IBV_QPS_RESET);

	expect_case("RC in INIT");
	CHECK(ep_bring_to(&ep, &ep.local, IBV_QPS_INIT) == 0);
	query(&ep);
	EXPECT_EQ(shown.qp_state, IBV_QPS_INIT);
	EXPECT_EQ(shown.port_num, 1);
	EXPECT_EQ(shown.pkey_index, 0);
	EXPECT_EQ(shown.qp_access_flags, IBV_ACCESS_REMOTE_READ);
	CHECK(ep_move(&ep, IBV_QPS_RESET) == 0);

	expect_case("RC in RTS");
	CHECK(ep_bring_to(&ep, &ep.local, IBV_QPS_RTS) == 0);
	query(&ep);
	EXPECT_EQ(shown.qp_state, IBV_QPS_RTS);
	EXPECT_EQ(shown.path_mtu, IBV_MTU_512);
	EXPECT_EQ(shown.dest_qp_num, ep.local.qpn);
	EXPECT_EQ(shown.rq_psn, 0x123456);
	EXPECT_EQ(shown.sq_psn, 0x123456);
	EXPECT_EQ(shown.max_rd_atomic, 3);
	EXPECT(shown.max_dest_rd_atomic >= 2);
	EXPECT_EQ(shown.min_rnr_timer, 17);
	EXPECT_EQ(shown.timeout, 13);
	EXPECT_EQ(shown.retry_cnt, 5);
	EXPECT_EQ(shown.rnr_retry, 6);
	EXPECT_EQ(shown.qp_access_flags, IBV_ACCESS_REMOTE_READ);
	EXPECT_EQ(shown.ah_attr.is_global, 1);
	EXPECT_EQ(shown.ah_attr.port_num, 1);
	EXPECT_EQ(shown.ah_attr.grh.sgid_index, 0);
	EXPECT_EQ(shown.ah_attr.grh.hop_limit, 64);
	EXPECT(!memcmp(&shown.ah_attr.grh.dgid, &ep.local.gid, sizeof(ep.local.gid)));
	EXPECT_EQ(shown.sq_draining, 0);

	expect_case("RC changed in RTS");
	{
		struct ibv_qp_attr change = {.min_rnr_timer = 20,
					     .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

		EXPECT_EQ(ep_modify(&ep, &change, IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS), 0);
	}
	query(&ep);
	EXPECT_EQ(shown.min_rnr_timer, 20);
	EXPECT_EQ(shown.qp_access_flags, IBV_ACCESS_REMOTE_WRITE);
	EXPECT_EQ(shown.timeout, 13);

	expect_case("RC in SQD and ERR");
	CHECK(ep_move(&ep, IBV_QPS_SQD) == 0);
	query(&ep);
	EXPECT_EQ(shown.qp_state, IBV_QPS_SQD);
	CHECK(ep_move(&ep, IBV_QPS_ERR) == 0);
	query(&ep);
	EXPECT_EQ(shown.qp_state, IBV_QPS_ERR);
	EXPECT_EQ(ep.qp->state, IBV_QPS_ERR);
	ep_close(&ep);
}

static void ud(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_UD);
	struct ibv_qp_attr change = {.qkey = 0x7654};
	struct endpoint ep;

	config.psn = 77;
	ep_open(&ep, &config, EP_HERE);
	CHECK(ep_bring_to(&ep, &ep.local, IBV_QPS_RTS) == 0);
	expect_case("UD in RTS");
	query(&ep);
	EXPECT_EQ(shown.qkey, config.qkey);
	EXPECT_EQ(shown.sq_psn, 77);
	EXPECT_EQ(ep_modify(&ep, &change, IBV_QP_QKEY), 0);
	query(&ep);
	EXPECT_EQ(shown.qkey, 0x7654);
	ep_close(&ep);
}

/* The state field of the object follows an error that no call made. */
static void state_follows(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_sge sge = {.addr = 0, .length = 8, .lkey = 0xdeadbeef};
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, &sge, 1);
	struct ibv_wc wc;
	struct endpoint ep;

	expect_case("query updates qp->state");
	ep_open(&ep, &config, EP_HERE);
	ep_link(&ep, &ep);
	CHECK(ep_post_send(&ep, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&ep, EP_SEND_CQ, &wc), IBV_WC_LOC_PROT_ERR);
	query(&ep);
	EXPECT_EQ(shown.qp_state, IBV_QPS_ERR);
	EXPECT_EQ(ep.qp->state, IBV_QPS_ERR);
	ep_close(&ep);
}

/*
 * A query that is refused stores nothing; without a place for the attributes of creation it answers
 * all the same.
 */
static void refused(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_qp_attr before;
	struct endpoint ep;
	uint32_t handle;

	expect_case("refused: nothing is stored");
	ep_open(&ep, &config, EP_HERE);
	memset(&shown, 0x5a, sizeof(shown));
	memset(&before, 0x5a, sizeof(before));
	memset(&init, 0x5a, sizeof(init));
	handle = ep.qp->handle;
	ep.qp->handle = 0xdeadbeef;
	ep.qp->state = IBV_QPS_SQD;
	EXPECT_REFUSED(ibv_query_qp(ep.qp, &shown, IBV_QP_STATE, &init), ENOENT);
	EXPECT(same_bytes(&shown, &before, sizeof(shown)));
	EXPECT(same_bytes(&init, &before, sizeof(init)));
	EXPECT_EQ(ep.qp->state, IBV_QPS_SQD);
	ep.qp->handle = handle;
	EXPECT_REFUSED(ibv_query_qp(ep.qp, NULL, IBV_QP_STATE, &init), EINVAL);
	EXPECT_REFUSED(ibv_query_qp(NULL, &shown, IBV_QP_STATE, &init), EINVAL);
	EXPECT(same_bytes(&init, &before, sizeof(init)));
	expect_case("without the attributes of creation, whatever the mask says");
	EXPECT_EQ(ibv_query_qp(ep.qp, &shown, 0, NULL), 0);
	EXPECT(shown.qp_state == IBV_QPS_RESET && shown.cap.max_send_wr == config.cap.max_send_wr);
	EXPECT_EQ(ep.qp->state, IBV_QPS_SQD); /* not asked for */
	EXPECT_EQ(ibv_query_qp(ep.qp, &shown, -1, NULL), 0);
	EXPECT_EQ(ep.qp->state, IBV_QPS_RESET);
	ep_close(&ep);
}

/*
 * The values last set until there is traffic, then those that come next; over the end of their 24
 * bits.
 */
static void running_numbers(enum ibv_qp_type type)
{
	struct ep_config config = ep_defaults(type);
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, NULL, 0);
	struct endpoint near, far;
	struct ibv_wc wc;

	expect_case("type %d: PSNs before and after traffic", (int)type);
	config.psn = 0xfffffe;
	ep_pair(&near, &far, &config, &config, EP_HERE);
	query(&near);
	EXPECT(shown.sq_psn == 0xfffffe && shown.rq_psn == 0xfffffe);
	for (int i = 0; i < 5; i++) {
		CHECK(ep_post_recv(&far, 1, NULL, 0) == 0);
		CHECK(ep_post_send(&near, &wr) == 0);
		EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	}
	query(&near);
	EXPECT_EQ(shown.sq_psn, 3);
	EXPECT_EQ(shown.rq_psn, 0xfffffe);
	query(&far);
	EXPECT_EQ(shown.rq_psn, 3);
	EXPECT_EQ(shown.sq_psn, 0xfffffe);
	CHECK(ep_move(&far, IBV_QPS_ERR) == 0);
	query(&far);
	EXPECT(shown.rq_psn == 3 && shown.sq_psn == 0xfffffe);
	expect_case("type %d: PSNs of a queue pair that begins anew", (int)type);
	CHECK(ep_move(&near, IBV_QPS_RESET) == 0);
	CHECK(ep_bring_to(&near, &far.local, IBV_QPS_RTS) == 0);
	query(&near);
	EXPECT(shown.sq_psn == 0xfffffe && shown.rq_psn == 0xfffffe);
	expect_case("type %d: PSNs of a queue pair that only receives yet", (int)type);
	CHECK(ep_move(&far, IBV_QPS_RESET) == 0);
	CHECK(ep_bring_to(&far, &near.local, IBV_QPS_RTR) == 0);
	query(&far);
	EXPECT(shown.rq_psn == 0xfffffe && shown.sq_psn == 0);
	CHECK(ep_post_recv(&far, 1, NULL, 0) == 0);
	CHECK(ep_post_send(&near, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	query(&far);
	EXPECT(shown.rq_psn == 0xffffff && shown.sq_psn == 0);
	ep_pair_close(&near, &far);
}

/* RESET forgets what was set. */
static void forgotten(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_qp_attr fresh;
	struct endpoint ep;

	expect_case("RESET forgets what was set");
	ep_open(&ep, &config, EP_HERE);
	query(&ep);
	fresh = shown;
	ep_link(&ep, &ep);
	query(&ep);
	EXPECT(!same_bytes(&shown, &fresh, sizeof(shown)));
	CHECK(ep_move(&ep, IBV_QPS_RESET) == 0);
	query(&ep);
	EXPECT(same_bytes(&shown, &fresh, sizeof(shown)));
	ep_close(&ep);
}

static void with_srq(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct endpoint ep;

	expect_case("with an SRQ");
	config.srq_wr = 4;
	ep_open(&ep, &config, EP_HERE);
	query(&ep);
	EXPECT_EQ(shown.cap.max_recv_wr, 0);
	EXPECT_EQ(shown.cap.max_recv_sge, 0);
	ep_close(&ep);
}

static void data_in_order(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct endpoint ep;
	int plain;

	expect_case("ibv_query_qp_data_in_order");
	ep_open(&ep, &config, EP_HERE);
	plain = ibv_query_qp_data_in_order(ep.qp, IBV_WR_RDMA_WRITE, 0);
	EXPECT(plain == 0 || plain == 1);
	ep_close(&ep);
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	rc();
	ud();
	state_follows();
	with_srq();
	refused();
	running_numbers(IBV_QPT_RC);
	running_numbers(IBV_QPT_UC);
	forgotten();
	data_in_order();
	return expect_done();
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ibv_wr_post(3): what setters do to which request, the last of several, requests without them,
 * when a window has its key, and operations that the type does not have.
 */
#include <stdint.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "builders.h"
#include "support/check.h"
#include "support/endpoint.h"
#include "support/qp_state.h"

static uint8_t bytes[1024];

/* A window shows the new key when its bind has been posted, and not when the batch was given up. */
static void windows(void)
{
	uint32_t key;

	expect_case("a window of an aborted batch keeps its key");
	builders_open(IBV_QPT_RC);
	key = mw->rkey;
	ibv_wr_start(ex);
	request_begin(1);
	request_bind(mw, IBV_ACCESS_REMOTE_READ);
	ibv_wr_abort(ex);
	EXPECT_EQ(mw->rkey, key);
	expect_case("a window of a batch that is too late keeps its key");
	CHECK(ep_move(&ep, IBV_QPS_RESET) == 0);
	ibv_wr_start(ex);
	request_bind(mw, IBV_ACCESS_REMOTE_READ);
	EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
	EXPECT_EQ(mw->rkey, key);
	expect_case(
		"a window of a batch that was posted shows its new key; data means nothing to a bind");
	ep_link(&ep, &ep);
	ibv_wr_start(ex);
	request_bind(mw, IBV_ACCESS_REMOTE_READ);
	ibv_wr_set_sge(ex, 0xdeadbeef, 1, 100000);
	ibv_wr_set_inline_data(ex, bytes, ep.cap.max_inline_data);
	EXPECT_EQ(ibv_wr_complete(ex), 0);
	EXPECT_EQ(mw->rkey, ibv_inc_rkey(key));
	request_sent(1, IBV_WC_SUCCESS);
	builders_close();
}

/* ibv_wr_post(3): the last of several setters counts, whichever kinds they are. */
static void last_setter(void)
{
	struct ibv_sge into;

	expect_case("elements after inline data");
	builders_open(IBV_QPT_RC);
	into = ep_sge(&ep, 32768, 8192);
	ep_fill(&ep, 0, 0x33, 4096);
	memset(bytes, 0x44, sizeof(bytes));
	CHECK(ep_post_recv(&ep, 5, &into, 1) == 0);
	ibv_wr_start(ex);
	request_begin(1);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, bytes, ep.cap.max_inline_data);
	ibv_wr_set_sge(ex, ep.lkey, ep.local.addr, 4096);
	EXPECT_EQ(ibv_wr_complete(ex), 0);
	request_sent(1, IBV_WC_SUCCESS);
	EXPECT_EQ(ep_poll(&ep, EP_RECV_CQ, &(struct ibv_wc){0}, 1, EP_WAIT_MS), 1);
	EXPECT(ep_is_filled(&ep, 32768, 0x33, 4096));
	expect_case("inline data, exactly max_inline_data, after elements");
	ep_fill(&ep, 32768, 0, 8192);
	CHECK(ep_post_recv(&ep, 5, &into, 1) == 0);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, 2, (struct ibv_sge[2]){ep_sge(&ep, 0, 9), ep_sge(&ep, 9, 9)});
	ibv_wr_set_inline_data(ex, bytes, ep.cap.max_inline_data);
	EXPECT_EQ(ibv_wr_complete(ex), 0);
	request_sent(1, IBV_WC_SUCCESS);
	EXPECT_EQ(ep_poll(&ep, EP_RECV_CQ, &(struct ibv_wc){0}, 1, EP_WAIT_MS), 1);
	EXPECT(ep_is_filled(&ep, 32768, 0x44, ep.cap.max_inline_data));
	EXPECT(ep_is_filled(&ep, 32768 + ep.cap.max_inline_data, 0, 64));
	builders_close();
}

/*
 * FLUSH has a range but no local memory: elements given to it change nothing, neither now nor for
 * what follows.
 */
static void flush_with_data(void)
{
	expect_case("data means nothing to a FLUSH");
	builders_open(IBV_QPT_RC);
	ibv_wr_start(ex);
	request_begin(1);
	ibv_wr_flush(ex, ep.local.rkey, ep.local.addr, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	ibv_wr_set_sge(ex, 0xdeadbeef, 1, 0xffffffff);
	EXPECT_EQ(ibv_wr_complete(ex), 0);
	request_sent(1, IBV_WC_SUCCESS);
	builders_work();
	builders_close();
}

/*
 * A datagram whose address was not set is sent and reaches no queue pair. One whose handle is of
 * another domain fails.
 */
static void no_address(void)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	struct ibv_sge into;
	struct ibv_ah *other;

	builders_open(IBV_QPT_UD);
	attr.grh.dgid = ep.local.gid;
	other = ibv_create_ah(ep.other_pd, &attr);
	into = ep_sge(&ep, 32768, 256);
	CHECK(other && ep_post_recv(&ep, 5, &into, 1) == 0);
	expect_case("a datagram without an address");
	ibv_wr_start(ex);
	request_begin(8);
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, ep.lkey, ep.local.addr, 8);
	EXPECT_EQ(ibv_wr_complete(ex), 0);
	request_sent(8, IBV_WC_SUCCESS);
	EXPECT_EQ(ep_poll_none(&ep, EP_RECV_CQ), 0);
	expect_case("an address of another domain");
	ibv_wr_start(ex);
	request_begin(9);
	ibv_wr_send(ex);
	ibv_wr_set_ud_addr(ex, other, ep.local.qpn, ep.config.qkey);
	EXPECT_EQ(ibv_wr_complete(ex), 0);
	request_sent(9, IBV_WC_LOC_QP_OP_ERR);
	EXPECT_EQ(ibv_destroy_ah(other), 0);
	builders_close();
}

/* No queue pair has TSO: the call completes as IBV_WR_TSO does. */
static void segmentation(enum ibv_qp_type type)
{
	expect_case("type %d: TSO", (int)type);
	builders_open(type);
	ibv_wr_start(ex);
	request_begin(4);
	ibv_wr_send_tso(ex, bytes, 14, 100);
	EXPECT_EQ(ibv_wr_complete(ex), 0);
	request_sent(4, IBV_WC_LOC_QP_OP_ERR);
	builders_close();
}

/* A frame has no place for an immediate. Without CAP_NET_RAW there is no such queue pair. */
static void frames(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.cap = {.max_send_wr = 2, .max_send_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *qp;

	expect_case("RAW_PACKET: SEND_WITH_IMM");
	ep_open(&ep, &config, EP_HERE);
	attr.pd = ep.pd;
	attr.send_cq = attr.recv_cq = ep.cq[EP_SEND_CQ];
	qp = ibv_create_qp_ex(ep.context, &attr);
	if (qp) {
		CHECK(!qp_bring_to(qp, &(struct ibv_qp_attr){.port_num = 1}, IBV_QPS_RTS));
		ex = ibv_qp_to_qp_ex(qp);
		ibv_wr_start(ex);
		request_begin(6);
		ibv_wr_send_imm(ex, 1);
		ibv_wr_set_sge(ex, ep.lkey, ep.local.addr, 60);
		EXPECT_EQ(ibv_wr_complete(ex), 0);
		request_sent(6, IBV_WC_LOC_QP_OP_ERR);
		EXPECT_EQ(ibv_destroy_qp(qp), 0);
	}
	ep_close(&ep);
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	windows();
	last_setter();
	flush_with_data();
	no_address();
	segmentation(IBV_QPT_RC);
	segmentation(IBV_QPT_UD);
	frames();
	return expect_done();
}

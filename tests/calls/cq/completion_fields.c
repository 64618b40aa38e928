/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What each field of a completion says, by operation and side (ibv_poll_cq(3)). */
#include <arpa/inet.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

struct row {
	const char *name;
	enum ibv_qp_type type;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_opcode sent;
	int received; /* -1: no receive is used */
	unsigned int flags;
};

static const struct row rows[] = {
	{"RC SEND", IBV_QPT_RC, IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV, 0},
	{"RC SEND_IMM", IBV_QPT_RC, IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, IBV_WC_RECV,
	 IBV_WC_WITH_IMM},
	{"RC WRITE", IBV_QPT_RC, IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, -1, 0},
	{"RC WRITE_IMM", IBV_QPT_RC, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE,
	 IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM},
	{"RC READ", IBV_QPT_RC, IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, -1, 0},
	{"RC CMP_SWAP", IBV_QPT_RC, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, -1, 0},
	{"RC FETCH_ADD", IBV_QPT_RC, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, -1, 0},
	{"UC SEND", IBV_QPT_UC, IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV, 0},
	{"UC SEND_IMM", IBV_QPT_UC, IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, IBV_WC_RECV,
	 IBV_WC_WITH_IMM},
	{"UC WRITE", IBV_QPT_UC, IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, -1, 0},
	{"UC WRITE_IMM", IBV_QPT_UC, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE,
	 IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM},
	{"UD SEND", IBV_QPT_UD, IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV, IBV_WC_GRH},
	{"UD SEND_IMM", IBV_QPT_UD, IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, IBV_WC_RECV,
	 IBV_WC_GRH | IBV_WC_WITH_IMM},
};

static bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static void run(const struct row *row, enum ep_place place, uint64_t wr_id)
{
	struct ep_config config = ep_defaults(row->type);
	uint32_t length = is_atomic(row->opcode) ? 8 : 700;
	struct ibv_sge sge, into;
	struct ibv_send_wr wr;
	struct endpoint near, far;
	struct ibv_ah *ah;
	struct ibv_wc wc;

	expect_case("%s, wr_id %#llx", row->name, (unsigned long long)wr_id);
	config.sq_sig_all = 1; /* no IBV_SEND_SIGNALED needed */
	ep_pair(&near, &far, &config, &config, place);
	sge = ep_sge(&near, 0, length);
	into = ep_sge(&far, 0, 8192);
	ah = ep_ah(&near, &far.local);
	wr = ep_wr(row->opcode, wr_id, &sge, 1);
	wr.send_flags = 0;
	wr.imm_data = htonl(0x01020304);
	if (is_atomic(row->opcode)) {
		wr.wr.atomic.remote_addr = far.local.addr;
		wr.wr.atomic.rkey = far.local.rkey;
	} else if (row->type == IBV_QPT_UD) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = far.local.qpn;
		wr.wr.ud.remote_qkey = config.qkey;
	} else {
		wr.wr.rdma.remote_addr = far.local.addr;
		wr.wr.rdma.rkey = far.local.rkey;
	}
	CHECK(ep_post_recv(&far, ~wr_id, &into, 1) == 0);
	CHECK(ep_post_send(&near, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, wr_id);
	EXPECT_EQ(wc.opcode, row->sent);
	EXPECT_EQ(wc.qp_num, near.local.qpn);
	EXPECT_EQ(wc.wc_flags, 0);
	EXPECT_EQ(wc.vendor_err, 0);
	if (row->opcode == IBV_WR_RDMA_READ || is_atomic(row->opcode))
		EXPECT_EQ(wc.byte_len, length);
	if (row->received >= 0) {
		EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_EQ(wc.wr_id, ~wr_id);
		EXPECT_EQ(wc.opcode, row->received);
		EXPECT_EQ(wc.qp_num, far.local.qpn);
		EXPECT_EQ(wc.wc_flags, row->flags);
		EXPECT_EQ(wc.vendor_err, 0);
		EXPECT_EQ(wc.byte_len, length + (row->type == IBV_QPT_UD ? 40 : 0));
		if (row->flags & IBV_WC_WITH_IMM)
			EXPECT_EQ(ntohl(wc.imm_data), 0x01020304);
		if (row->type == IBV_QPT_UD)
			EXPECT_EQ(wc.src_qp, near.local.qpn);
	} else {
		EXPECT_EQ(ep_poll(&far, EP_RECV_CQ, &wc, 1, 20), 0);
	}
	EXPECT_EQ(ibv_destroy_ah(ah), 0);
	ep_pair_close(&near, &far);
}

/* Both queues of a queue pair on one completion queue, which several queue pairs share. */
static void shared_queue(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR},
			   to_init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp *qp[3];
	bool seen[3] = {0};
	struct endpoint ep;
	struct ibv_wc wc;

	expect_case("three queue pairs on one CQ");
	ep_open(&ep, &config, EP_HERE);
	init.send_cq = init.recv_cq = ep.cq[EP_RECV_CQ];
	for (int i = 0; i < 3; i++) {
		struct ibv_recv_wr recv = {.wr_id = (uint64_t)i}, *bad;

		qp[i] = ibv_create_qp(ep.pd, &init);
		CHECK(qp[i]);
		CHECK(ibv_modify_qp(qp[i], &to_init,
				    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					    IBV_QP_ACCESS_FLAGS) == 0);
		CHECK(ibv_post_recv(qp[i], &recv, &bad) == 0);
	}
	for (int i = 0; i < 3; i++)
		CHECK(ibv_modify_qp(qp[i], &err, IBV_QP_STATE) == 0);
	for (int i = 0; i < 3; i++) {
		EXPECT_STATUS(ep_poll_one(&ep, EP_RECV_CQ, &wc), IBV_WC_WR_FLUSH_ERR);
		CHECK(wc.wr_id < 3);
		EXPECT(!seen[wc.wr_id]);
		seen[wc.wr_id] = true;
		EXPECT_EQ(wc.qp_num, qp[wc.wr_id]->qp_num);
	}
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(ibv_destroy_qp(qp[i]), 0);
	ep_close(&ep);
}

int main(int argc, char **argv)
{
	enum ep_place place = ep_main(argc, argv);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		run(&rows[i], place, 0);
		run(&rows[i], place, 0xfedcba9876543210);
	}
	shared_queue();
	return expect_done();
}

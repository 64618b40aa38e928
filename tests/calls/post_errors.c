/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What ibv_post_send(3) and ibv_post_recv(3) refuse at the call, which entry of a list bad_wr
 * names, and which wrong requests are taken and fail in their completion.
 */
#include <string.h>

#include <infiniband/verbs.h>

#include "end.h"
#include "expect.h"

static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

/* A queue pair linked to itself, and an address handle to it for UD. */
static struct end end;
static struct ibv_ah *ah;

static void open_end(enum ibv_qp_type type)
{
	struct end_config config = end_defaults(type);

	config.send_wr = 8;
	config.recv_wr = 8;
	config.send_sge = 2;
	config.recv_sge = 2;
	end_open(&end, &config, END_HERE);
	end_link(&end, &end);
	ah = end_ah(&end, &end.info);
}

static void close_end(void)
{
	EXPECT_EQ(ibv_destroy_ah(ah), 0);
	end_close(&end);
}

static struct ibv_send_wr request(enum ibv_wr_opcode opcode, uint64_t wr_id, struct ibv_sge *sge,
				  int num_sge)
{
	struct ibv_send_wr wr = end_wr(opcode, wr_id, sge, num_sge);

	if (end.config.type == IBV_QPT_UD) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = end.info.qpn;
		wr.wr.ud.remote_qkey = end.config.qkey;
	} else if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = end.info.addr;
		wr.wr.atomic.rkey = end.info.rkey;
	} else {
		wr.wr.rdma.remote_addr = end.info.addr;
		wr.wr.rdma.rkey = end.info.rkey;
	}
	return wr;
}

static void refuse(struct ibv_send_wr *wr, int err)
{
	struct ibv_send_wr *bad = NULL;

	EXPECT_EQ(ibv_post_send(end.qp, wr, &bad), err);
	EXPECT(bad == wr);
	EXPECT_EQ(end_poll_none(&end, END_SEND_CQ), 0);
	EXPECT_EQ(end_state(&end), IBV_QPS_RTS);
}

static void at_the_call(enum ibv_qp_type type)
{
	struct ibv_sge sge[3];
	struct ibv_send_wr wr;

	open_end(type);
	for (int i = 0; i < 3; i++)
		sge[i] = end_sge(&end, 0, 8);
	expect_case("type %d: opcode outside the enum", (int)type);
	wr = request((enum ibv_wr_opcode)200, 1, sge, 1);
	refuse(&wr, EINVAL);
	wr = request((enum ibv_wr_opcode) - 1, 1, sge, 1);
	refuse(&wr, EINVAL);
	expect_case("type %d: num_sge", (int)type);
	wr = request(IBV_WR_SEND, 1, sge, (int)end.info.max_send_sge + 1);
	refuse(&wr, EINVAL);
	wr = request(IBV_WR_SEND, 1, sge, -1);
	refuse(&wr, EINVAL);
	expect_case("type %d: inline too long", (int)type);
	sge[0].length = end.info.max_inline + 1;
	wr = request(IBV_WR_SEND, 1, sge, 1);
	wr.send_flags |= IBV_SEND_INLINE;
	refuse(&wr, EINVAL);
	expect_case("type %d: inline too long by two elements", (int)type);
	sge[0].length = end.info.max_inline;
	sge[1].length = 1;
	wr = request(IBV_WR_SEND, 1, sge, 2);
	wr.send_flags |= IBV_SEND_INLINE;
	refuse(&wr, EINVAL);
	expect_case("type %d: inline lengths that wrap 32 bits", (int)type);
	sge[0].length = 0xffffffff;
	sge[1].length = 9;
	wr = request(IBV_WR_SEND, 1, sge, 2);
	wr.send_flags |= IBV_SEND_INLINE;
	refuse(&wr, EINVAL);
	if (type == IBV_QPT_RC) {
		sge[0].length = 8;
		expect_case("inline READ");
		wr = request(IBV_WR_RDMA_READ, 1, sge, 1);
		wr.send_flags |= IBV_SEND_INLINE;
		refuse(&wr, EINVAL);
		expect_case("inline ATOMIC");
		wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, sge, 1);
		wr.send_flags |= IBV_SEND_INLINE;
		refuse(&wr, EINVAL);
	}
	close_end();
}

/* Those before the bad one are posted, it and those behind it are not. */
static void bad_in_a_list(enum ibv_qp_type type)
{
	struct ibv_send_wr wr[4], *bad = NULL;
	struct ibv_recv_wr recv[4], *bad_recv = NULL;
	struct ibv_wc wc;

	expect_case("type %d: third of a send list is bad", (int)type);
	open_end(type);
	for (int i = 0; i < 4; i++) {
		struct ibv_sge into = end_sge(&end, 0, 256);

		REQUIRE(end_post_recv(&end, 10u + (uint64_t)i, &into, 1) == 0);
		wr[i] = request(IBV_WR_SEND, (uint64_t)i, NULL, 0);
		wr[i].next = i < 3 ? &wr[i + 1] : NULL;
	}
	wr[2].num_sge = 100;
	EXPECT_EQ(ibv_post_send(end.qp, wr, &bad), EINVAL);
	EXPECT(bad == &wr[2]);
	for (uint64_t i = 0; i < 2; i++) {
		EXPECT_STATUS(end_poll_one(&end, END_SEND_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_EQ(wc.wr_id, i);
	}
	EXPECT_EQ(end_poll_none(&end, END_SEND_CQ), 0);
	for (uint64_t i = 0; i < 2; i++) {
		EXPECT_STATUS(end_poll_one(&end, END_RECV_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_EQ(wc.wr_id, 10 + i);
	}

	expect_case("type %d: third of a receive list is bad", (int)type);
	memset(recv, 0, sizeof(recv));
	for (uint64_t i = 0; i < 4; i++) {
		recv[i].wr_id = 20 + i;
		recv[i].next = i < 3 ? &recv[i + 1] : NULL;
	}
	recv[2].num_sge = (int)end.info.max_recv_sge + 1;
	EXPECT_EQ(ibv_post_recv(end.qp, recv, &bad_recv), EINVAL);
	EXPECT(bad_recv == &recv[2]);
	REQUIRE(end_move(&end, IBV_QPS_ERR) == 0);
	{
		/* What flushes are the two of the first four that were not used, and these two. */
		static const uint64_t want[] = {12, 13, 20, 21};

		for (int i = 0; i < 4; i++) {
			EXPECT_STATUS(end_poll_one(&end, END_RECV_CQ, &wc), IBV_WC_WR_FLUSH_ERR);
			EXPECT_EQ(wc.wr_id, want[i]);
		}
	}
	EXPECT_EQ(end_poll_none(&end, END_RECV_CQ), 0);
	close_end();
}

/* A list that points to itself ends at "full". */
static void endless_list(void)
{
	struct ibv_send_wr wr, *bad = NULL;
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad_recv = NULL;

	expect_case("endless receive list");
	open_end(IBV_QPT_UD);
	recv.next = &recv;
	EXPECT_EQ(ibv_post_recv(end.qp, &recv, &bad_recv), ENOMEM);
	EXPECT(bad_recv == &recv);
	expect_case("endless send list");
	wr = request(IBV_WR_SEND, 1, NULL, 0);
	wr.send_flags = 0;
	wr.next = &wr;
	EXPECT_EQ(ibv_post_send(end.qp, &wr, &bad), ENOMEM);
	EXPECT(bad == &wr);
	close_end();
}

/* An operation that the type does not have is taken and completes LOC_QP_OP_ERR. */
static void unfit(enum ibv_qp_type type, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	expect_case("type %d: opcode %d does not fit", (int)type, (int)opcode);
	open_end(type);
	sge = end_sge(&end, 0, 8);
	wr = request(opcode, 3, &sge, 1);
	wr.send_flags = 0; /* an error is told anyway */
	EXPECT_EQ(end_post_send(&end, &wr), 0);
	EXPECT_STATUS(end_poll_one(&end, END_SEND_CQ, &wc), IBV_WC_LOC_QP_OP_ERR);
	EXPECT_EQ(wc.wr_id, 3);
	EXPECT(wc.vendor_err != 0);
	EXPECT_EQ(end_state(&end), type == IBV_QPT_RC ? IBV_QPS_ERR : IBV_QPS_SQE);
	close_end();
}

int main(int argc, char **argv)
{
	end_main(argc, argv);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		at_the_call(types[i]);
		bad_in_a_list(types[i]);
	}
	endless_list();
	unfit(IBV_QPT_UC, IBV_WR_RDMA_READ);
	unfit(IBV_QPT_UC, IBV_WR_ATOMIC_CMP_AND_SWP);
	unfit(IBV_QPT_UC, IBV_WR_ATOMIC_FETCH_AND_ADD);
	unfit(IBV_QPT_UC, IBV_WR_SEND_WITH_INV);
	unfit(IBV_QPT_UC, IBV_WR_TSO);
	unfit(IBV_QPT_UD, IBV_WR_RDMA_WRITE);
	unfit(IBV_QPT_UD, IBV_WR_RDMA_WRITE_WITH_IMM);
	unfit(IBV_QPT_UD, IBV_WR_RDMA_READ);
	unfit(IBV_QPT_UD, IBV_WR_ATOMIC_CMP_AND_SWP);
	unfit(IBV_QPT_UD, IBV_WR_ATOMIC_FETCH_AND_ADD);
	unfit(IBV_QPT_UD, IBV_WR_SEND_WITH_INV);
	unfit(IBV_QPT_UD, IBV_WR_LOCAL_INV);
	unfit(IBV_QPT_UD, IBV_WR_BIND_MW);
	unfit(IBV_QPT_RC, IBV_WR_TSO);
	return expect_done();
}

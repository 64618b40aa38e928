/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ibv_alloc_null_mr(3): data that is written to the region vanishes, data that is read from it is
 * zeros, and peers get no key for it.
 */
#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define LENGTH 3000u

static struct endpoint near, far;
static enum ep_place place;
static struct ibv_mr *null;

static void open_pair(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	ep_pair(&near, &far, &config, &config, place);
	null = ibv_alloc_null_mr(near.pd);
	CHECK(null);
}

static void close_pair(void)
{
	EXPECT_EQ(ibv_dereg_mr(null), 0);
	ep_pair_close(&near, &far);
}

/* Any address will do. */
static struct ibv_sge nowhere(uint32_t length)
{
	return (struct ibv_sge){.addr = 0xdead00000000, .length = length, .lkey = null->lkey};
}

static int run(enum ibv_wr_opcode opcode, struct ibv_sge *sge, int num_sge)
{
	struct ibv_send_wr wr = ep_wr(opcode, 1, sge, num_sge);

	ep_target(&wr, far.local.addr + 4096, far.local.rkey);
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		wr.wr.atomic.compare_add = 5;
	return ep_run(&near, &wr);
}

static void zeros_out(void)
{
	struct ibv_sge sge[3];
	struct ibv_sge into = ep_sge(&far, 4096, LENGTH);
	struct ibv_wc wc;

	expect_case("SEND of zeros");
	ep_fill(&far, 4096, 0x77, LENGTH);
	CHECK(ep_post_recv(&far, 2, &into, 1) == 0);
	sge[0] = nowhere(LENGTH);
	EXPECT_STATUS(run(IBV_WR_SEND, sge, 1), IBV_WC_SUCCESS);
	EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, 4096, 0, LENGTH));
	expect_case("WRITE of bytes, zeros, bytes");
	ep_fill(&far, 4096, 0x77, LENGTH);
	ep_fill(&near, 0, 0x33, 200);
	sge[0] = ep_sge(&near, 0, 100);
	sge[1] = nowhere(LENGTH - 200);
	sge[2] = ep_sge(&near, 100, 100);
	EXPECT_STATUS(run(IBV_WR_RDMA_WRITE, sge, 3), IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, 4096, 0x33, 100));
	EXPECT(ep_is_filled(&far, 4096 + 100, 0, LENGTH - 200));
	EXPECT(ep_is_filled(&far, 4096 + LENGTH - 100, 0x33, 100));
}

static void swallows(void)
{
	struct ibv_sge sge[3], from;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	expect_case("READ, the middle thrown away");
	ep_fill(&far, 4096, 0x44, LENGTH);
	ep_fill(&near, 0, 0, 1000);
	sge[0] = ep_sge(&near, 0, 100);
	sge[1] = nowhere(LENGTH - 200);
	sge[2] = ep_sge(&near, 500, 100);
	EXPECT_STATUS(run(IBV_WR_RDMA_READ, sge, 3), IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&near, 0, 0x44, 100));
	EXPECT(ep_is_filled(&near, 100, 0, 400));
	EXPECT(ep_is_filled(&near, 500, 0x44, 100));
	expect_case("an atomic without its answer");
	ep_fill(&far, 4096, 0, 8);
	sge[0] = nowhere(8);
	EXPECT_STATUS(run(IBV_WR_ATOMIC_FETCH_AND_ADD, sge, 1), IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, 4096, 5, 1));
	expect_case("a receive that keeps nothing");
	from = ep_sge(&far, 0, LENGTH);
	wr = ep_wr(IBV_WR_SEND, 3, &from, 1);
	sge[0] = nowhere(LENGTH);
	CHECK(ep_post_recv(&near, 4, sge, 1) == 0);
	CHECK(ep_post_send(&far, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_EQ(wc.byte_len, LENGTH);
	EXPECT_STATUS(ep_poll_one(&far, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
}

/* Fields, and what the page calls invalid. */
static void as_object(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(near.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {.bind_info = {.mr = null, .length = 64}};
	struct ibv_mr *foreign = ibv_alloc_null_mr(near.other_pd);
	struct ibv_sge sge;

	CHECK(mw && foreign);
	expect_case("fields");
	EXPECT(null->context == near.context && null->pd == near.pd && null->lkey);
	EXPECT_EQ(null->rkey, 0);
	expect_case("its domain is busy");
	EXPECT_REFUSED(ibv_dealloc_pd(near.other_pd), EBUSY);
	expect_case("not bound");
	EXPECT_REFUSED(ibv_bind_mw(near.qp, mw, &bind), EINVAL);
	expect_case("not re-registered");
	EXPECT_EQ(ibv_rereg_mr(null, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
		  IBV_REREG_MR_ERR_INPUT);
	sge = nowhere(8);
	EXPECT_STATUS(run(IBV_WR_RDMA_WRITE, &sge, 1), IBV_WC_SUCCESS);
	expect_case("of another domain");
	sge.lkey = foreign->lkey;
	EXPECT_STATUS(run(IBV_WR_RDMA_WRITE, &sge, 1), IBV_WC_LOC_PROT_ERR);
	EXPECT_EQ(ibv_dealloc_mw(mw), 0);
	EXPECT_EQ(ibv_dereg_mr(foreign), 0);
}

/* Its lkey is no rkey either, for any request and at any address. */
static void no_remote_key(enum ibv_wr_opcode opcode, uint64_t addr, uint32_t length)
{
	struct ibv_sge from = ep_sge(&far, 0, length);
	struct ibv_send_wr wr = ep_wr(opcode, 3, &from, 1);
	struct ibv_wc wc;

	expect_case("as a remote key: opcode %d, %u bytes at 0x%llx", (int)opcode, length,
		    (unsigned long long)addr);
	ep_fill(&far, 0, 0x66, length);
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = null->lkey;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = null->lkey;
	}
	CHECK(ep_post_send(&far, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&far, EP_SEND_CQ, &wc), IBV_WC_REM_ACCESS_ERR);
	EXPECT(ep_is_filled(&far, 0, 0x66, length));
}

int main(int argc, char **argv)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		uint32_t length;
	} remote[] = {
		{IBV_WR_RDMA_WRITE, 8},    {IBV_WR_RDMA_WRITE, 32768},       {IBV_WR_RDMA_READ, 8},
		{IBV_WR_RDMA_READ, 32768}, {IBV_WR_ATOMIC_FETCH_AND_ADD, 8},
	};

	place = ep_main(argc, argv);
	open_pair();
	zeros_out();
	swallows();
	as_object();
	close_pair();
	for (size_t i = 0; i < sizeof(remote) / sizeof(remote[0]); i++) {
		open_pair();
		no_remote_key(remote[i].opcode, 0, remote[i].length);
		close_pair();
		open_pair();
		no_remote_key(remote[i].opcode, near.local.addr, remote[i].length);
		close_pair();
	}
	return expect_done();
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * On-demand paging: regions whose pages come and go, explicit and implicit (ibv_reg_mr(3)). An
 * access to pages that the program has unmapped is a protection error of the request, at the
 * requester as at the responder, and does not end the program.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define ALL                                                                          \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define PAGED (ALL | IBV_ACCESS_ON_DEMAND)
#define HOLE  16384u
#define PAGE  4096u

static struct endpoint near, far;
static enum ep_place place;

static void open_pair(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	config.mr_access = PAGED;
	ep_pair(&near, &far, &config, &config, place);
}

static int run(enum ibv_wr_opcode opcode, struct ibv_sge *sge, int num_sge, uint64_t addr,
	       uint32_t rkey)
{
	struct ibv_send_wr wr = ep_wr(opcode, 1, sge, num_sge);
	int status;

	ep_target(&wr, addr, rkey); /* of a SEND it is not looked at */
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		wr.wr.atomic.compare_add = 1;
	status = ep_run(&near, &wr);
	if (status != IBV_WC_SUCCESS)
		ep_relink(&near, &far);
	return status;
}

static int plain(enum ibv_wr_opcode opcode, size_t at, uint64_t addr)
{
	struct ibv_sge sge = ep_sge(&near, at, opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : 256);

	return run(opcode, &sge, 1, addr, far.local.rkey);
}

static void traffic(void)
{
	struct ibv_sge into;
	struct ibv_wc wc;

	open_pair();
	into = ep_sge(&far, 8192, 256);
	expect_case("traffic over on-demand regions");
	ep_fill(&near, 0, 0x21, 256);
	CHECK(ep_post_recv(&far, 2, &into, 1) == 0);
	EXPECT_STATUS(plain(IBV_WR_SEND, 0, 0), IBV_WC_SUCCESS);
	EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, 8192, 0x21, 256));
	EXPECT_STATUS(plain(IBV_WR_RDMA_WRITE, 0, far.local.addr), IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, 0, 0x21, 256));
	EXPECT_STATUS(plain(IBV_WR_RDMA_READ, 512, far.local.addr), IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&near, 512, 0x21, 256));
	EXPECT_STATUS(plain(IBV_WR_ATOMIC_FETCH_AND_ADD, 1024, far.local.addr), IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&near, 1024, 0x21, 8));
	ep_pair_close(&near, &far);
}

/* The requester's own memory is gone. */
static void gone_here(void)
{
	open_pair();
	ep_vanish(&near, HOLE, 2 * PAGE);
	expect_case("SEND from nothing");
	EXPECT_STATUS(plain(IBV_WR_SEND, HOLE, 0), IBV_WC_LOC_PROT_ERR);
	expect_case("WRITE from nothing");
	EXPECT_STATUS(plain(IBV_WR_RDMA_WRITE, HOLE, far.local.addr), IBV_WC_LOC_PROT_ERR);
	expect_case("WRITE whose end is gone");
	EXPECT_STATUS(plain(IBV_WR_RDMA_WRITE, HOLE - 8, far.local.addr), IBV_WC_LOC_PROT_ERR);
	expect_case("READ into nothing");
	EXPECT_STATUS(plain(IBV_WR_RDMA_READ, HOLE, far.local.addr), IBV_WC_LOC_PROT_ERR);
	expect_case("ATOMIC into nothing: the remote word changes all the same");
	ep_fill(&far, 0, 0, 8);
	EXPECT_STATUS(plain(IBV_WR_ATOMIC_FETCH_AND_ADD, HOLE, far.local.addr),
		      IBV_WC_LOC_PROT_ERR);
	EXPECT(ep_is_filled(&far, 0, 1, 1));
	expect_case("beside the hole all is well");
	EXPECT_STATUS(plain(IBV_WR_RDMA_WRITE, HOLE - 256, far.local.addr), IBV_WC_SUCCESS);
	ep_pair_close(&near, &far);
}

/* The responder's memory is gone. */
static void gone_there(void)
{
	struct ibv_sge into, sge;
	struct ibv_wc wc;
	struct ibv_send_wr wr;

	open_pair();
	ep_vanish(&far, HOLE, 2 * PAGE);
	expect_case("WRITE to nothing");
	EXPECT_STATUS(plain(IBV_WR_RDMA_WRITE, 0, far.local.addr + HOLE), IBV_WC_REM_OP_ERR);
	expect_case("READ from nothing");
	EXPECT_STATUS(plain(IBV_WR_RDMA_READ, 0, far.local.addr + HOLE), IBV_WC_REM_OP_ERR);
	expect_case("ATOMIC on nothing");
	EXPECT_STATUS(plain(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, far.local.addr + HOLE),
		      IBV_WC_REM_OP_ERR);
	expect_case("a receive into nothing");
	into = ep_sge(&far, HOLE, 256);
	sge = ep_sge(&near, 0, 256);
	wr = ep_wr(IBV_WR_SEND, 1, &sge, 1);
	CHECK(ep_post_recv(&far, 2, &into, 1) == 0);
	CHECK(ep_post_send(&near, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_REM_OP_ERR);
	EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_LOC_PROT_ERR);
	EXPECT(wc.vendor_err != 0);
	ep_pair_close(&near, &far);
}

/* Memory that is mapped after it was registered, and again elsewhere later. */
static void comes_and_goes(void)
{
	uint8_t *at = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_sge sge;
	struct ibv_mr *mr;

	open_pair();
	CHECK(at != MAP_FAILED);
	expect_case("registered without access to its pages");
	EXPECT_NULL(ibv_reg_mr(near.pd, at, PAGE, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	mr = ibv_reg_mr(near.pd, at, PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	CHECK(mr);
	sge = (struct ibv_sge){.addr = (uintptr_t)at, .length = 64, .lkey = mr->lkey};
	EXPECT_STATUS(run(IBV_WR_RDMA_WRITE, &sge, 1, far.local.addr, far.local.rkey),
		      IBV_WC_LOC_PROT_ERR);
	expect_case("mapped");
	CHECK(mprotect(at, PAGE, PROT_READ | PROT_WRITE) == 0);
	memset(at, 0x61, 64);
	EXPECT_STATUS(run(IBV_WR_RDMA_WRITE, &sge, 1, far.local.addr, far.local.rkey),
		      IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, 0, 0x61, 64));
	expect_case("mapped anew");
	CHECK(mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		   0) == at);
	memset(at, 0x62, 64);
	EXPECT_STATUS(run(IBV_WR_RDMA_WRITE, &sge, 1, far.local.addr, far.local.rkey),
		      IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, 0, 0x62, 64));
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	munmap(at, PAGE);
	ep_pair_close(&near, &far);
}

/* Address 0, length SIZE_MAX: one key for whatever the program maps. */
static void implicit(void)
{
	struct ibv_mr *mr;
	struct ibv_sge sge;
	uint8_t word[64];

	open_pair();
	expect_case("implicit region");
	mr = ibv_reg_mr(near.pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	CHECK(mr);
	memset(word, 0x71, sizeof(word));
	sge = (struct ibv_sge){.addr = (uintptr_t)word, .length = sizeof(word), .lkey = mr->lkey};
	EXPECT_STATUS(run(IBV_WR_RDMA_WRITE, &sge, 1, far.local.addr, far.local.rkey),
		      IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, 0, 0x71, 64));
	expect_case("implicit region: an address that nothing is at");
	sge.addr = 4096;
	EXPECT_STATUS(run(IBV_WR_RDMA_WRITE, &sge, 1, far.local.addr, far.local.rkey),
		      IBV_WC_LOC_PROT_ERR);
	expect_case("implicit region: the pages must be huge? no, but it must be on demand");
	EXPECT_NULL(ibv_reg_mr(near.pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	ep_pair_close(&near, &far);
}

static void reported(void)
{
	struct ibv_device_attr_ex attr;
	struct endpoint ep;
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	const uint32_t reliable = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
				  IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
				  IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV;

	expect_case("odp_caps");
	ep_open(&ep, &config, EP_HERE);
	CHECK(ibv_query_device_ex(ep.context, NULL, &attr) == 0);
	EXPECT_EQ(attr.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	EXPECT_EQ(attr.odp_caps.per_transport_caps.rc_odp_caps & reliable, reliable);
	EXPECT_EQ(attr.odp_caps.per_transport_caps.ud_odp_caps,
		  IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV);
	ep_close(&ep);
}

int main(int argc, char **argv)
{
	place = ep_main(argc, argv);
	reported();
	traffic();
	gone_here();
	gone_there();
	comes_and_goes();
	implicit();
	return expect_done();
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Kinds of ordinary regions: zero-based, huge, of odd lengths, relaxed; ibv_reg_mr_ex(3); each
 * combination of ibv_rereg_mr(3).
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

static struct endpoint near, far;

static void open_pair(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	ep_pair(&near, &far, &config, &config, EP_HERE);
}

static int write_to(uint64_t addr, uint32_t rkey, int byte, uint32_t length)
{
	struct ibv_sge sge = ep_sge(&near, 0, length);
	struct ibv_send_wr wr = ep_wr(IBV_WR_RDMA_WRITE, 1, &sge, 1);
	int status;

	ep_fill(&near, 0, byte, length);
	ep_target(&wr, addr, rkey);
	status = ep_run(&near, &wr);
	if (status != IBV_WC_SUCCESS)
		ep_relink(&near, &far);
	return status;
}

/* IBV_ACCESS_ZERO_BASED: offsets instead of addresses, locally too. */
static void zero_based(void)
{
	struct ibv_mr *mr;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	open_pair();
	mr = ibv_reg_mr(far.pd, far.buffer + 100, 1000, ALL | IBV_ACCESS_ZERO_BASED);
	CHECK(mr);
	expect_case("zero-based, remote");
	EXPECT_STATUS(write_to(0, mr->rkey, 0x11, 10), IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, 100, 0x11, 10));
	EXPECT_STATUS(write_to(990, mr->rkey, 0x12, 10), IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, 1090, 0x12, 10));
	EXPECT_STATUS(write_to(991, mr->rkey, 0x13, 10), IBV_WC_REM_ACCESS_ERR);
	EXPECT_STATUS(write_to((uintptr_t)far.buffer + 100, mr->rkey, 0x13, 10),
		      IBV_WC_REM_ACCESS_ERR);
	expect_case("zero-based, local");
	sge = (struct ibv_sge){.addr = 0, .length = 10, .lkey = mr->lkey};
	wr = ep_wr(IBV_WR_RDMA_WRITE, 2, &sge, 1);
	wr.wr.rdma.remote_addr = near.local.addr + 500;
	wr.wr.rdma.rkey = near.local.rkey;
	CHECK(ep_post_send(&far, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(&far, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&near, 500, 0x11, 10));
	EXPECT(mr->addr == far.buffer + 100);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	ep_pair_close(&near, &far);
}

/* Any address and length, down to a byte and up to what address space gives. */
static void odd_and_huge(void)
{
	const size_t huge = 1ull << 40;
	uint8_t *space = mmap(NULL, huge, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct ibv_mr *mr;

	open_pair();
	expect_case("one byte");
	mr = ibv_reg_mr(far.pd, far.buffer + 333, 1, ALL);
	CHECK(mr);
	EXPECT_STATUS(write_to((uintptr_t)far.buffer + 333, mr->rkey, 0x21, 1), IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, 333, 0x21, 1));
	EXPECT_STATUS(write_to((uintptr_t)far.buffer + 333, mr->rkey, 0x22, 2),
		      IBV_WC_REM_ACCESS_ERR);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	expect_case("no byte");
	mr = ibv_reg_mr(far.pd, far.buffer, 0, ALL);
	CHECK(mr);
	EXPECT_STATUS(write_to((uintptr_t)far.buffer, mr->rkey, 0x23, 1), IBV_WC_REM_ACCESS_ERR);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	expect_case("relaxed ordering and unknown optional bits");
	mr = ibv_reg_mr(far.pd, far.buffer, 64, ALL | IBV_ACCESS_RELAXED_ORDERING | 1 << 29);
	CHECK(mr);
	EXPECT_STATUS(write_to((uintptr_t)far.buffer, mr->rkey, 0x24, 64), IBV_WC_SUCCESS);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	expect_case("huge pages promised: here nothing depends on it");
	mr = ibv_reg_mr(far.pd, far.buffer, 64, ALL | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB);
	CHECK(mr);
	EXPECT_STATUS(write_to((uintptr_t)far.buffer, mr->rkey, 0x26, 64), IBV_WC_SUCCESS);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	expect_case("a terabyte");
	if (space != MAP_FAILED) { /* where the limits allow the mapping */
		mr = ibv_reg_mr(far.pd, space, huge, ALL);
		CHECK(mr);
		EXPECT_STATUS(write_to((uintptr_t)space + huge - 64, mr->rkey, 0x25, 64),
			      IBV_WC_SUCCESS);
		EXPECT(space[huge - 1] == 0x25 && space[huge - 65] == 0);
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
		munmap(space, huge);
	}
	ep_pair_close(&near, &far);
}

/* ibv_reg_mr_ex(3) with an address does what ibv_reg_mr_iova(3) does. */
static void extended(void)
{
	struct ibv_mr_init_attr attr = {
		.length = 4096, .access = ALL, .comp_mask = IBV_REG_MR_MASK_ADDR, .iova = 0x9990};
	struct ibv_mr *mr;

	open_pair();
	attr.addr = far.buffer;
	expect_case("reg_mr_ex: iova not in the mask");
	mr = ibv_reg_mr_ex(far.pd, &attr);
	CHECK(mr);
	EXPECT_STATUS(write_to((uintptr_t)far.buffer, mr->rkey, 0x31, 64), IBV_WC_SUCCESS);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	expect_case("reg_mr_ex: iova in the mask");
	attr.comp_mask |= IBV_REG_MR_MASK_IOVA;
	mr = ibv_reg_mr_ex(far.pd, &attr);
	CHECK(mr);
	EXPECT_STATUS(write_to(0x9990 + 100, mr->rkey, 0x32, 64), IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, 100, 0x32, 64));
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	expect_case("reg_mr_ex: neither address nor descriptor, or both");
	attr.comp_mask = IBV_REG_MR_MASK_IOVA;
	EXPECT_NULL(ibv_reg_mr_ex(far.pd, &attr), EINVAL);
	attr.comp_mask = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_FD;
	EXPECT_NULL(ibv_reg_mr_ex(far.pd, &attr), EINVAL);
	attr.comp_mask = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_FD_OFFSET;
	EXPECT_NULL(ibv_reg_mr_ex(far.pd, &attr), EINVAL);
	ep_pair_close(&near, &far);
}

/*
 * Every combination of what changes: each named property is the new one, the others are the old
 * ones.
 */
static void rereg(int flags)
{
	bool moved = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	bool closed = flags & IBV_REREG_MR_CHANGE_ACCESS;
	bool foreign = flags & IBV_REREG_MR_CHANGE_PD;
	uint64_t old_at, new_at;
	struct ibv_mr *mr;
	int want;

	expect_case("rereg 0x%x", (unsigned int)flags);
	open_pair();
	old_at = (uintptr_t)far.buffer;
	new_at = old_at + 8192;
	mr = ibv_reg_mr(far.pd, far.buffer, 4096, ALL);
	CHECK(mr);
	EXPECT_EQ(ibv_rereg_mr(mr, flags, foreign ? far.other_pd : NULL,
			       moved ? far.buffer + 8192 : NULL, moved ? 2048 : 0,
			       closed ? IBV_ACCESS_LOCAL_WRITE : 0),
		  0);
	EXPECT(mr->pd == (foreign ? far.other_pd : far.pd));
	EXPECT(mr->addr == (moved ? far.buffer + 8192 : far.buffer));
	EXPECT_EQ(mr->length, moved ? 2048 : 4096);
	want = closed || foreign ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS;
	EXPECT_STATUS(write_to(moved ? new_at : old_at, mr->rkey, 0x41, 64), want);
	if (moved) {
		EXPECT_STATUS(write_to(old_at, mr->rkey, 0x42, 64), IBV_WC_REM_ACCESS_ERR);
		EXPECT_STATUS(write_to(new_at + 2047, mr->rkey, 0x42, 2), IBV_WC_REM_ACCESS_ERR);
	}
	expect_case("rereg 0x%x and back", (unsigned int)flags);
	EXPECT_EQ(ibv_rereg_mr(mr, flags, foreign ? far.pd : NULL, moved ? far.buffer : NULL,
			       moved ? 4096 : 0, closed ? ALL : 0),
		  0);
	EXPECT_STATUS(write_to(old_at + 4000, mr->rkey, 0x43, 96), IBV_WC_SUCCESS);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	ep_pair_close(&near, &far);
}

/* A region that is or becomes on demand or zero-based by re-registration. */
static void rereg_kinds(void)
{
	struct ibv_mr *mr;

	open_pair();
	mr = ibv_reg_mr(far.pd, far.buffer, 4096, ALL | IBV_ACCESS_ON_DEMAND);
	CHECK(mr);
	expect_case("rereg: zero-based now");
	EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			       ALL | IBV_ACCESS_ZERO_BASED),
		  0);
	EXPECT_STATUS(write_to(10, mr->rkey, 0x51, 64), IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, 10, 0x51, 64));
	expect_case("rereg: addresses again");
	EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL), 0);
	EXPECT_STATUS(write_to((uintptr_t)far.buffer + 20, mr->rkey, 0x53, 64), IBV_WC_SUCCESS);
	expect_case("rereg: without LOCAL_WRITE");
	EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			       IBV_ACCESS_REMOTE_WRITE),
		  IBV_REREG_MR_ERR_CMD);
	EXPECT_STATUS(write_to(10, mr->rkey, 0x52, 64), IBV_WC_REM_ACCESS_ERR);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	ep_pair_close(&near, &far);
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	zero_based();
	odd_and_huge();
	extended();
	for (int flags = 1; flags <= IBV_REREG_MR_FLAGS_SUPPORTED; flags++)
		rereg(flags);
	rereg_kinds();
	return expect_done();
}

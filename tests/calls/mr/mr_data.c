/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory regions as traffic sees them: iova, overlap, aliases, re-registration, deregistration. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define FULL_ACCESS                                                                  \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

static struct endpoint near, far;

static void open_pair(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	ep_pair(&near, &far, &config, &config, EP_HERE);
}

/* Back to RTS after a row that ended in ERR. */
static void mend(void)
{
	ep_relink(&near, &far);
	while (ep_wait_event(&far, IBV_EVENT_QP_ACCESS_ERR, 5))
		;
}

/* WRITE of @length bytes of @byte to @addr; the completion's status. */
static int write_to(uint64_t addr, uint32_t rkey, int byte, uint32_t length)
{
	struct ibv_sge sge = ep_sge(&near, 0, length);
	struct ibv_send_wr wr = ep_wr(IBV_WR_RDMA_WRITE, 1, &sge, 1);

	ep_fill(&near, 0, byte, length);
	ep_target(&wr, addr, rkey);
	return ep_run(&near, &wr);
}

static int send_into(struct ibv_sge *into, int byte, uint32_t length, int *far_status)
{
	struct ibv_sge sge = ep_sge(&near, 0, length);
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, &sge, 1);
	struct ibv_wc wc;
	int status;

	ep_fill(&near, 0, byte, length);
	CHECK(ep_post_recv(&far, 2, into, 1) == 0);
	CHECK(ep_post_send(&near, &wr) == 0);
	status = ep_poll_one(&near, EP_SEND_CQ, &wc);
	*far_status = ep_poll_one(&far, EP_RECV_CQ, &wc);
	return status;
}

/* Access is by [iova, iova + length), locally as well as remotely. */
static void by_iova(uint64_t iova)
{
	struct ibv_mr *mr;
	struct ibv_sge into;
	int far_status;

	expect_case("iova %#llx: remote", (unsigned long long)iova);
	open_pair();
	mr = ibv_reg_mr_iova(far.pd, far.buffer + 4096, 8192, iova, FULL_ACCESS);
	CHECK(mr);
	EXPECT_STATUS(write_to(iova + 100, mr->rkey, 0x31, 200), IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, 4096 + 100, 0x31, 200));
	expect_case("iova %#llx: local", (unsigned long long)iova);
	into.addr = iova + 1000;
	into.length = 200;
	into.lkey = mr->lkey;
	EXPECT_STATUS(send_into(&into, 0x32, 200, &far_status), IBV_WC_SUCCESS);
	EXPECT_STATUS(far_status, IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, 4096 + 1000, 0x32, 200));
	expect_case("iova %#llx: the last byte and one more", (unsigned long long)iova);
	EXPECT_STATUS(write_to(iova + 8192 - 10, mr->rkey, 0x33, 10), IBV_WC_SUCCESS);
	EXPECT_STATUS(write_to(iova + 8192 - 10, mr->rkey, 0x34, 11), IBV_WC_REM_ACCESS_ERR);
	EXPECT(ep_is_filled(&far, 4096 + 8192 - 10, 0x33, 10));
	mend();
	expect_case("iova %#llx: the address in memory is no address of it",
		    (unsigned long long)iova);
	EXPECT_STATUS(write_to((uintptr_t)far.buffer + 4096, mr->rkey, 0x35, 8),
		      IBV_WC_REM_ACCESS_ERR);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	ep_pair_close(&near, &far);
}

/* Registrations of the same bytes stand side by side and have rights of their own. */
static void overlapping(void)
{
	struct ep_key write, read;

	expect_case("overlapping regions");
	open_pair();
	CHECK(ep_reg(&far, 0, 8192, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, false,
		     &write) == 0);
	CHECK(ep_reg(&far, 4096, 8192, IBV_ACCESS_REMOTE_READ, false, &read) == 0);
	EXPECT_STATUS(write_to(far.local.addr + 5000, write.rkey, 0x41, 100), IBV_WC_SUCCESS);
	EXPECT_STATUS(write_to(far.local.addr + 5000, read.rkey, 0x42, 100), IBV_WC_REM_ACCESS_ERR);
	EXPECT(ep_is_filled(&far, 5000, 0x41, 100));
	mend();
	expect_case("one goes, the other stays");
	EXPECT_EQ(ep_dereg(&far, read.index), 0);
	EXPECT_STATUS(write_to(far.local.addr + 5000, write.rkey, 0x43, 100), IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, 5000, 0x43, 100));
	ep_pair_close(&near, &far);
}

/* Registration copies nothing: another mapping of the same memory shows the write and is shown. */
static void alias(void)
{
	int fd = memfd_create("alias", 0);
	uint8_t *one, *two;
	struct ibv_mr *mr;

	expect_case("two mappings of one file");
	CHECK(fd >= 0 && ftruncate(fd, 8192) == 0);
	one = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(one != MAP_FAILED && two != MAP_FAILED);
	open_pair();
	mr = ibv_reg_mr(far.pd, one, 8192, FULL_ACCESS);
	CHECK(mr);
	EXPECT_STATUS(write_to((uintptr_t)one + 10, mr->rkey, 0x51, 100), IBV_WC_SUCCESS);
	EXPECT_EQ(two[10], 0x51);
	EXPECT_EQ(two[109], 0x51);
	EXPECT_EQ(two[110], 0);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	ep_pair_close(&near, &far);
	munmap(one, 8192);
	munmap(two, 8192);
	close(fd);
}

/* After CHANGE_ACCESS the old right is gone; after CHANGE_TRANSLATION the old addresses are. */
static void reregistered(void)
{
	struct ibv_mr *mr;

	expect_case("rereg: right taken away");
	open_pair();
	mr = ibv_reg_mr(far.pd, far.buffer, 4096, FULL_ACCESS);
	CHECK(mr);
	EXPECT_STATUS(write_to((uintptr_t)far.buffer, mr->rkey, 0x61, 64), IBV_WC_SUCCESS);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ) == 0);
	EXPECT_STATUS(write_to((uintptr_t)far.buffer, mr->rkey, 0x62, 64), IBV_WC_REM_ACCESS_ERR);
	EXPECT(ep_is_filled(&far, 0, 0x61, 64));
	mend();
	expect_case("rereg: right given back");
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, FULL_ACCESS) == 0);
	EXPECT_STATUS(write_to((uintptr_t)far.buffer, mr->rkey, 0x63, 64), IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, 0, 0x63, 64));

	expect_case("rereg: moved");
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, far.buffer + 8192, 4096, 0) ==
	      0);
	EXPECT_STATUS(write_to((uintptr_t)far.buffer + 8192, mr->rkey, 0x64, 64), IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, 8192, 0x64, 64));
	EXPECT_STATUS(write_to((uintptr_t)far.buffer, mr->rkey, 0x65, 64), IBV_WC_REM_ACCESS_ERR);
	EXPECT(ep_is_filled(&far, 0, 0x63, 64));
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	ep_pair_close(&near, &far);
}

/* A posted receive looks its key up when it is used, in the domain of that moment. */
static void receive_after_rereg(void)
{
	struct ibv_sge into;
	struct ibv_mr *mr;
	int far_status;

	expect_case("receive after CHANGE_PD");
	open_pair();
	mr = ibv_reg_mr(far.pd, far.buffer, 4096, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, far.other_pd, NULL, 0, 0) == 0);
	into.addr = (uintptr_t)far.buffer;
	into.length = 64;
	into.lkey = mr->lkey;
	EXPECT_STATUS(send_into(&into, 0x71, 64, &far_status), IBV_WC_REM_OP_ERR);
	EXPECT_STATUS(far_status, IBV_WC_LOC_PROT_ERR);
	expect_case("receive after CHANGE_PD and back");
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, far.pd, NULL, 0, 0) == 0);
	mend();
	into.lkey = mr->lkey;
	EXPECT_STATUS(send_into(&into, 0x72, 64, &far_status), IBV_WC_SUCCESS);
	EXPECT_STATUS(far_status, IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, 0, 0x72, 64));

	expect_case("receive posted, then deregistered");
	{
		struct ibv_sge sge = ep_sge(&near, 0, 64);
		struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, &sge, 1);
		struct ibv_wc wc;

		CHECK(ep_post_recv(&far, 3, &into, 1) == 0);
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
		ep_fill(&near, 0, 0x73, 64);
		CHECK(ep_post_send(&near, &wr) == 0);
		EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_REM_OP_ERR);
		EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_LOC_PROT_ERR);
		EXPECT(ep_is_filled(&far, 0, 0x72, 64));
	}
	ep_pair_close(&near, &far);
}

/* ZERO_BASED: addresses are offsets, on both sides. */
static void zero_based(void)
{
	struct ibv_sge into = {.addr = 50, .length = 64};
	struct ibv_mr *mr;
	int far_status;

	expect_case("zero-based region");
	open_pair();
	mr = ibv_reg_mr(far.pd, far.buffer + 123, 4096, FULL_ACCESS | IBV_ACCESS_ZERO_BASED);
	CHECK(mr);
	EXPECT_STATUS(write_to(10, mr->rkey, 0x91, 20), IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, 133, 0x91, 20));
	into.lkey = mr->lkey;
	EXPECT_STATUS(send_into(&into, 0x92, 64, &far_status), IBV_WC_SUCCESS);
	EXPECT_STATUS(far_status, IBV_WC_SUCCESS);
	EXPECT(ep_is_filled(&far, 173, 0x92, 64));
	EXPECT_STATUS(write_to(4090, mr->rkey, 0x93, 7), IBV_WC_REM_ACCESS_ERR);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	ep_pair_close(&near, &far);
}

/* A region of nothing answers requests of nothing and no others. */
static void of_length_zero(void)
{
	struct ibv_mr *mr;

	expect_case("region of length 0");
	open_pair();
	mr = ibv_reg_mr(far.pd, far.buffer, 0, FULL_ACCESS);
	CHECK(mr);
	EXPECT_STATUS(write_to((uintptr_t)far.buffer, mr->rkey, 0x81, 0), IBV_WC_SUCCESS);
	EXPECT_STATUS(write_to((uintptr_t)far.buffer, mr->rkey, 0x81, 1), IBV_WC_REM_ACCESS_ERR);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	ep_pair_close(&near, &far);
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	by_iova(0x100000);
	by_iova(0);
	by_iova(0x12345);
	by_iova(0xfffffffffff00000);
	overlapping();
	alias();
	reregistered();
	receive_after_rereg();
	zero_based();
	of_length_zero();
	return expect_done();
}

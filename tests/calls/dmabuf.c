/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Regions of a descriptor: ibv_reg_dmabuf_mr(3) and ibv_reg_mr_ex(3) with a descriptor. A memfd stands for the dma-buf: this
 * machine need not have an exporter.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "end.h"
#include "expect.h"

#define PAGE 4096u
#define SIZE (8 * PAGE)
#define ALL                                                                          \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

static struct end near, far;
static int fd;

static void refusals(void)
{
	int reading = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int pipes[2];

	REQUIRE(reading >= 0 && pipe(pipes) == 0);
	expect_case("no descriptor");
	EXPECT_NULL(ibv_reg_dmabuf_mr(far.pd, 0, PAGE, 0, -1, ALL), EBADF);
	EXPECT_NULL(ibv_reg_dmabuf_mr(far.pd, 0, PAGE, 0, 999999, ALL), EBADF);
	expect_case("not to be mapped");
	EXPECT_NULL(ibv_reg_dmabuf_mr(far.pd, 0, PAGE, 0, pipes[0], ALL), EINVAL);
	expect_case("not to be written");
	EXPECT_NULL(ibv_reg_dmabuf_mr(far.pd, 0, PAGE, 0, reading, ALL), EACCES);
	expect_case("length 0");
	EXPECT_NULL(ibv_reg_dmabuf_mr(far.pd, 0, 0, 0, fd, ALL), EINVAL);
	expect_case("beyond its end");
	EXPECT_NULL(ibv_reg_dmabuf_mr(far.pd, PAGE, SIZE, PAGE, fd, ALL), EINVAL);
	EXPECT_NULL(ibv_reg_dmabuf_mr(far.pd, UINT64_MAX - PAGE + 1, SIZE, 0, fd, ALL), EINVAL);
	expect_case("page offsets differ");
	EXPECT_NULL(ibv_reg_dmabuf_mr(far.pd, 100, PAGE, 200, fd, ALL), EINVAL);
	expect_case("flags that a dma-buf does not take");
	EXPECT_NULL(ibv_reg_dmabuf_mr(far.pd, 0, PAGE, 0, fd, ALL | IBV_ACCESS_MW_BIND), EINVAL);
	EXPECT_NULL(ibv_reg_dmabuf_mr(far.pd, 0, PAGE, 0, fd, ALL | IBV_ACCESS_ON_DEMAND), EINVAL);
	EXPECT_NULL(ibv_reg_dmabuf_mr(far.pd, 0, PAGE, 0, fd, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	expect_case("relaxed ordering");
	struct ibv_mr *mr =
		ibv_reg_dmabuf_mr(far.pd, 0, PAGE, 0, fd, ALL | IBV_ACCESS_RELAXED_ORDERING);

	EXPECT(mr != NULL);
	if (mr)
		EXPECT_EQ(ibv_dereg_mr(mr), 0);
	close(reading);
	close(pipes[0]);
	close(pipes[1]);
}

static int request(enum ibv_wr_opcode opcode, uint64_t addr, uint32_t rkey)
{
	struct ibv_sge sge = end_sge(&near, 0, 200);
	struct ibv_send_wr wr = end_wr(opcode, 1, &sge, 1);
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = rkey;
	REQUIRE(end_post_send(&near, &wr) == 0);
	return end_poll_one(&near, END_SEND_CQ, &wc);
}

static bool file_holds(off_t at, int byte, size_t length)
{
	uint8_t data[256];

	REQUIRE(length <= sizeof(data));
	REQUIRE(pread(fd, data, length, at) == (ssize_t)length);
	for (size_t i = 0; i < length; i++)
		if (data[i] != byte)
			return false;
	return true;
}

static void mend(void)
{
	REQUIRE(end_move(&near, IBV_QPS_RESET) == 0);
	REQUIRE(end_move(&far, IBV_QPS_RESET) == 0);
	end_link(&near, &far);
}

/* The region is the range of the file, addressed by its iova; the descriptor may be closed. */
static void traffic(bool ex)
{
	struct ibv_mr_init_attr attr = {
		.length = 2 * PAGE,
		.access = ALL,
		.comp_mask = IBV_REG_MR_MASK_FD | IBV_REG_MR_MASK_FD_OFFSET | IBV_REG_MR_MASK_IOVA,
		.iova = 0x70000064,
		.fd = dup(fd),
		.fd_offset = PAGE + 0x64,
	};
	struct ibv_sge from;
	struct ibv_send_wr wr;
	struct ibv_wc wc;
	struct ibv_mr *mr;

	mr = ex ? ibv_reg_mr_ex(far.pd, &attr)
		: ibv_reg_dmabuf_mr(far.pd, attr.fd_offset, attr.length, attr.iova, attr.fd, ALL);
	REQUIRE(mr);
	close(attr.fd);
	expect_case("WRITE to a dma-buf (%s)", ex ? "reg_mr_ex" : "reg_dmabuf_mr");
	end_fill(&near, 0, 0x51, 200);
	EXPECT_STATUS(request(IBV_WR_RDMA_WRITE, attr.iova + 10, mr->rkey), IBV_WC_SUCCESS);
	EXPECT(file_holds(PAGE + 0x64 + 10, 0x51, 200));
	EXPECT_EQ(mr->length, 2 * PAGE);
	expect_case("READ");
	end_fill(&near, 0, 0, 200);
	EXPECT_STATUS(request(IBV_WR_RDMA_READ, attr.iova + 10, mr->rkey), IBV_WC_SUCCESS);
	EXPECT(end_is_filled(&near, 0, 0x51, 200));
	expect_case("SEND from it");
	from = (struct ibv_sge){.addr = attr.iova + 10, .length = 100, .lkey = mr->lkey};
	wr = end_wr(IBV_WR_RDMA_WRITE, 5, &from, 1);
	wr.wr.rdma.remote_addr = near.info.addr + 1000;
	wr.wr.rdma.rkey = near.info.rkey;
	REQUIRE(end_post_send(&far, &wr) == 0);
	EXPECT_STATUS(end_poll_one(&far, END_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT(end_is_filled(&near, 1000, 0x51, 100));
	expect_case("no re-registration");
	EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL),
		  IBV_REREG_MR_ERR_INPUT);
	expect_case("outside");
	EXPECT_STATUS(request(IBV_WR_RDMA_WRITE, attr.iova + 2 * PAGE - 199, mr->rkey),
		      IBV_WC_REM_ACCESS_ERR);
	mend();
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

/* A file that becomes shorter takes the pages away; that is an error of the request. */
static void truncated(void)
{
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(far.pd, 0, SIZE, 0, fd, ALL);
	struct ibv_sge from;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	REQUIRE(mr && ftruncate(fd, PAGE) == 0);
	expect_case("pages gone: remote");
	EXPECT_STATUS(request(IBV_WR_RDMA_WRITE, 2 * PAGE, mr->rkey), IBV_WC_REM_OP_ERR);
	mend();
	expect_case("pages gone: local");
	from = (struct ibv_sge){.addr = 2 * PAGE, .length = 100, .lkey = mr->lkey};
	wr = end_wr(IBV_WR_SEND, 5, &from, 1);
	REQUIRE(end_post_send(&far, &wr) == 0);
	EXPECT_STATUS(end_poll_one(&far, END_SEND_CQ, &wc), IBV_WC_LOC_PROT_ERR);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

int main(int argc, char **argv)
{
	struct end_config config = end_defaults(IBV_QPT_RC);

	end_main(argc, argv);
	fd = memfd_create("dma", MFD_CLOEXEC);
	REQUIRE(fd >= 0 && ftruncate(fd, SIZE) == 0);
	end_pair(&near, &far, &config, &config, END_HERE);
	refusals();
	traffic(false);
	traffic(true);
	truncated();
	end_pair_close(&near, &far);
	close(fd);
	return expect_done();
}

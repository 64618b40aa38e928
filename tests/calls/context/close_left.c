/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: ibv_close_device(3) of a context whose objects were not destroyed gives back what they
 * held, as the kernel does for an adapter: device memory, XRC domains with their queues and queue
 * pairs, the numbers of thread domains, and the memory of buffers that were freed before their
 * regions. Other contexts of the device can have all of it, however often this happens.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define ROUNDS  100
#define DOMAINS 1000 /* thread domains a round: more than all of the device's in the end */
#define LENGTH  65536

static int file;

static struct ibv_xrcd *domain_open(struct ibv_context *ctx, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = file,
		.oflags = oflags,
	};

	return ibv_open_xrcd(ctx, &attr);
}

static void leave_xrc(struct ibv_context *ctx, struct ibv_pd *pd)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	struct ibv_xrcd *xrcd = domain_open(ctx, O_CREAT | O_EXCL);
	struct ibv_srq_init_attr_ex srq = {
		.attr = {.max_wr = 4, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.cq = cq,
		.xrcd = xrcd,
	};
	struct ibv_qp_init_attr_ex qp = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};

	expect_case("the domain of a context that was closed is no more");
	CHECK(cq && xrcd);
	EXPECT(ibv_create_srq_ex(ctx, &srq) != NULL);
	EXPECT(ibv_create_qp_ex(ctx, &qp) != NULL);
}

static void leave_memory(struct ibv_context *ctx, struct ibv_pd *pd, size_t most)
{
	struct ibv_alloc_dm_attr attr = {.length = most};
	struct ibv_dm *dm = ibv_alloc_dm(ctx, &attr);
	struct ibv_buf *buf;
	char *addr = ibv_alloc_buf(pd, LENGTH, &buf);

	expect_case("all device memory, again and again");
	CHECK(dm && addr);
	EXPECT(ibv_reg_dm_mr(pd, dm, 0, most, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE) !=
	       NULL);
	EXPECT_EQ(ibv_memcpy_to_dm(dm, 0, &most, sizeof(most)), 0);
	EXPECT(ibv_reg_buf_mr(pd, buf, addr, LENGTH, IBV_ACCESS_LOCAL_WRITE) != NULL);
	ibv_free_buf(buf);
}

static void leave_thread_domains(struct ibv_context *ctx)
{
	struct ibv_td_init_attr attr = {.comp_mask = 0};

	expect_case("thread domains");
	for (int i = 0; i < DOMAINS; i++)
		CHECK(ibv_alloc_td(ctx, &attr));
}

int main(int argc, char **argv)
{
	char path[] = "/tmp/vb-left-XXXXXX";
	struct ibv_device_attr_ex attr = {0};
	struct ibv_context *ctx;
	struct ibv_pd *pd;

	ep_main(argc, argv);
	file = mkstemp(path);
	CHECK(file >= 0 && unlink(path) == 0);
	for (int round = 0; round < ROUNDS; round++) {
		ctx = device_open();
		pd = ibv_alloc_pd(ctx);
		CHECK(pd && !ibv_query_device_ex(ctx, NULL, &attr));
		leave_xrc(ctx, pd);
		leave_memory(ctx, pd, attr.max_dm_size);
		leave_thread_domains(ctx);
		EXPECT_EQ(ibv_close_device(ctx), 0);
	}
	close(file);
	return expect_done();
}

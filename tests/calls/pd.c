/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Protection domains: allocation, what keeps one alive (EBUSY), handles that are not theirs. */
#include <infiniband/verbs.h>

#include "end.h"
#include "expect.h"

static char buffer[4096];

static void plain(struct ibv_context *ctx)
{
	struct ibv_pd *pd[32];

	expect_case("alloc and dealloc");
	for (int i = 0; i < 32; i++) {
		pd[i] = ibv_alloc_pd(ctx);
		REQUIRE(pd[i]);
		EXPECT(pd[i]->context == ctx);
	}
	for (int i = 0; i < 32; i++)
		EXPECT_EQ(ibv_dealloc_pd(pd[i]), 0);
}

static void busy_with_mr(struct ibv_context *ctx)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *mr;

	expect_case("EBUSY by MR");
	REQUIRE(pd);
	mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	REQUIRE(mr);
	EXPECT_REFUSED(ibv_dealloc_pd(pd), EBUSY);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}

static void busy_with_ah(struct ibv_context *ctx)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}};
	struct ibv_ah *ah;

	expect_case("EBUSY by AH");
	REQUIRE(pd);
	REQUIRE(ibv_query_gid(ctx, 1, 0, &attr.grh.dgid) == 0);
	ah = ibv_create_ah(pd, &attr);
	REQUIRE(ah);
	EXPECT_REFUSED(ibv_dealloc_pd(pd), EBUSY);
	EXPECT_EQ(ibv_destroy_ah(ah), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}

static void busy_with_srq(struct ibv_context *ctx)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ibv_srq *srq;

	expect_case("EBUSY by SRQ");
	REQUIRE(pd);
	srq = ibv_create_srq(pd, &attr);
	REQUIRE(srq);
	EXPECT_REFUSED(ibv_dealloc_pd(pd), EBUSY);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}

static void busy_with_qp(struct ibv_context *ctx)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 8, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_UD,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp *qp;

	expect_case("EBUSY by QP");
	REQUIRE(pd && cq);
	qp = ibv_create_qp(pd, &attr);
	REQUIRE(qp);
	EXPECT_REFUSED(ibv_dealloc_pd(pd), EBUSY);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

/* Programs that overwrite public fields are refused until the field is right again. */
static void foreign_handle(struct ibv_context *ctx)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_context *other = end_open_device();
	uint32_t handle;

	expect_case("handle overwritten");
	REQUIRE(pd);
	handle = pd->handle;
	pd->handle = 0xdeadbeef;
	EXPECT_REFUSED(ibv_dealloc_pd(pd), ENOENT);
	EXPECT_MSG(!ibv_reg_mr(pd, buffer, sizeof(buffer), 0), "reg_mr took a wrong PD");
	pd->handle = handle;

	expect_case("context overwritten");
	pd->context = other;
	EXPECT_REFUSED(ibv_dealloc_pd(pd), ENOENT);
	pd->context = ctx;
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(other), 0);
}

int main(int argc, char **argv)
{
	struct ibv_context *ctx;

	end_main(argc, argv);
	ctx = end_open_device();
	plain(ctx);
	busy_with_mr(ctx);
	busy_with_ah(ctx);
	busy_with_srq(ctx);
	busy_with_qp(ctx);
	foreign_handle(ctx);
	EXPECT_EQ(ibv_close_device(ctx), 0);
	return expect_done();
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Protection domains: allocation, which objects keep one alive (EBUSY), and handles of another
 * context.
 */
#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

static char buffer[4096];

static void plain(struct ibv_context *ctx)
{
	struct ibv_pd *pd[32];

	expect_case("alloc and dealloc");
	for (int i = 0; i < 32; i++) {
		pd[i] = ibv_alloc_pd(ctx);
		CHECK(pd[i]);
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
	CHECK(pd);
	mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
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
	CHECK(pd);
	CHECK(ibv_query_gid(ctx, 1, 0, &attr.grh.dgid) == 0);
	ah = ibv_create_ah(pd, &attr);
	CHECK(ah);
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
	CHECK(pd);
	srq = ibv_create_srq(pd, &attr);
	CHECK(srq);
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
	CHECK(pd && cq);
	qp = ibv_create_qp(pd, &attr);
	CHECK(qp);
	EXPECT_REFUSED(ibv_dealloc_pd(pd), EBUSY);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

static void busy_with_memory(struct ibv_context *ctx)
{
	struct ibv_alloc_dm_attr dm_attr = {.length = 64};
	struct ibv_parent_domain_init_attr parent_attr = {.pd = ibv_alloc_pd(ctx)};
	struct ibv_pd *pd = parent_attr.pd, *parent;
	struct ibv_dm *dm = ibv_alloc_dm(ctx, &dm_attr);
	struct ibv_buf *buf;
	struct ibv_mr *mr;
	struct ibv_mw *mw;

	CHECK(pd && dm);
	expect_case("EBUSY by the null MR");
	mr = ibv_alloc_null_mr(pd);
	CHECK(mr);
	EXPECT_REFUSED(ibv_dealloc_pd(pd), EBUSY);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	expect_case("EBUSY by an MR of device memory");
	mr = ibv_reg_dm_mr(pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED);
	CHECK(mr);
	EXPECT_REFUSED(ibv_dealloc_pd(pd), EBUSY);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	expect_case("EBUSY by a buffer");
	CHECK(ibv_alloc_buf(pd, 64, &buf));
	EXPECT_REFUSED(ibv_dealloc_pd(pd), EBUSY);
	ibv_free_buf(buf);
	expect_case("EBUSY by a window");
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	CHECK(mw);
	EXPECT_REFUSED(ibv_dealloc_pd(pd), EBUSY);
	EXPECT_EQ(ibv_dealloc_mw(mw), 0);
	expect_case("EBUSY by a parent domain");
	parent = ibv_alloc_parent_domain(ctx, &parent_attr);
	CHECK(parent);
	EXPECT_REFUSED(ibv_dealloc_pd(pd), EBUSY);
	EXPECT_EQ(ibv_dealloc_pd(parent), 0);
	expect_case("nothing stands on it");
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_free_dm(dm), 0);
}

static void busy_with_wq(struct ibv_context *ctx)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 8, NULL, NULL, 0);
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = pd, .cq = cq};
	struct ibv_wq *wq;

	expect_case("EBUSY by WQ");
	CHECK(pd && cq);
	wq = ibv_create_wq(ctx, &attr);
	CHECK(wq);
	EXPECT_REFUSED(ibv_dealloc_pd(pd), EBUSY);
	EXPECT_EQ(ibv_destroy_wq(wq), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

/* Programs that overwrite public fields are refused until the field is right again. */
static void foreign_handle(struct ibv_context *ctx)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_context *other = device_open();
	uint32_t handle;

	expect_case("handle overwritten");
	CHECK(pd);
	handle = pd->handle;
	pd->handle = 0xdeadbeef;
	EXPECT_REFUSED(ibv_dealloc_pd(pd), ENOENT);
	EXPECT_NULL(ibv_reg_mr(pd, buffer, sizeof(buffer), 0), ENOENT);
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

	ep_main(argc, argv);
	ctx = device_open();
	plain(ctx);
	busy_with_mr(ctx);
	busy_with_ah(ctx);
	busy_with_srq(ctx);
	busy_with_qp(ctx);
	busy_with_memory(ctx);
	busy_with_wq(ctx);
	foreign_handle(ctx);
	EXPECT_EQ(ibv_close_device(ctx), 0);
	return expect_done();
}

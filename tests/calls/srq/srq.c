/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared receive queues as objects: bounds, limit, posting, and which objects keep one alive. */
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_device_attr device;

static struct ibv_srq *create(uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = max_wr, .max_sge = max_sge}};

	return ibv_create_srq(pd, &attr);
}

static void bounds(void)
{
	const uint32_t max_wr = (uint32_t)device.max_srq_wr, max_sge = (uint32_t)device.max_srq_sge;
	struct ibv_srq *srq;

	expect_case("max_wr and max_sge bounds");
	EXPECT_NULL(create(0, 1), EINVAL);
	EXPECT_NULL(create(max_wr + 1, 1), EINVAL);
	EXPECT_NULL(create(0xffffffff, 1), EINVAL);
	EXPECT_NULL(create(1, max_sge + 1), EINVAL);
	EXPECT_NULL(create(1, 0xffffffff), EINVAL);
	expect_case("exactly the maximum");
	srq = create(max_wr, 1);
	if (EXPECT(srq != NULL))
		EXPECT_EQ(ibv_destroy_srq(srq), 0);
	srq = create(1, max_sge);
	if (EXPECT(srq != NULL))
		EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

static int post(struct ibv_srq *srq, uint64_t wr_id, int num_sge)
{
	static struct ibv_sge sge[64];
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = sge, .num_sge = num_sge};
	struct ibv_recv_wr *bad = NULL;
	int rc = ibv_post_srq_recv(srq, &wr, &bad);

	EXPECT(!rc || bad == &wr);
	return rc;
}

/* The returned max_wr is exact: that many, and one more is ENOMEM. */
static void posting(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 13, .max_sge = 2, .srq_limit = 5}};
	struct ibv_srq_attr shown;
	struct ibv_srq *srq = ibv_create_srq(pd, &attr);

	expect_case("create");
	CHECK(srq);
	EXPECT(attr.attr.max_wr >= 13 && attr.attr.max_sge >= 2);
	EXPECT(srq->context == ctx && srq->pd == pd);
	CHECK(ibv_query_srq(srq, &shown) == 0);
	EXPECT_EQ(shown.max_wr, attr.attr.max_wr);
	EXPECT_EQ(shown.max_sge, attr.attr.max_sge);
	EXPECT_EQ(shown.srq_limit, 0); /* ignored at creation, ibv_create_srq(3) */

	expect_case("post: too many scatter elements");
	EXPECT_EQ(post(srq, 1, (int)attr.attr.max_sge + 1), EINVAL);
	EXPECT_EQ(post(srq, 1, -1), EINVAL);
	expect_case("post: exactly max_wr");
	for (uint32_t i = 0; i < attr.attr.max_wr; i++)
		EXPECT_EQ(post(srq, i, (int)attr.attr.max_sge), 0);
	EXPECT_EQ(post(srq, 0, 0), ENOMEM);

	expect_case("destroy with receives posted");
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

static void posted_list(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(pd, &attr);
	struct ibv_recv_wr loop = {.wr_id = 1}, *bad = NULL, three[3] = {{0}};

	expect_case("a list with a bad third entry");
	CHECK(srq);
	three[0].next = &three[1];
	three[1].next = &three[2];
	three[2].num_sge = 100;
	EXPECT_EQ(ibv_post_srq_recv(srq, three, &bad), EINVAL);
	EXPECT(bad == &three[2]);
	for (uint32_t i = 2; i < attr.attr.max_wr; i++)
		EXPECT_EQ(post(srq, i, 0), 0);
	EXPECT_EQ(post(srq, 0, 0), ENOMEM); /* two of the list are in */
	EXPECT_EQ(ibv_destroy_srq(srq), 0);

	expect_case("a list that points to itself");
	srq = ibv_create_srq(pd, &attr);
	CHECK(srq);
	loop.next = &loop;
	EXPECT_EQ(ibv_post_srq_recv(srq, &loop, &bad), ENOMEM);
	EXPECT(bad == &loop);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

static void modify(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(pd, &init);
	struct ibv_srq_attr attr = {.srq_limit = 4}, shown;

	expect_case("limit set and read back");
	CHECK(srq);
	for (uint64_t i = 0; i < 8; i++)
		CHECK(post(srq, i, 0) == 0);
	EXPECT_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	EXPECT_EQ(ibv_query_srq(srq, &shown), 0);
	EXPECT_EQ(shown.srq_limit, 4);
	expect_case("limit above max_wr");
	attr.srq_limit = init.attr.max_wr + 1;
	EXPECT_REFUSED(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
	EXPECT_EQ(ibv_query_srq(srq, &shown), 0);
	EXPECT_EQ(shown.srq_limit, 4);
	expect_case("limit 0 disarms");
	attr.srq_limit = 0;
	EXPECT_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	EXPECT_EQ(ibv_query_srq(srq, &shown), 0);
	EXPECT_EQ(shown.srq_limit, 0);
	expect_case("unknown mask bit");
	EXPECT_REFUSED(ibv_modify_srq(srq, &attr, 1 << 5), EINVAL);

	expect_case("resize");
	attr.max_wr = 64;
	if (device.device_cap_flags & IBV_DEVICE_SRQ_RESIZE) {
		EXPECT_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
		EXPECT_EQ(ibv_query_srq(srq, &shown), 0);
		EXPECT(shown.max_wr >= 64);
		for (uint32_t i = 8; i < shown.max_wr; i++)
			EXPECT_EQ(post(srq, i, 0), 0);
		EXPECT_EQ(post(srq, 0, 0), ENOMEM);
		attr.max_wr = 7;
		EXPECT_REFUSED(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	} else {
		int rc = ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);

		EXPECT(rc == EOPNOTSUPP || rc == EINVAL);
		EXPECT_EQ(ibv_query_srq(srq, &shown), 0);
		EXPECT_EQ(shown.max_wr, init.attr.max_wr);
	}
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

static void busy(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad = NULL;
	struct endpoint ep;

	expect_case("EBUSY while a QP uses it");
	config.srq_wr = 8;
	ep_open(&ep, &config, EP_HERE);
	EXPECT_REFUSED(ibv_destroy_srq(ep.srq), EBUSY);
	expect_case("its QP has no receive queue of its own");
	EXPECT_EQ(ibv_post_recv(ep.qp, &wr, &bad), EINVAL);
	EXPECT(bad == &wr);
	EXPECT_EQ(ibv_query_qp(ep.qp, &attr, IBV_QP_CAP, &init), 0);
	EXPECT_EQ(attr.cap.max_recv_wr, 0);
	EXPECT_EQ(attr.cap.max_recv_sge, 0);
	EXPECT(init.srq == ep.srq);
	ep_close(&ep);
}

static void handles(void)
{
	struct ibv_srq *srq = create(8, 1);
	struct ibv_srq_attr shown;
	uint32_t handle;

	expect_case("handle overwritten");
	CHECK(srq);
	handle = srq->handle;
	srq->handle = 0xdeadbeef;
	EXPECT_REFUSED(ibv_destroy_srq(srq), ENOENT);
	srq->handle = handle;
	EXPECT_EQ(ibv_query_srq(srq, &shown), 0);
	expect_case("number of a basic SRQ");
	{
		uint32_t number;
		int rc = ibv_get_srq_num(srq, &number);

		EXPECT(rc == EINVAL || rc == EOPNOTSUPP);
	}
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	ctx = device_open();
	pd = ibv_alloc_pd(ctx);
	CHECK(pd);
	CHECK(ibv_query_device(ctx, &device) == 0);
	bounds();
	posting();
	posted_list();
	modify();
	busy();
	handles();
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(ctx), 0);
	return expect_done();
}

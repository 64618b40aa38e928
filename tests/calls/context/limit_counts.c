/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Each limit on a number of objects is exact: as many can be made, one more is refused with ENOMEM,
 * and after one was destroyed another one fits. The objects have the smallest size, and all are in
 * one process.
 */
#include <stdlib.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_wq *wq;
static struct ibv_ah_attr ah_attr;
static char buffer[64];

static void *make_pd(void)
{
	return ibv_alloc_pd(ctx);
}

static int drop_pd(void *object)
{
	return ibv_dealloc_pd(object);
}

static void *make_cq(void)
{
	return ibv_create_cq(ctx, 1, NULL, NULL, 0);
}

static int drop_cq(void *object)
{
	return ibv_destroy_cq(object);
}

static void *make_mr(void)
{
	return ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
}

static int drop_mr(void *object)
{
	return ibv_dereg_mr(object);
}

static void *make_ah(void)
{
	return ibv_create_ah(pd, &ah_attr);
}

static int drop_ah(void *object)
{
	return ibv_destroy_ah(object);
}

static void *make_srq(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1, .max_sge = 1}};

	return ibv_create_srq(pd, &attr);
}

static int drop_srq(void *object)
{
	return ibv_destroy_srq(object);
}

static void *make_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_UD,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};

	return ibv_create_qp(pd, &attr);
}

static int drop_qp(void *object)
{
	return ibv_destroy_qp(object);
}

static void *make_td(void)
{
	struct ibv_td_init_attr attr = {.comp_mask = 0};

	return ibv_alloc_td(ctx, &attr);
}

static int drop_td(void *object)
{
	return ibv_dealloc_td(object);
}

static void *make_parent(void)
{
	struct ibv_parent_domain_init_attr attr = {.pd = pd};

	return ibv_alloc_parent_domain(ctx, &attr);
}

static void *make_dmah(void)
{
	struct ibv_dmah_init_attr attr = {.comp_mask = 0};

	return ibv_alloc_dmah(ctx, &attr);
}

static int drop_dmah(void *object)
{
	return ibv_dealloc_dmah(object);
}

static void *make_dm(void)
{
	struct ibv_alloc_dm_attr attr = {.length = 64};

	return ibv_alloc_dm(ctx, &attr);
}

static int drop_dm(void *object)
{
	return ibv_free_dm(object);
}

static void *make_wq(void)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = pd, .cq = cq};

	return ibv_create_wq(ctx, &attr);
}

static int drop_wq(void *object)
{
	return ibv_destroy_wq(object);
}

static void *make_table(void)
{
	struct ibv_rwq_ind_table_init_attr attr = {.ind_tbl = &wq};

	return ibv_create_rwq_ind_table(ctx, &attr);
}

static int drop_table(void *object)
{
	return ibv_destroy_rwq_ind_table(object);
}

static void *make_comp_cntr(void)
{
	struct ibv_comp_cntr_init_attr attr = {.type = IBV_COMP_CNTR_TYPE_WRS};

	return ibv_create_comp_cntr(ctx, &attr);
}

static int drop_comp_cntr(void *object)
{
	return ibv_destroy_comp_cntr(object);
}

static void *make_counters(void)
{
	struct ibv_counters_init_attr attr = {.comp_mask = 0};

	return ibv_create_counters(ctx, &attr);
}

static int drop_counters(void *object)
{
	return ibv_destroy_counters(object);
}

/* @there: how many of the kind the test itself holds. */
static void count(const char *name, int limit, int there, void *(*make)(void), int (*drop)(void *))
{
	void **made = calloc((size_t)limit + 1, sizeof(void *));
	int n = 0, refused;

	expect_case("%s: %d", name, limit);
	CHECK(made);
	errno = 0;
	while (n <= limit && (made[n] = make()) != NULL)
		n++;
	refused = errno;
	EXPECT_EQ(n, limit - there);
	EXPECT_EQ(refused, ENOMEM);
	if (n) {
		EXPECT_EQ(drop(made[n / 2]), 0);
		made[n / 2] = make();
		EXPECT_SAY(made[n / 2] != NULL, "none fits after one went");
	}
	for (int i = 0; i < n; i++)
		if (made[i] && drop(made[i])) {
			EXPECT_SAY(false, "object %d does not go", i);
			break;
		}
	free((void *)made);
}

#define MAX_COUNTERS 4096 /* ibv_create_counters(3) */

/* Those that belong to frames, and the counters. */
static void frames_and_counters(void)
{
	struct ibv_comp_cntr_caps caps;
	struct ibv_device_attr_ex device;

	CHECK(ibv_query_device_ex(ctx, NULL, &device) == 0);
	CHECK(ibv_query_comp_cntr_caps(ctx, &caps) == 0);
	wq = make_wq();
	CHECK(wq);
	count("max_wq_type_rq", (int)device.max_wq_type_rq, 1, make_wq, drop_wq);
	count("max_rwq_indirection_tables", (int)device.rss_caps.max_rwq_indirection_tables, 0,
	      make_table, drop_table);
	count("max_counters", (int)caps.max_counters, 0, make_comp_cntr, drop_comp_cntr);
	count("flow counters", MAX_COUNTERS, 0, make_counters, drop_counters);
	EXPECT_EQ(drop_wq(wq), 0);
}

int main(int argc, char **argv)
{
	struct ibv_device_attr device;

	ep_main(argc, argv);
	ctx = device_open();
	CHECK(ibv_query_device(ctx, &device) == 0);
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
	CHECK(pd && cq);
	ah_attr.is_global = 1;
	ah_attr.port_num = 1;
	CHECK(ibv_query_gid(ctx, 1, 0, &ah_attr.grh.dgid) == 0);
	count("max_pd", device.max_pd, 1, make_pd, drop_pd);
	count("max_pd of parent domains", device.max_pd, 1, make_parent, drop_pd);
	count("thread domains", 65535, 0, make_td, drop_td);          /* ibv_alloc_td(3) */
	count("DMA handles", 65536, 0, make_dmah, drop_dmah);         /* ibv_alloc_dmah(3) */
	count("pieces of device memory", 32768, 0, make_dm, drop_dm); /* ibv_alloc_dm(3) */
	count("max_cq", device.max_cq, 1, make_cq, drop_cq);
	count("max_mr", device.max_mr, 0, make_mr, drop_mr);
	count("max_ah", device.max_ah, 0, make_ah, drop_ah);
	count("max_srq", device.max_srq, 0, make_srq, drop_srq);
	count("max_qp", device.max_qp, 0, make_qp, drop_qp);
	frames_and_counters();
	expect_case("close");
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(ctx), 0);
	return expect_done();
}

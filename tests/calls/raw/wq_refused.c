/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What receive work queues, their tables, flow counters and completion counters refuse, row by row,
 * and that what was refused changed nothing: ibv_create_wq(3), ibv_modify_wq(3),
 * ibv_create_rwq_ind_table(3), ibv_attach_counters_point_flow(3), ibv_read_counters(3),
 * ibv_create_comp_cntr(3).
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define COUNT(rows)     (sizeof(rows) / sizeof((rows)[0]))
#define COUNTER_POINTS  32   /* ibv_attach_counters_point_flow(3) */
#define MOST_WORK_QUEUE 1024 /* entries of the largest table that the test has room for */

struct set {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
};

static struct set own, other;
static struct ibv_device_attr_ex device;

static void set_open(struct set *s)
{
	s->ctx = device_open();
	s->pd = ibv_alloc_pd(s->ctx);
	s->cq = ibv_create_cq(s->ctx, 16, NULL, NULL, 0);
	CHECK(s->pd && s->cq);
}

static void set_close(struct set *s)
{
	expect_case("nothing is held");
	EXPECT_EQ(ibv_destroy_cq(s->cq), 0);
	EXPECT_EQ(ibv_dealloc_pd(s->pd), 0);
	EXPECT_EQ(ibv_close_device(s->ctx), 0);
}

static struct ibv_wq_init_attr good(const struct set *s)
{
	struct ibv_wq_init_attr attr = {.wq_context = &device,
					.wq_type = IBV_WQT_RQ,
					.max_wr = 4,
					.max_sge = 2,
					.pd = s->pd,
					.cq = s->cq};

	return attr;
}

static void creation(void)
{
	const uint32_t max_wr = (uint32_t)device.orig_attr.max_qp_wr;
	const uint32_t max_sge = (uint32_t)device.orig_attr.max_sge;
	const struct {
		const char *what;
		uint32_t max_wr, max_sge;
		struct ibv_pd *pd;
		struct ibv_cq *cq;
		uint32_t type, comp_mask, flags;
		int err;
	} rows[] = {
		{"the smallest", 1, 1, own.pd, own.cq, IBV_WQT_RQ, 0, 0, 0},
		{"the largest", max_wr, max_sge, own.pd, own.cq, IBV_WQT_RQ, 0, 0, 0},
		{"no receives", 0, 1, own.pd, own.cq, IBV_WQT_RQ, 0, 0, EINVAL},
		{"one receive too many", max_wr + 1, 1, own.pd, own.cq, IBV_WQT_RQ, 0, 0, EINVAL},
		{"the largest number", UINT32_MAX, 1, own.pd, own.cq, IBV_WQT_RQ, 0, 0, EINVAL},
		{"one piece too many", 1, max_sge + 1, own.pd, own.cq, IBV_WQT_RQ, 0, 0, EINVAL},
		{"the largest number of pieces", 1, UINT32_MAX, own.pd, own.cq, IBV_WQT_RQ, 0, 0,
		 EINVAL},
		{"another context's pd", 1, 1, other.pd, own.cq, IBV_WQT_RQ, 0, 0, ENOENT},
		{"another context's cq", 1, 1, own.pd, other.cq, IBV_WQT_RQ, 0, 0, ENOENT},
		{"type 1", 1, 1, own.pd, own.cq, 1, 0, 0, EINVAL},
		{"type -1", 1, 1, own.pd, own.cq, UINT32_MAX, 0, 0, EINVAL},
		{"the last mask bit", 1, 1, own.pd, own.cq, IBV_WQT_RQ, 1u << 31, 0, EINVAL},
		{"the last flag", 1, 1, own.pd, own.cq, IBV_WQT_RQ, IBV_WQ_INIT_ATTR_FLAGS,
		 1u << 31, EINVAL},
		{"flags without their mask bit are not looked at", 1, 1, own.pd, own.cq, IBV_WQT_RQ,
		 0, 0xff, 0},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct ibv_wq_init_attr attr = good(&own), before;
		struct ibv_wq *wq;

		attr.max_wr = rows[i].max_wr;
		attr.max_sge = rows[i].max_sge;
		attr.pd = rows[i].pd;
		attr.cq = rows[i].cq;
		attr.wq_type = (enum ibv_wq_type)rows[i].type;
		attr.comp_mask = rows[i].comp_mask;
		attr.create_flags = rows[i].flags;
		memcpy(&before, &attr, sizeof(attr));
		expect_case("create_wq: %s", rows[i].what);
		if (rows[i].err) {
			EXPECT_NULL(ibv_create_wq(own.ctx, &attr), rows[i].err);
			EXPECT_UNTOUCHED(attr, before);
			continue;
		}
		wq = ibv_create_wq(own.ctx, &attr);
		if (!EXPECT(wq != NULL))
			continue;
		EXPECT(wq->wq_context == &device && wq->wq_type == IBV_WQT_RQ);
		EXPECT_EQ(attr.max_wr, rows[i].max_wr);
		EXPECT_EQ(attr.max_sge, rows[i].max_sge);
		EXPECT_EQ(ibv_destroy_wq(wq), 0);
	}
}

static int post(struct ibv_wq *wq, int num_sge)
{
	static struct ibv_sge sge[4];
	struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = num_sge}, *bad = NULL;
	int err = ibv_post_wq_recv(wq, &wr, &bad);

	EXPECT(bad == (err ? &wr : NULL));
	return err;
}

/* In RESET, so that each row would take effect if it were not refused. */
static void modify(void)
{
	const uint32_t state = IBV_WQ_ATTR_STATE, current = IBV_WQ_ATTR_CURR_STATE,
		       flags = IBV_WQ_ATTR_FLAGS;
	const struct {
		const char *what;
		struct ibv_wq_attr attr;
		int err;
	} rows[] = {
		{"nothing", {.attr_mask = 0, .wq_state = IBV_WQS_RDY}, 0},
		{"the first unknown bit", {state | 1u << 3, IBV_WQS_RDY, 0, 0, 0}, EINVAL},
		{"the last bit", {state | 1u << 31, IBV_WQS_RDY, 0, 0, 0}, EINVAL},
		{"a state that is none", {state, IBV_WQS_UNKNOWN, 0, 0, 0}, EINVAL},
		{"state -1", {state, (enum ibv_wq_state)UINT32_MAX, 0, 0, 0}, EINVAL},
		{"to ERR", {state, IBV_WQS_ERR, 0, 0, 0}, EINVAL},
		{"not the present state", {state | current, IBV_WQS_RDY, IBV_WQS_RDY, 0, 0}, EINVAL},
		{"a present state that is none",
		 {state | current, IBV_WQS_RDY, IBV_WQS_UNKNOWN, 0, 0},
		 EINVAL},
		{"the present state alone", {current, IBV_WQS_RDY, IBV_WQS_RESET, 0, 0}, 0},
		{"SCATTER_FCS",
		 {state | flags, IBV_WQS_RDY, 0, 0, IBV_WQ_FLAGS_SCATTER_FCS},
		 EOPNOTSUPP},
		{"DELAY_DROP",
		 {state | flags, IBV_WQS_RDY, 0, 0, IBV_WQ_FLAGS_DELAY_DROP},
		 EOPNOTSUPP},
		{"PCI_WRITE_END_PADDING",
		 {state | flags, IBV_WQS_RDY, 0, 0, IBV_WQ_FLAGS_PCI_WRITE_END_PADDING},
		 EOPNOTSUPP},
		{"the last flag", {state | flags, IBV_WQS_RDY, 0, 0, 1u << 31}, EOPNOTSUPP},
		{"flags that are not named",
		 {flags, IBV_WQS_RDY, 0, 0xff, IBV_WQ_FLAGS_CVLAN_STRIPPING},
		 0},
	};
	struct ibv_wq_init_attr init = good(&own);
	struct ibv_wq *wq = ibv_create_wq(own.ctx, &init);

	CHECK(wq);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct ibv_wq_attr attr = rows[i].attr;

		expect_case("modify_wq: %s", rows[i].what);
		if (rows[i].err)
			EXPECT_REFUSED(ibv_modify_wq(wq, &attr), rows[i].err);
		else
			EXPECT_EQ(ibv_modify_wq(wq, &attr), 0);
		EXPECT_EQ(wq->state, IBV_WQS_RESET);
		EXPECT_EQ(post(wq, 0), EINVAL); /* really RESET */
	}
	expect_case("post_wq_recv: pieces");
	CHECK(!ibv_modify_wq(wq,
			     &(struct ibv_wq_attr){.attr_mask = state, .wq_state = IBV_WQS_RDY}));
	EXPECT_EQ(post(wq, -1), EINVAL);
	EXPECT_EQ(post(wq, 3), EINVAL);
	EXPECT_EQ(post(wq, 0), 0);
	EXPECT_EQ(post(wq, 2), 0);
	EXPECT_EQ(ibv_destroy_wq(wq), 0);
}

static void tables(void)
{
	const uint32_t most = device.rss_caps.max_rwq_indirection_table_size;
	struct ibv_wq_init_attr init = good(&own), foreign_init = good(&other);
	struct ibv_wq *wq = ibv_create_wq(own.ctx, &init);
	struct ibv_wq *foreign = ibv_create_wq(other.ctx, &foreign_init);
	struct ibv_wq *entry[MOST_WORK_QUEUE];
	struct ibv_rwq_ind_table_init_attr attr = {.ind_tbl = entry};
	struct ibv_rwq_ind_table *table;
	uint32_t log = 0;

	CHECK(wq && foreign && most && most <= MOST_WORK_QUEUE);
	for (int i = 0; i < MOST_WORK_QUEUE; i++)
		entry[i] = wq;
	while (1u << log < most)
		log++;
	expect_case("create_rwq_ind_table: the largest");
	attr.log_ind_tbl_size = log;
	table = ibv_create_rwq_ind_table(own.ctx, &attr);
	if (EXPECT(table && table->context == own.ctx))
		EXPECT_EQ(ibv_destroy_rwq_ind_table(table), 0);
	for (uint32_t i = log + 1; i; i = i < 33 ? i + 1 : i < UINT32_MAX ? UINT32_MAX : 0) {
		expect_case("create_rwq_ind_table: size 2^%u", i);
		attr.log_ind_tbl_size = i;
		EXPECT_NULL(ibv_create_rwq_ind_table(own.ctx, &attr), EINVAL);
	}
	attr.log_ind_tbl_size = log;
	for (int bit = 0; bit < 32; bit++) {
		expect_case("create_rwq_ind_table: comp_mask bit %d", bit);
		attr.comp_mask = 1u << bit;
		EXPECT_NULL(ibv_create_rwq_ind_table(own.ctx, &attr), EINVAL);
	}
	attr.comp_mask = 0;
	expect_case("create_rwq_ind_table: the last entry is another context's");
	entry[most - 1] = foreign;
	EXPECT_NULL(ibv_create_rwq_ind_table(own.ctx, &attr), EINVAL);
	expect_case("create_rwq_ind_table: no last entry");
	entry[most - 1] = NULL;
	EXPECT_NULL(ibv_create_rwq_ind_table(own.ctx, &attr), EINVAL);
	expect_case("create_rwq_ind_table: refused ones hold no queue");
	EXPECT_EQ(ibv_destroy_wq(wq), 0);
	EXPECT_EQ(ibv_destroy_wq(foreign), 0);
}

static void flow_counters(void)
{
	struct ibv_counters_init_attr init;
	struct ibv_counter_attach_attr attr;
	uint64_t values[3] = {9, 9, 9};
	struct ibv_counters *counters;

	for (int bit = 0; bit < 32; bit++) {
		expect_case("create_counters: comp_mask bit %d", bit);
		init.comp_mask = 1u << bit;
		EXPECT_NULL(ibv_create_counters(own.ctx, &init), EINVAL);
	}
	init.comp_mask = 0;
	counters = ibv_create_counters(own.ctx, &init);
	CHECK(counters);
	for (int bit = 0; bit < 32; bit++) {
		expect_case("attach_counters_point_flow: comp_mask bit %d", bit);
		attr = (struct ibv_counter_attach_attr){.comp_mask = 1u << bit};
		EXPECT_REFUSED(ibv_attach_counters_point_flow(counters, &attr, NULL), EINVAL);
		expect_case("read_counters: flag bit %d", bit);
		if (1u << bit != IBV_READ_COUNTERS_ATTR_PREFER_CACHED)
			EXPECT_REFUSED(ibv_read_counters(counters, values, 3, 1u << bit), EINVAL);
	}
	EXPECT(values[0] == 9 && values[1] == 9 && values[2] == 9);
	expect_case("attach_counters_point_flow: values that are none");
	attr = (struct ibv_counter_attach_attr){
		.counter_desc = (enum ibv_counter_description)(IBV_COUNTER_BYTES + 1)};
	EXPECT_REFUSED(ibv_attach_counters_point_flow(counters, &attr, NULL), ENOTSUP);
	attr.counter_desc = (enum ibv_counter_description)UINT32_MAX;
	EXPECT_REFUSED(ibv_attach_counters_point_flow(counters, &attr, NULL), ENOTSUP);
	expect_case("attach_counters_point_flow: as many points as there may be, and one more");
	for (uint32_t i = 0; i < COUNTER_POINTS; i++) {
		attr = (struct ibv_counter_attach_attr){.counter_desc = IBV_COUNTER_PACKETS,
							.index = UINT32_MAX - i};
		EXPECT_EQ(ibv_attach_counters_point_flow(counters, &attr, NULL), 0);
	}
	EXPECT_REFUSED(ibv_attach_counters_point_flow(counters, &attr, NULL), ENOMEM);
	expect_case("read_counters: none, and indices beyond those asked for");
	EXPECT_EQ(ibv_read_counters(counters, NULL, 0, 0), 0);
	EXPECT_EQ(ibv_read_counters(counters, values, 2, 0), 0);
	EXPECT(values[0] == 0 && values[1] == 0 && values[2] == 9);
	EXPECT_EQ(ibv_destroy_counters(counters), 0);
}

static void completion_counters(void)
{
	struct ibv_comp_cntr_init_attr init = {.type = IBV_COMP_CNTR_TYPE_WRS};
	struct ibv_comp_cntr *cntr, *foreign = ibv_create_comp_cntr(other.ctx, &init);
	struct ibv_qp_attach_comp_cntr_attr attr;
	struct ibv_qp_init_attr qp_init = {
		.send_cq = own.cq, .recv_cq = own.cq, .qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = ibv_create_qp(own.pd, &qp_init);
	uint64_t value = 77;
	uint32_t handle;

	CHECK(foreign && qp);
	for (int bit = 0; bit < 32; bit++) {
		expect_case("create_comp_cntr: comp_mask and flags bit %d", bit);
		init = (struct ibv_comp_cntr_init_attr){.comp_mask = 1u << bit};
		EXPECT_NULL(ibv_create_comp_cntr(own.ctx, &init), EINVAL);
		init = (struct ibv_comp_cntr_init_attr){.flags = 1u << bit};
		EXPECT_NULL(ibv_create_comp_cntr(own.ctx, &init), EINVAL);
	}
	init = (struct ibv_comp_cntr_init_attr){.type = IBV_COMP_CNTR_TYPE_BYTES};
	cntr = ibv_create_comp_cntr(own.ctx, &init);
	CHECK(cntr);
	for (int bit = 0; bit < 32; bit++) {
		expect_case("qp_attach_comp_cntr: comp_mask and op_mask bit %d", bit);
		attr = (struct ibv_qp_attach_comp_cntr_attr){.comp_mask = 1u << bit, .op_mask = 1};
		EXPECT_REFUSED(ibv_qp_attach_comp_cntr(qp, cntr, &attr), EINVAL);
		if (1u << bit <= IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE)
			continue;
		attr = (struct ibv_qp_attach_comp_cntr_attr){.op_mask = 1u << bit | 1};
		EXPECT_REFUSED(ibv_qp_attach_comp_cntr(qp, cntr, &attr), ENOTSUP);
	}
	attr = (struct ibv_qp_attach_comp_cntr_attr){.op_mask = 1};
	expect_case("qp_attach_comp_cntr: another context's counter");
	EXPECT_REFUSED(ibv_qp_attach_comp_cntr(qp, foreign, &attr), ENOENT);
	expect_case("qp_attach_comp_cntr: refused ones attach nothing");
	EXPECT_EQ(ibv_destroy_comp_cntr(foreign), 0);
	EXPECT_EQ(ibv_qp_attach_comp_cntr(qp, cntr, &attr), 0);
	EXPECT_REFUSED(ibv_destroy_comp_cntr(cntr), EBUSY);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	expect_case("handle overwritten");
	handle = cntr->handle;
	cntr->handle = 0xdeadbeef;
	EXPECT_REFUSED(ibv_read_comp_cntr(cntr, &value), ENOENT);
	EXPECT_REFUSED(ibv_read_err_comp_cntr(cntr, &value), ENOENT);
	EXPECT_EQ(value, 77);
	EXPECT_REFUSED(ibv_inc_comp_cntr(cntr, 1), ENOENT);
	EXPECT_REFUSED(ibv_set_err_comp_cntr(cntr, 1), ENOENT);
	cntr->handle = handle;
	EXPECT_EQ(ibv_destroy_comp_cntr(cntr), 0);
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	set_open(&own);
	set_open(&other);
	CHECK(ibv_query_device_ex(own.ctx, NULL, &device) == 0);
	creation();
	modify();
	tables();
	flow_counters();
	completion_counters();
	set_close(&own);
	set_close(&other);
	return expect_done();
}

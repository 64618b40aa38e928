/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a parent domain serves wherever its pd does, in both directions; wrong arguments are
 * refused; what something still uses is not deallocated (ibv_alloc_parent_domain(3)).
 */
#include <infiniband/verbs.h>
#include <string.h>

#include "parent_allocator.h"
#include "support/check.h"
#include "support/endpoint.h"

static struct ibv_pd *parent_of(struct ibv_pd *pd)
{
	struct ibv_parent_domain_init_attr attr = {.pd = pd};
	struct ibv_pd *parent = ibv_alloc_parent_domain(pd->context, &attr);

	CHECK(parent);
	return parent;
}

/* A message between two queue pairs, each of the endpoint's present pd. */
static void send_one(struct side *from, struct side *to)
{
	CHECK_ZERO(post_receive(to, 1, 0, 64));
	memset(from->buffer, 0x5a, 64);
	memset(to->buffer, 0, 64);
	CHECK_ZERO(post_send(from, 2, 0, 64, 0));
	completion_expect(to->endpoint->cq, 1, IBV_WC_SUCCESS, NULL);
	EXPECT(to->buffer[0] == 0x5a && to->buffer[63] == 0x5a);
}

/* A window of the queue pair's domain to a region of the other one. */
static void window_is_bound(struct side *side)
{
	struct ibv_mw *mw = ibv_alloc_mw(side->endpoint->pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {
		.wr_id = 4,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {.mr = side->mr,
			      .addr = (uintptr_t)side->buffer,
			      .length = 64,
			      .mw_access_flags = IBV_ACCESS_REMOTE_READ},
	};

	expect_case("a window of one domain, a region of the other");
	CHECK(mw);
	EXPECT_EQ(ibv_bind_mw(side->qp, mw, &bind), 0);
	completion_expect(side->endpoint->cq, 4, IBV_WC_SUCCESS, NULL);
	EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

/* Queue pairs of one domain use regions of the other, locally and remotely. */
static void keys_are_shared(struct endpoint *e, struct ibv_pd *qps, struct ibv_pd *regions)
{
	struct side a, b;
	struct ibv_mr *was;

	expect_case("queue pairs of one domain, regions of the other");
	e->pd = qps;
	side_open(&a, e, NULL, NULL, 4096);
	side_open(&b, e, NULL, NULL, 4096);
	was = b.mr;
	CHECK_ZERO(ibv_dereg_mr(a.mr));
	a.mr = ibv_reg_mr(regions, a.buffer, a.size, ENDPOINT_ALL_ACCESS | IBV_ACCESS_MW_BIND);
	b.mr = ibv_reg_mr(regions, b.buffer, b.size, ENDPOINT_ALL_ACCESS);
	CHECK(a.mr && b.mr);
	a.local.rkey = a.mr->rkey;
	b.local.rkey = b.mr->rkey;
	sides_connect(&a, &b);
	send_one(&a, &b);
	CHECK_ZERO(post_write(&a, 3, 0, 64, 128, IBV_SEND_SIGNALED));
	completion_expect(e->cq, 3, IBV_WC_SUCCESS, NULL);
	EXPECT(b.buffer[128] == 0x5a);
	window_is_bound(&a);
	expect_case("rereg_mr to the other domain");
	EXPECT_EQ(ibv_rereg_mr(was, IBV_REREG_MR_CHANGE_PD, regions, NULL, 0, 0), 0);
	EXPECT(was->pd == regions);
	CHECK_ZERO(ibv_dereg_mr(was));
	side_close(&a);
	side_close(&b);
}

static void address_handles_are_shared(struct endpoint *e, struct ibv_pd *qps, struct ibv_pd *ahs)
{
	struct qp_settings ud;
	struct side a, b;
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}};

	expect_case("address handles of the other domain");
	qp_settings_default(&ud, IBV_QPT_UD);
	e->pd = qps;
	side_open(&a, e, &ud, NULL, 4096);
	side_open(&b, e, &ud, NULL, 4096);
	sides_connect(&a, &b);
	CHECK_ZERO(ibv_destroy_ah(a.ah));
	attr.grh.dgid = e->gid;
	a.ah = ibv_create_ah(ahs, &attr);
	CHECK(a.ah);
	CHECK_ZERO(post_receive(&b, 1, 0, 256));
	CHECK_ZERO(post_send(&a, 2, 0, 64, 0));
	completion_expect(e->cq, 1, IBV_WC_SUCCESS, NULL);
	side_close(&a);
	side_close(&b);
}

static void receive_queues_are_shared(struct endpoint *e, struct ibv_pd *qps, struct ibv_pd *srqs)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct qp_settings settings;
	struct side a, b;
	struct ibv_recv_wr *bad;

	expect_case("a shared receive queue of the other domain");
	qp_settings_default(&settings, IBV_QPT_RC);
	settings.srq = ibv_create_srq(srqs, &init);
	CHECK(settings.srq);
	e->pd = qps;
	side_open(&a, e, &settings, NULL, 4096);
	side_open(&b, e, &settings, NULL, 4096);
	sides_connect(&a, &b);
	struct ibv_sge sge = {(uintptr_t)b.buffer, 64, b.mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};

	CHECK_ZERO(ibv_post_srq_recv(settings.srq, &wr, &bad));
	CHECK_ZERO(post_send(&a, 2, 0, 64, 0));
	completion_expect(e->cq, 1, IBV_WC_SUCCESS, NULL);
	side_close(&a);
	side_close(&b);
	CHECK_ZERO(ibv_destroy_srq(settings.srq));
}

/*
 * A window and its region (which ibv_bind_mw(3) itself wants to be of one pd pointer), bound on a
 * queue pair of the other domain.
 */
static void windows_are_shared(struct endpoint *e, struct ibv_pd *qps, struct ibv_pd *windows)
{
	struct ibv_mw *mw = ibv_alloc_mw(windows, IBV_MW_TYPE_1);
	struct side a, b;
	struct ibv_mw_bind bind = {.wr_id = 9, .send_flags = IBV_SEND_SIGNALED};

	expect_case("a window of the other domain");
	CHECK(mw);
	e->pd = qps;
	side_open(&a, e, NULL, NULL, 4096);
	side_open(&b, e, NULL, NULL, 4096);
	sides_connect(&a, &b);
	bind.bind_info.mr =
		ibv_reg_mr(windows, b.buffer, b.size, ENDPOINT_ALL_ACCESS | IBV_ACCESS_MW_BIND);
	CHECK(bind.bind_info.mr);
	bind.bind_info.addr = (uintptr_t)b.buffer;
	bind.bind_info.length = b.size;
	bind.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
	EXPECT_EQ(ibv_bind_mw(b.qp, mw, &bind), 0);
	completion_expect(e->cq, 9, IBV_WC_SUCCESS, NULL);
	a.remote.rkey = mw->rkey;
	memset(a.buffer, 0x77, 64);
	CHECK_ZERO(post_write(&a, 3, 0, 64, 128, IBV_SEND_SIGNALED));
	completion_expect(e->cq, 3, IBV_WC_SUCCESS, NULL);
	EXPECT(b.buffer[128] == 0x77);
	EXPECT_EQ(ibv_dealloc_mw(mw), 0);
	CHECK_ZERO(ibv_dereg_mr(bind.bind_info.mr));
	side_close(&a);
	side_close(&b);
}

/*
 * Regions over memory of the device's, registered on the other domain than the queue pairs are of.
 */
static void device_memory_is_shared(struct endpoint *e, struct ibv_pd *qps, struct ibv_pd *other)
{
	struct ibv_alloc_dm_attr attr = {.length = 4096};
	struct ibv_dm *dm = ibv_alloc_dm(e->context, &attr);
	struct ibv_buf *buf = NULL;
	void *memory = ibv_alloc_buf(other, 4096, &buf);
	struct ibv_mr *dm_mr, *buf_mr;
	struct side a, b;
	uint64_t word = 0;

	expect_case("device memory and buffers of the other domain");
	CHECK(dm && memory);
	dm_mr = ibv_reg_dm_mr(other, dm, 0, 4096, ENDPOINT_ALL_ACCESS | IBV_ACCESS_ZERO_BASED);
	buf_mr = ibv_reg_buf_mr(qps, buf, memory, 4096, ENDPOINT_ALL_ACCESS);
	CHECK(dm_mr && buf_mr);
	e->pd = qps;
	side_open(&a, e, NULL, NULL, 4096);
	side_open(&b, e, NULL, NULL, 4096);
	sides_connect(&a, &b);
	memset(a.buffer, 0x66, 64);
	a.remote.rkey = dm_mr->rkey;
	a.remote.addr = 0;
	CHECK_ZERO(post_write(&a, 3, 0, 64, 0, IBV_SEND_SIGNALED));
	completion_expect(e->cq, 3, IBV_WC_SUCCESS, NULL);
	EXPECT_EQ(ibv_memcpy_from_dm(&word, dm, 0, sizeof(word)), 0);
	EXPECT(word == 0x6666666666666666u);
	EXPECT_EQ(ibv_dereg_mr(dm_mr), 0);
	EXPECT_EQ(ibv_dereg_mr(buf_mr), 0);
	EXPECT_EQ(ibv_free_dm(dm), 0);
	ibv_free_buf(buf);
	side_close(&a);
	side_close(&b);
}

static void work_queues(struct endpoint *e, struct ibv_pd *pd)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = pd, .cq = e->cq};
	struct ibv_wq *wq = ibv_create_wq(e->context, &attr);

	expect_case("a receive work queue");
	EXPECT(wq && wq->pd == pd && ibv_destroy_wq(wq) == 0);
}

static void interchangeable(struct endpoint *e)
{
	struct ibv_pd *pd = e->pd;
	struct ibv_pd *parent = parent_of(pd);
	struct ibv_pd *grand = parent_of(parent);
	struct ibv_pd *pairs[][2] = {{parent, pd}, {pd, parent}, {parent, parent}, {grand, pd}};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		keys_are_shared(e, pairs[i][0], pairs[i][1]);
		address_handles_are_shared(e, pairs[i][0], pairs[i][1]);
		receive_queues_are_shared(e, pairs[i][0], pairs[i][1]);
		windows_are_shared(e, pairs[i][0], pairs[i][1]);
		device_memory_is_shared(e, pairs[i][0], pairs[i][1]);
		work_queues(e, pairs[i][0]);
	}
	e->pd = pd;
	expect_case("deallocating");
	EXPECT_REFUSED(ibv_dealloc_pd(pd), EBUSY);
	EXPECT_REFUSED(ibv_dealloc_pd(parent), EBUSY);
	EXPECT_EQ(ibv_dealloc_pd(grand), 0);
	EXPECT_EQ(ibv_dealloc_pd(parent), 0);
}

/* What is of another pd stays foreign. */
static void other_domains_are_foreign(struct endpoint *e)
{
	struct ibv_pd *pd = e->pd;
	struct ibv_pd *other = ibv_alloc_pd(e->context);
	struct side a, b;

	expect_case("a region of another pd's parent domain");
	CHECK(other);
	struct ibv_pd *parent = parent_of(other);

	side_open(&a, e, NULL, NULL, 4096);
	side_open(&b, e, NULL, NULL, 4096);
	CHECK_ZERO(ibv_dereg_mr(b.mr));
	b.mr = ibv_reg_mr(parent, b.buffer, b.size, ENDPOINT_ALL_ACCESS);
	CHECK(b.mr);
	b.local.rkey = b.mr->rkey;
	sides_connect(&a, &b);
	CHECK_ZERO(post_write(&a, 1, 0, 64, 0, IBV_SEND_SIGNALED));
	completion_expect(e->cq, 1, IBV_WC_REM_ACCESS_ERR, NULL);
	side_close(&a);
	side_close(&b);
	EXPECT_EQ(ibv_dealloc_pd(parent), 0);
	EXPECT_EQ(ibv_dealloc_pd(other), 0);
	e->pd = pd;
}

static void busy_with(struct endpoint *e)
{
	struct ibv_td_init_attr td_attr = {.comp_mask = 0};
	struct ibv_td *td = ibv_alloc_td(e->context, &td_attr);
	struct ibv_parent_domain_init_attr attr = {.pd = e->pd, .td = td};
	struct ibv_pd *parent, *second;
	struct side a;
	struct ibv_pd *pd = e->pd;

	CHECK(td);
	parent = ibv_alloc_parent_domain(e->context, &attr);
	second = ibv_alloc_parent_domain(e->context, &attr);
	CHECK(parent && second);
	expect_case("busy: thread domain by parent domains, parent domain by objects");
	EXPECT_REFUSED(ibv_dealloc_td(td), EBUSY);
	EXPECT_EQ(ibv_dealloc_pd(second), 0);
	EXPECT_REFUSED(ibv_dealloc_td(td), EBUSY);
	e->pd = parent;
	side_open(&a, e, NULL, NULL, 4096);
	EXPECT_REFUSED(ibv_dealloc_pd(parent), EBUSY);
	EXPECT_REFUSED(ibv_dealloc_pd(pd), EBUSY);
	struct ibv_mr *mr = a.mr;

	CHECK_ZERO(ibv_destroy_qp(a.qp));
	EXPECT_REFUSED(ibv_dealloc_pd(parent), EBUSY);
	CHECK_ZERO(ibv_dereg_mr(mr));
	struct ibv_cq_init_attr_ex cq_attr = {
		.cqe = 4,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = parent,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(e->context, &cq_attr);

	CHECK(cq);
	EXPECT_REFUSED(ibv_dealloc_pd(parent), EBUSY);
	CHECK_ZERO(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	EXPECT_EQ(ibv_dealloc_pd(parent), 0);
	EXPECT_EQ(ibv_dealloc_td(td), 0);
	e->pd = pd;
}

static void *a_function_of_nobody(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
				  uint64_t type)
{
	(void)pd;
	(void)context;
	(void)size;
	(void)alignment;
	(void)type;
	CHECK(!"called");
	return NULL;
}

static void wrong_arguments(struct endpoint *e)
{
	struct allocator a;
	struct ibv_context *other = device_open();
	struct ibv_td_init_attr td_attr = {.comp_mask = 0};
	struct ibv_td *foreign_td = ibv_alloc_td(other, &td_attr);
	struct ibv_pd *foreign_pd = ibv_alloc_pd(other);
	struct ibv_parent_domain_init_attr attr;

	CHECK(foreign_td && foreign_pd);
	allocator_init(&a);
	expect_case("attr NULL");
	EXPECT_NULL(ibv_alloc_parent_domain(e->context, NULL), EINVAL);
	expect_case("pd NULL");
	attr = allocator_attr(&a, NULL);
	EXPECT_NULL(ibv_alloc_parent_domain(e->context, &attr), EINVAL);
	for (int bit = 3; bit < 32; bit++) {
		expect_case("unknown comp_mask bit %d", bit);
		attr = allocator_attr(&a, e->pd);
		attr.comp_mask |= 1u << bit;
		EXPECT_NULL(ibv_alloc_parent_domain(e->context, &attr), EINVAL);
	}
	expect_case("alloc without free");
	attr = allocator_attr(&a, e->pd);
	attr.free = NULL;
	EXPECT_NULL(ibv_alloc_parent_domain(e->context, &attr), EINVAL);
	expect_case("free without alloc");
	attr = allocator_attr(&a, e->pd);
	attr.alloc = NULL;
	EXPECT_NULL(ibv_alloc_parent_domain(e->context, &attr), EINVAL);
	expect_case("pd of another context");
	attr = allocator_attr(&a, foreign_pd);
	EXPECT_NULL(ibv_alloc_parent_domain(e->context, &attr), ENOENT);
	expect_case("td of another context");
	attr = allocator_attr(&a, e->pd);
	attr.td = foreign_td;
	EXPECT_NULL(ibv_alloc_parent_domain(e->context, &attr), EINVAL);
	expect_case("functions that the mask does not announce are not looked at");
	attr = (struct ibv_parent_domain_init_attr){
		.pd = e->pd, .alloc = a_function_of_nobody, .pd_context = &a};
	struct ibv_pd *plain = ibv_alloc_parent_domain(e->context, &attr);

	EXPECT(plain && ibv_dealloc_pd(plain) == 0);
	expect_case("the flag for confidential guests is accepted");
	attr = (struct ibv_parent_domain_init_attr){
		.pd = e->pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC};
	struct ibv_pd *parent = ibv_alloc_parent_domain(e->context, &attr);

	EXPECT(parent && ibv_dealloc_pd(parent) == 0);
	expect_case("create_cq_ex");
	struct ibv_cq_init_attr_ex cq = {
		.cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD};

	EXPECT_NULL(ibv_create_cq_ex(e->context, &cq), EINVAL);
	cq.parent_domain = e->pd; /* no parent domain */
	EXPECT_NULL(ibv_create_cq_ex(e->context, &cq), EINVAL);
	cq.parent_domain = foreign_pd;
	EXPECT_NULL(ibv_create_cq_ex(e->context, &cq), ENOENT);
	EXPECT_EQ(a.allocs + a.frees, 0);
	/* Each refusal left no reference behind. */
	CHECK_ZERO(ibv_dealloc_td(foreign_td));
	CHECK_ZERO(ibv_dealloc_pd(foreign_pd));
	CHECK_ZERO(ibv_close_device(other));
}

int main(void)
{
	struct endpoint e;

	endpoint_open(&e, 64, false);
	interchangeable(&e);
	other_domains_are_foreign(&e);
	busy_with(&e);
	wrong_arguments(&e);
	endpoint_close(&e);
	return expect_done();
}

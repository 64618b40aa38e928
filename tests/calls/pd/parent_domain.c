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

/* A message between two queue pairs, each of the domain that the resources name at present. */
static void send_one(struct endpoint *from, struct endpoint *to)
{
	CHECK_ZERO(ep_recv(to, 1, 0, 64));
	memset(from->buffer, 0x5a, 64);
	memset(to->buffer, 0, 64);
	CHECK_ZERO(ep_send(from, 2, 0, 64, 0));
	completion_expect(to->resources->cq, 1, IBV_WC_SUCCESS, NULL);
	EXPECT(to->buffer[0] == 0x5a && to->buffer[63] == 0x5a);
}

/* A window of the queue pair's domain to a region of the other one. */
static void window_is_bound(struct endpoint *ep)
{
	struct ibv_mw *mw = ibv_alloc_mw(ep->resources->pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {
		.wr_id = 4,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {.mr = ep->mr,
			      .addr = (uintptr_t)ep->buffer,
			      .length = 64,
			      .mw_access_flags = IBV_ACCESS_REMOTE_READ},
	};

	expect_case("a window of one domain, a region of the other");
	CHECK(mw);
	EXPECT(mw->pd ==
	       ep->mr->pd); /* what the inline ibv_bind_mw(3) of rdma-core's header wants */
	EXPECT_EQ(ibv_bind_mw(ep->qp, mw, &bind), 0);
	completion_expect(ep->resources->cq, 4, IBV_WC_SUCCESS, NULL);
	EXPECT_EQ(ibv_dealloc_mw(mw), 0);
}

/* Queue pairs of one domain use regions of the other, locally and remotely. */
static void keys_are_shared(struct resources *r, struct ibv_pd *qps, struct ibv_pd *regions)
{
	struct endpoint a, b;
	struct ibv_mr *was;
	struct ibv_pd *own;

	expect_case("queue pairs of one domain, regions of the other");
	r->pd = qps;
	ep_open_on(&a, r, NULL, NULL, 4096);
	ep_open_on(&b, r, NULL, NULL, 4096);
	was = b.mr;
	own = was->pd;
	CHECK_ZERO(ibv_dereg_mr(a.mr));
	a.mr = ibv_reg_mr(regions, a.buffer, a.size, EP_ACCESS | IBV_ACCESS_MW_BIND);
	b.mr = ibv_reg_mr(regions, b.buffer, b.size, EP_ACCESS);
	CHECK(a.mr && b.mr);
	a.local.rkey = a.mr->rkey;
	b.local.rkey = b.mr->rkey;
	ep_link(&a, &b);
	send_one(&a, &b);
	CHECK_ZERO(ep_write(&a, 3, 0, 64, 128, IBV_SEND_SIGNALED));
	completion_expect(r->cq, 3, IBV_WC_SUCCESS, NULL);
	EXPECT(b.buffer[128] == 0x5a);
	window_is_bound(&a);
	expect_case("rereg_mr to the other domain");
	EXPECT_EQ(ibv_rereg_mr(was, IBV_REREG_MR_CHANGE_PD, regions, NULL, 0, 0), 0);
	EXPECT(was->pd == own);
	CHECK_ZERO(ibv_dereg_mr(was));
	ep_close(&a);
	ep_close(&b);
}

static void address_handles_are_shared(struct resources *r, struct ibv_pd *qps, struct ibv_pd *ahs)
{
	struct ep_config ud;
	struct endpoint a, b;
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}};

	expect_case("address handles of the other domain");
	ud = ep_defaults(IBV_QPT_UD);
	r->pd = qps;
	ep_open_on(&a, r, &ud, NULL, 4096);
	ep_open_on(&b, r, &ud, NULL, 4096);
	ep_link(&a, &b);
	attr.grh.dgid = r->gid;
	a.ah = ibv_create_ah(ahs, &attr);
	CHECK(a.ah);
	CHECK_ZERO(ep_recv(&b, 1, 0, 256));
	CHECK_ZERO(ep_send(&a, 2, 0, 64, 0));
	completion_expect(r->cq, 1, IBV_WC_SUCCESS, NULL);
	ep_close(&a);
	ep_close(&b);
}

static void receive_queues_are_shared(struct resources *r, struct ibv_pd *qps, struct ibv_pd *srqs)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ep_config config;
	struct endpoint a, b;
	struct ibv_recv_wr *bad;

	expect_case("a shared receive queue of the other domain");
	config = ep_defaults(IBV_QPT_RC);
	config.srq = ibv_create_srq(srqs, &init);
	CHECK(config.srq);
	r->pd = qps;
	ep_open_on(&a, r, &config, NULL, 4096);
	ep_open_on(&b, r, &config, NULL, 4096);
	ep_link(&a, &b);
	struct ibv_sge sge = {(uintptr_t)b.buffer, 64, b.mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};

	CHECK_ZERO(ibv_post_srq_recv(config.srq, &wr, &bad));
	CHECK_ZERO(ep_send(&a, 2, 0, 64, 0));
	completion_expect(r->cq, 1, IBV_WC_SUCCESS, NULL);
	ep_close(&a);
	ep_close(&b);
	CHECK_ZERO(ibv_destroy_srq(config.srq));
}

/* A window and its region, bound on a queue pair of the other domain. */
static void windows_are_shared(struct resources *r, struct ibv_pd *qps, struct ibv_pd *windows)
{
	struct ibv_mw *mw = ibv_alloc_mw(windows, IBV_MW_TYPE_1);
	struct endpoint a, b;
	struct ibv_mw_bind bind = {.wr_id = 9, .send_flags = IBV_SEND_SIGNALED};

	expect_case("a window of the other domain");
	CHECK(mw);
	r->pd = qps;
	ep_open_on(&a, r, NULL, NULL, 4096);
	ep_open_on(&b, r, NULL, NULL, 4096);
	ep_link(&a, &b);
	bind.bind_info.mr = ibv_reg_mr(windows, b.buffer, b.size, EP_ACCESS | IBV_ACCESS_MW_BIND);
	CHECK(bind.bind_info.mr);
	bind.bind_info.addr = (uintptr_t)b.buffer;
	bind.bind_info.length = b.size;
	bind.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
	EXPECT_EQ(ibv_bind_mw(b.qp, mw, &bind), 0);
	completion_expect(r->cq, 9, IBV_WC_SUCCESS, NULL);
	a.remote.rkey = mw->rkey;
	memset(a.buffer, 0x77, 64);
	CHECK_ZERO(ep_write(&a, 3, 0, 64, 128, IBV_SEND_SIGNALED));
	completion_expect(r->cq, 3, IBV_WC_SUCCESS, NULL);
	EXPECT(b.buffer[128] == 0x77);
	EXPECT_EQ(ibv_dealloc_mw(mw), 0);
	CHECK_ZERO(ibv_dereg_mr(bind.bind_info.mr));
	ep_close(&a);
	ep_close(&b);
}

/*
 * Regions over memory of the device's, registered on the other domain than the queue pairs are of.
 */
static void device_memory_is_shared(struct resources *r, struct ibv_pd *qps, struct ibv_pd *other)
{
	struct ibv_alloc_dm_attr attr = {.length = 4096};
	struct ibv_dm *dm = ibv_alloc_dm(r->context, &attr);
	struct ibv_buf *buf = NULL;
	void *memory = ibv_alloc_buf(other, 4096, &buf);
	struct ibv_mr *dm_mr, *buf_mr;
	struct endpoint a, b;
	uint64_t word = 0;

	expect_case("device memory and buffers of the other domain");
	CHECK(dm && memory);
	dm_mr = ibv_reg_dm_mr(other, dm, 0, 4096, EP_ACCESS | IBV_ACCESS_ZERO_BASED);
	buf_mr = ibv_reg_buf_mr(qps, buf, memory, 4096, EP_ACCESS);
	CHECK(dm_mr && buf_mr);
	r->pd = qps;
	ep_open_on(&a, r, NULL, NULL, 4096);
	ep_open_on(&b, r, NULL, NULL, 4096);
	ep_link(&a, &b);
	memset(a.buffer, 0x66, 64);
	a.remote.rkey = dm_mr->rkey;
	a.remote.addr = 0;
	CHECK_ZERO(ep_write(&a, 3, 0, 64, 0, IBV_SEND_SIGNALED));
	completion_expect(r->cq, 3, IBV_WC_SUCCESS, NULL);
	EXPECT_EQ(ibv_memcpy_from_dm(&word, dm, 0, sizeof(word)), 0);
	EXPECT(word == 0x6666666666666666u);
	EXPECT_EQ(ibv_dereg_mr(dm_mr), 0);
	EXPECT_EQ(ibv_dereg_mr(buf_mr), 0);
	EXPECT_EQ(ibv_free_dm(dm), 0);
	ibv_free_buf(buf);
	ep_close(&a);
	ep_close(&b);
}

static void work_queues(struct resources *r, struct ibv_pd *pd)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = pd, .cq = r->cq};
	struct ibv_wq *wq = ibv_create_wq(r->context, &attr);

	expect_case("a receive work queue");
	EXPECT(wq && wq->pd == pd && ibv_destroy_wq(wq) == 0);
}

static void interchangeable(struct resources *r)
{
	struct ibv_pd *pd = r->pd;
	struct ibv_pd *parent = parent_of(pd);
	struct ibv_pd *grand = parent_of(parent);
	struct ibv_pd *pairs[][2] = {{parent, pd}, {pd, parent}, {parent, parent}, {grand, pd}};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		keys_are_shared(r, pairs[i][0], pairs[i][1]);
		address_handles_are_shared(r, pairs[i][0], pairs[i][1]);
		receive_queues_are_shared(r, pairs[i][0], pairs[i][1]);
		windows_are_shared(r, pairs[i][0], pairs[i][1]);
		device_memory_is_shared(r, pairs[i][0], pairs[i][1]);
		work_queues(r, pairs[i][0]);
	}
	r->pd = pd;
	expect_case("deallocating");
	EXPECT_REFUSED(ibv_dealloc_pd(pd), EBUSY);
	EXPECT_REFUSED(ibv_dealloc_pd(parent), EBUSY);
	EXPECT_EQ(ibv_dealloc_pd(grand), 0);
	EXPECT_EQ(ibv_dealloc_pd(parent), 0);
}

/* What is of another pd stays foreign. */
static void other_domains_are_foreign(struct resources *r)
{
	struct ibv_pd *pd = r->pd;
	struct ibv_pd *other = ibv_alloc_pd(r->context);
	struct endpoint a, b;

	expect_case("a region of another pd's parent domain");
	CHECK(other);
	struct ibv_pd *parent = parent_of(other);

	ep_open_on(&a, r, NULL, NULL, 4096);
	ep_open_on(&b, r, NULL, NULL, 4096);
	CHECK_ZERO(ibv_dereg_mr(b.mr));
	b.mr = ibv_reg_mr(parent, b.buffer, b.size, EP_ACCESS);
	CHECK(b.mr);
	b.local.rkey = b.mr->rkey;
	ep_link(&a, &b);
	CHECK_ZERO(ep_write(&a, 1, 0, 64, 0, IBV_SEND_SIGNALED));
	completion_expect(r->cq, 1, IBV_WC_REM_ACCESS_ERR, NULL);
	ep_close(&a);
	ep_close(&b);
	EXPECT_EQ(ibv_dealloc_pd(parent), 0);
	EXPECT_EQ(ibv_dealloc_pd(other), 0);
	r->pd = pd;
}

static void busy_with(struct resources *r)
{
	struct ibv_td_init_attr td_attr = {.comp_mask = 0};
	struct ibv_td *td = ibv_alloc_td(r->context, &td_attr);
	struct ibv_parent_domain_init_attr attr = {.pd = r->pd, .td = td};
	struct ibv_pd *parent, *second;
	struct endpoint a;
	struct ibv_pd *pd = r->pd;

	CHECK(td);
	parent = ibv_alloc_parent_domain(r->context, &attr);
	second = ibv_alloc_parent_domain(r->context, &attr);
	CHECK(parent && second);
	expect_case("busy: thread domain by parent domains, parent domain by objects");
	EXPECT_REFUSED(ibv_dealloc_td(td), EBUSY);
	EXPECT_EQ(ibv_dealloc_pd(second), 0);
	EXPECT_REFUSED(ibv_dealloc_td(td), EBUSY);
	r->pd = parent;
	ep_open_on(&a, r, NULL, NULL, 4096);
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
	struct ibv_cq_ex *cq = ibv_create_cq_ex(r->context, &cq_attr);

	CHECK(cq);
	EXPECT_REFUSED(ibv_dealloc_pd(parent), EBUSY);
	CHECK_ZERO(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	EXPECT_EQ(ibv_dealloc_pd(parent), 0);
	EXPECT_EQ(ibv_dealloc_td(td), 0);
	r->pd = pd;
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

static void wrong_arguments(struct resources *r)
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
	EXPECT_NULL(ibv_alloc_parent_domain(r->context, NULL), EINVAL);
	expect_case("pd NULL");
	attr = allocator_attr(&a, NULL);
	EXPECT_NULL(ibv_alloc_parent_domain(r->context, &attr), EINVAL);
	for (int bit = 3; bit < 32; bit++) {
		expect_case("unknown comp_mask bit %d", bit);
		attr = allocator_attr(&a, r->pd);
		attr.comp_mask |= 1u << bit;
		EXPECT_NULL(ibv_alloc_parent_domain(r->context, &attr), EINVAL);
	}
	expect_case("alloc without free");
	attr = allocator_attr(&a, r->pd);
	attr.free = NULL;
	EXPECT_NULL(ibv_alloc_parent_domain(r->context, &attr), EINVAL);
	expect_case("free without alloc");
	attr = allocator_attr(&a, r->pd);
	attr.alloc = NULL;
	EXPECT_NULL(ibv_alloc_parent_domain(r->context, &attr), EINVAL);
	expect_case("pd of another context");
	attr = allocator_attr(&a, foreign_pd);
	EXPECT_NULL(ibv_alloc_parent_domain(r->context, &attr), ENOENT);
	expect_case("td of another context");
	attr = allocator_attr(&a, r->pd);
	attr.td = foreign_td;
	EXPECT_NULL(ibv_alloc_parent_domain(r->context, &attr), EINVAL);
	expect_case("functions that the mask does not announce are not looked at");
	attr = (struct ibv_parent_domain_init_attr){
		.pd = r->pd, .alloc = a_function_of_nobody, .pd_context = &a};
	struct ibv_pd *plain = ibv_alloc_parent_domain(r->context, &attr);

	EXPECT(plain && ibv_dealloc_pd(plain) == 0);
	expect_case("the flag for confidential guests is accepted");
	attr = (struct ibv_parent_domain_init_attr){
		.pd = r->pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC};
	struct ibv_pd *parent = ibv_alloc_parent_domain(r->context, &attr);

	EXPECT(parent && ibv_dealloc_pd(parent) == 0);
	expect_case("create_cq_ex");
	struct ibv_cq_init_attr_ex cq = {
		.cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD};

	EXPECT_NULL(ibv_create_cq_ex(r->context, &cq), EINVAL);
	cq.parent_domain = r->pd; /* no parent domain */
	EXPECT_NULL(ibv_create_cq_ex(r->context, &cq), EINVAL);
	cq.parent_domain = foreign_pd;
	EXPECT_NULL(ibv_create_cq_ex(r->context, &cq), ENOENT);
	EXPECT_EQ(a.allocs + a.frees, 0);
	/* Each refusal left no reference behind. */
	CHECK_ZERO(ibv_dealloc_td(foreign_td));
	CHECK_ZERO(ibv_dealloc_pd(foreign_pd));
	CHECK_ZERO(ibv_close_device(other));
}

int main(void)
{
	struct resources r;

	resources_open(&r, 64, false);
	interchangeable(&r);
	other_domains_are_foreign(&r);
	busy_with(&r);
	wrong_arguments(&r);
	resources_close(&r);
	return expect_done();
}

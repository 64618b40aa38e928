/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: the memory of every queue made on a parent domain with allocators comes from its alloc()
 * and goes back through its free(), once each, with the same pointer and type; NULL fails the verb
 * with ENOMEM and leaks nothing; the library's own memory on demand, call by call
 * (ibv_alloc_parent_domain(3)).
 *
 * usage: parent_domain_memory [huge]     huge: from huge pages
 */
#include <infiniband/verbatim.h>
#include <infiniband/verbs.h>
#include <string.h>
#include <sys/mman.h>

#include "parent_allocator.h"
#include "support/check.h"
#include "support/endpoint.h"

enum { WR = 16 };

static bool huge;

/* A queue of each kind on the parent domain, and a queue pair that is its own peer. */
struct set {
	struct ibv_pd *parent;
	struct ibv_cq_ex *cq;
	struct ibv_srq *srq;
	struct endpoint own, shared; /* with its own receive queue, with the shared one */
};

static struct ibv_pd *parent_open(struct resources *r, struct allocator *a)
{
	struct ibv_parent_domain_init_attr attr = allocator_attr(a, r->pd);
	struct ibv_pd *parent = ibv_alloc_parent_domain(r->context, &attr);

	CHECK(parent);
	a->pd = parent;
	return parent;
}

static struct ibv_cq_ex *cq_open(struct resources *r, struct ibv_pd *parent)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 4 * WR,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = parent,
	};

	return ibv_create_cq_ex(r->context, &attr);
}

static struct ibv_srq *srq_open(struct ibv_pd *parent)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = WR, .max_sge = 1}};

	return ibv_create_srq(parent, &attr);
}

static void set_open(struct set *s, struct resources *r, struct allocator *a)
{
	struct resources on_parent = *r;
	struct ep_config config;

	s->parent = parent_open(r, a);
	s->cq = cq_open(r, s->parent);
	s->srq = srq_open(s->parent);
	CHECK(s->cq && s->srq);
	on_parent.pd = s->parent;
	on_parent.cq = ibv_cq_ex_to_cq(s->cq);
	config = ep_defaults(IBV_QPT_RC);
	config.send_cq = config.recv_cq = on_parent.cq;
	ep_open_on(&s->own, &on_parent, &config, NULL, 4096);
	config.srq = s->srq;
	ep_open_on(&s->shared, &on_parent, &config, NULL, 4096);
	s->own.resources = s->shared.resources = r;
	ep_link(&s->own, &s->shared);
}

static void set_close(struct set *s)
{
	ep_close(&s->own);
	ep_close(&s->shared);
	EXPECT_EQ(ibv_destroy_srq(s->srq), 0);
	EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(s->cq)), 0);
	EXPECT_EQ(ibv_dealloc_pd(s->parent), 0);
}

/* A message's two ends. */
static void both_complete(struct ibv_cq *cq)
{
	for (int i = 0; i < 2; i++) {
		struct ibv_wc wc;

		completion_next(cq, &wc);
		EXPECT_STATUS(wc.status, IBV_WC_SUCCESS);
	}
}

/* More messages than any queue has entries, both ways, checked. */
static void set_use(struct set *s)
{
	struct ibv_cq *cq = ibv_cq_ex_to_cq(s->cq);
	struct ibv_sge sge = {(uintptr_t)s->shared.buffer, 64, s->shared.mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;

	for (int i = 0; i < 200; i++) {
		memset(s->own.buffer, i, 64);
		memset(s->shared.buffer, ~i, 64);
		CHECK_ZERO(ibv_post_srq_recv(s->srq, &wr, &bad));
		CHECK_ZERO(ep_send(&s->own, 2, 0, 64, IBV_SEND_SIGNALED));
		both_complete(cq);
		EXPECT_EQ(memcmp(s->own.buffer, s->shared.buffer, 64), 0);
		CHECK_ZERO(ep_recv(&s->own, 3, 128, 64));
		CHECK_ZERO(ep_send(&s->shared, 4, 0, 64, IBV_SEND_SIGNALED));
		both_complete(cq);
		EXPECT_EQ(memcmp(s->own.buffer + 128, s->shared.buffer, 64), 0);
	}
}

static void settled(const struct allocator *a)
{
	EXPECT_EQ(a->wrong, 0);
	EXPECT_EQ(allocator_live(a), 0);
}

static void every_queue(struct resources *r)
{
	struct allocator a;
	struct set s;
	uint64_t mark = 0x0123456789abcdefull;

	expect_case("every queue's memory");
	allocator_init(&a);
	a.huge = huge;
	set_open(&s, r, &a);
	EXPECT_EQ(a.of_type[VERBATIM_RESOURCE_SEND_QUEUE], 2);
	EXPECT_EQ(a.of_type[VERBATIM_RESOURCE_RECV_QUEUE], 1);
	EXPECT_EQ(a.of_type[VERBATIM_RESOURCE_SRQ], 1);
	EXPECT_EQ(a.of_type[VERBATIM_RESOURCE_CQ], 1);
	EXPECT_EQ(a.allocs, 5);
	EXPECT(a.bytes_of_type[VERBATIM_RESOURCE_CQ] >= 4 * (size_t)WR * sizeof(struct ibv_wc));
	set_use(&s);
	expect_case("the queues really lie there");
	CHECK_ZERO(ep_recv(&s.own, mark, 0, 64));
	EXPECT(allocator_holds(&a, VERBATIM_RESOURCE_RECV_QUEUE, &mark, sizeof(mark)));
	mark++;
	CHECK_ZERO(ep_write(&s.own, mark, 0, 64, 0, IBV_SEND_SIGNALED));
	EXPECT(allocator_holds(&a, VERBATIM_RESOURCE_SEND_QUEUE, &mark, sizeof(mark)));
	completion_expect(ibv_cq_ex_to_cq(s.cq), mark, IBV_WC_SUCCESS, NULL);
	EXPECT(allocator_holds(&a, VERBATIM_RESOURCE_CQ, &mark, sizeof(mark)));
	mark++;
	struct ibv_recv_wr wr = {.wr_id = mark}, *bad;

	CHECK_ZERO(ibv_post_srq_recv(s.srq, &wr, &bad));
	EXPECT(allocator_holds(&a, VERBATIM_RESOURCE_SRQ, &mark, sizeof(mark)));
	EXPECT_EQ(a.frees, 0);
	set_close(&s);
	EXPECT_EQ(a.frees, a.allocs);
	settled(&a);
}

static void resizing(struct resources *r)
{
	struct allocator a;
	struct ibv_srq_attr attr = {.max_wr = 4 * WR};
	struct set s;

	expect_case("resizing takes new memory and gives the old back");
	allocator_init(&a);
	a.huge = huge;
	set_open(&s, r, &a);
	EXPECT_EQ(ibv_resize_cq(ibv_cq_ex_to_cq(s.cq), 16 * WR), 0);
	EXPECT_EQ(ibv_modify_srq(s.srq, &attr, IBV_SRQ_MAX_WR), 0);
	EXPECT_EQ(a.allocs, 7);
	EXPECT_EQ(a.frees, 2);
	set_use(&s);
	expect_case("resizing without memory changes nothing");
	a.answer = ANSWER_NULL;
	attr.max_wr = 8 * WR;
	EXPECT_REFUSED(ibv_resize_cq(ibv_cq_ex_to_cq(s.cq), 32 * WR), ENOMEM);
	EXPECT_REFUSED(ibv_modify_srq(s.srq, &attr, IBV_SRQ_MAX_WR), ENOMEM);
	EXPECT_EQ(a.frees, 2);
	set_use(&s);
	expect_case("a refused size gives what it took back");
	a.answer = ANSWER_MEMORY;
	attr.srq_limit = 9 * WR;
	EXPECT_REFUSED(ibv_modify_srq(s.srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
	EXPECT_EQ(allocator_live(&a), 5);
	set_close(&s);
	settled(&a);
}

static struct ibv_qp *qp_try(struct ibv_pd *parent, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = WR, .max_recv_wr = WR, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	return ibv_create_qp(parent, &init);
}

static size_t queue_bytes(struct ibv_pd *parent, struct ibv_cq *cq, const struct allocator *a,
			  struct ibv_qp_cap *cap)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .cap = *cap, .qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = ibv_create_qp(parent, &init);

	CHECK(qp);
	*cap = init.cap;
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	return a->bytes_of_type[VERBATIM_RESOURCE_SEND_QUEUE] +
	       a->bytes_of_type[VERBATIM_RESOURCE_RECV_QUEUE];
}

/* What was granted beyond what was asked for is room that the entries had anyway. */
static void granted_room(struct resources *r)
{
	static const struct ibv_qp_cap asks[] = {{WR, WR, 1, 1, 0},  {WR, WR, 1, 0, 0},
						 {WR, WR, 3, 3, 48}, {WR, WR, 4, 4, 64},
						 {WR, WR, 0, 1, 9},  {WR, WR, 32, 32, 512}};
	struct allocator a;
	struct ibv_pd *parent;

	allocator_init(&a);
	parent = parent_open(r, &a);
	for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
		struct ibv_qp_cap cap = asks[i], again;
		size_t bytes;

		expect_case("the granted room of ask %zu costs nothing", i);
		bytes = queue_bytes(parent, r->cq, &a, &cap);
		again = cap;
		EXPECT_EQ(queue_bytes(parent, r->cq, &a, &again), bytes);
		EXPECT(!memcmp(&again, &cap, sizeof(cap)));
	}
	EXPECT_EQ(ibv_dealloc_pd(parent), 0);
	settled(&a);
}

static void refused_memory(struct resources *r, enum allocator_answer answer, int err)
{
	struct allocator a;
	struct ibv_pd *parent;

	allocator_init(&a);
	a.huge = huge;
	parent = parent_open(r, &a);
	a.otherwise = answer;
	for (int nth = 0; nth < 2; nth++) {
		expect_case("alloc() gives no usable memory for queue %d of a queue pair", nth);
		a.exception = a.allocs + nth;
		EXPECT_NULL(qp_try(parent, r->cq), err);
		EXPECT_EQ(allocator_live(&a), 0);
	}
	expect_case("alloc() gives no usable memory for a completion queue");
	a.exception = a.allocs;
	EXPECT_NULL(cq_open(r, parent), err);
	expect_case("alloc() gives no usable memory for a shared receive queue");
	a.exception = a.allocs;
	EXPECT_NULL(srq_open(parent), err);
	settled(&a);
	/* Nothing holds the domain, and the same works at once. */
	struct ibv_qp *qp = qp_try(parent, r->cq);

	EXPECT(qp && ibv_destroy_qp(qp) == 0);
	EXPECT_EQ(ibv_dealloc_pd(parent), 0);
	settled(&a);
}

/* The answer "use your own" counts for the call it is given to, and there is no free() for it. */
static void own_memory(struct resources *r)
{
	struct allocator a;
	struct set s;

	expect_case("IBV_ALLOCATOR_USE_DEFAULT always");
	allocator_init(&a);
	a.answer = ANSWER_DEFAULT;
	set_open(&s, r, &a);
	EXPECT_EQ(a.allocs, 5);
	set_use(&s);
	set_close(&s);
	EXPECT_EQ(a.frees, 0);
	settled(&a);
	for (int nth = 0; nth < 5; nth++) {
		expect_case("IBV_ALLOCATOR_USE_DEFAULT for call %d", nth);
		allocator_init(&a);
		a.huge = huge;
		a.exception = nth;
		a.otherwise = ANSWER_DEFAULT;
		set_open(&s, r, &a);
		EXPECT_EQ(allocator_live(&a), 4);
		set_use(&s);
		set_close(&s);
		EXPECT_EQ(a.frees, 4);
		settled(&a);
	}
}

static void *seen_context;
static int context_allocs, context_frees;

static void *alloc_default(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
			   uint64_t type)
{
	(void)pd;
	(void)size;
	(void)alignment;
	(void)type;
	seen_context = context;
	context_allocs++;
	return IBV_ALLOCATOR_USE_DEFAULT;
}

static void free_nothing(struct ibv_pd *pd, void *context, void *ptr, uint64_t type)
{
	(void)pd;
	(void)context;
	(void)ptr;
	(void)type;
	context_frees++;
}

static void context_without_allocators(struct resources *r)
{
	int token;
	struct ibv_parent_domain_init_attr attr = {
		.pd = r->pd,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = alloc_default, /* not in the mask: not looked at */
		.free = free_nothing,
		.pd_context = &token,
	};
	struct ibv_pd *parent = ibv_alloc_parent_domain(r->context, &attr);

	expect_case("PD_CONTEXT without ALLOCATORS");
	CHECK(parent);
	struct ibv_qp *qp = qp_try(parent, r->cq);

	EXPECT(qp && ibv_destroy_qp(qp) == 0);
	EXPECT_EQ(context_allocs, 0);
	EXPECT_EQ(ibv_dealloc_pd(parent), 0);
	expect_case("ALLOCATORS without PD_CONTEXT");
	attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	seen_context = &token;
	parent = ibv_alloc_parent_domain(r->context, &attr);
	CHECK(parent);
	qp = qp_try(parent, r->cq);
	EXPECT(qp && ibv_destroy_qp(qp) == 0);
	EXPECT_EQ(context_allocs, 2);
	EXPECT_EQ(context_frees, 0);
	EXPECT(seen_context == NULL);
	EXPECT_EQ(ibv_dealloc_pd(parent), 0);
}

static void need_huge_pages(void)
{
	void *p = mmap(NULL, (size_t)16 << 20, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (p == MAP_FAILED)
		SKIP("no 8 huge pages are free (vm.nr_hugepages)");
	munmap(p, (size_t)16 << 20);
}

/* A parent domain that is made of one with allocators has none. */
static void nested(struct resources *r)
{
	struct allocator a;
	struct ibv_pd *parent, *child;
	struct ibv_parent_domain_init_attr attr = {0};
	struct ibv_srq *srq;

	expect_case("a parent domain of a parent domain");
	allocator_init(&a);
	parent = parent_open(r, &a);
	attr.pd = parent;
	child = ibv_alloc_parent_domain(r->context, &attr);
	CHECK(child);
	srq = srq_open(child);
	EXPECT(srq != NULL);
	EXPECT_EQ(a.allocs, 0);
	EXPECT_REFUSED(ibv_dealloc_pd(parent), EBUSY);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
	EXPECT_EQ(ibv_dealloc_pd(child), 0);
	EXPECT_EQ(ibv_dealloc_pd(parent), 0);
	EXPECT_EQ(a.wrong, 0);
}

int main(int argc, char **argv)
{
	struct resources r;

	huge = argc > 1 && strcmp(argv[1], "huge") == 0;
	if (huge)
		need_huge_pages();
	resources_open(&r, 64, false);
	every_queue(&r);
	resizing(&r);
	refused_memory(&r, ANSWER_NULL, ENOMEM);
	if (!huge)
		refused_memory(&r, ANSWER_MISALIGNED, EINVAL);
	own_memory(&r);
	granted_room(&r);
	context_without_allocators(&r);
	nested(&r);
	resources_close(&r);
	return expect_done();
}

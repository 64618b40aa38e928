/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: thread domains are allocated, used through parent domains by every kind of queue, and
 * deallocated when nothing uses them. Wrong arguments are refused (ibv_alloc_td(3)). What the queue
 * pairs of a thread domain share is tested by tests/unit/engine/thread_domain.c.
 */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <string.h>

#include "support/check.h"
#include "support/endpoint.h"

static struct ibv_td *td_make(struct ibv_context *context)
{
	struct ibv_td_init_attr attr = {.comp_mask = 0};
	struct ibv_td *td = ibv_alloc_td(context, &attr);

	CHECK(td);
	return td;
}

static void arguments(struct resources *r)
{
	struct ibv_td_init_attr attr = {.comp_mask = 1};
	struct ibv_context *other = device_open();
	struct ibv_td *td;

	expect_case("no attributes");
	EXPECT_NULL(ibv_alloc_td(r->context, NULL), EINVAL);
	for (int bit = 0; bit < 32; bit++) {
		expect_case("unknown comp_mask bit %d", bit);
		attr.comp_mask = 1u << bit;
		EXPECT_NULL(ibv_alloc_td(r->context, &attr), EINVAL);
	}
	expect_case("allocating many");
	struct ibv_td *many[64];

	for (int i = 0; i < 64; i++) {
		many[i] = td_make(r->context);
		EXPECT(many[i]->context == r->context);
	}
	for (int i = 0; i < 64; i++)
		EXPECT_EQ(ibv_dealloc_td(many[i]), 0);
	expect_case("the context overwritten");
	td = td_make(r->context);
	td->context = other;
	EXPECT_REFUSED(ibv_dealloc_td(td), ENOENT);
	td->context = r->context;
	EXPECT_EQ(ibv_dealloc_td(td), 0);
	CHECK_ZERO(ibv_close_device(other));
}

/* On a parent domain with the thread domain: queues of all kinds and types of service. */
static void used_by_every_queue(struct resources *r)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
	struct ibv_td *td = td_make(r->context);
	struct ibv_parent_domain_init_attr parent = {.pd = r->pd, .td = td};
	struct ibv_cq_init_attr_ex cq_attr = {.cqe = 64,
					      .wc_flags = IBV_WC_STANDARD_FLAGS,
					      .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD};
	struct resources on_td = *r;

	on_td.pd = cq_attr.parent_domain = ibv_alloc_parent_domain(r->context, &parent);
	CHECK(on_td.pd);
	struct ibv_cq_ex *cq = ibv_create_cq_ex(r->context, &cq_attr);

	CHECK(cq);
	on_td.cq = ibv_cq_ex_to_cq(cq);
	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		struct ep_config config;
		struct endpoint a, b;

		expect_case("messages, queue pair type %d", (int)types[t]);
		config = ep_defaults(types[t]);
		ep_open_on(&a, &on_td, &config, NULL, 4096);
		ep_open_on(&b, &on_td, &config, NULL, 4096);
		ep_link(&a, &b);
		for (int i = 0; i < 100; i++) {
			struct ibv_wc wc;
			size_t grh = types[t] == IBV_QPT_UD ? 40 : 0;

			memset(a.buffer, i, 64);
			CHECK_ZERO(ep_recv(&b, 1, 0, 64 + grh));
			CHECK_ZERO(ep_send(&a, 2, 0, 64, IBV_SEND_SIGNALED));
			for (int both = 0; both < 2; both++) {
				completion_next(on_td.cq, &wc);
				EXPECT_STATUS(wc.status, IBV_WC_SUCCESS);
			}
			EXPECT_EQ(memcmp(a.buffer, b.buffer + grh, 64), 0);
		}
		EXPECT_REFUSED(ibv_dealloc_td(td), EBUSY);
		ep_close(&a);
		ep_close(&b);
	}
	expect_case("deallocated from the outside in");
	EXPECT_REFUSED(ibv_dealloc_td(td), EBUSY);
	EXPECT_REFUSED(ibv_dealloc_pd(on_td.pd), EBUSY);
	EXPECT_EQ(ibv_destroy_cq(on_td.cq), 0);
	EXPECT_EQ(ibv_dealloc_pd(on_td.pd), 0);
	EXPECT_EQ(ibv_dealloc_td(td), 0);
}

/*
 * The thread of a domain stands in no call: events and arriving messages are served for it all the
 * same.
 */
static void served_while_away(struct resources *r)
{
	struct ibv_td *td = td_make(r->context);
	struct ibv_parent_domain_init_attr parent = {.pd = r->pd, .td = td};
	struct resources on_td = *r;
	struct endpoint a, b;
	struct ibv_cq *cq;
	void *cq_context;

	expect_case("events while the thread of the domain waits");
	on_td.channel = ibv_create_comp_channel(r->context);
	CHECK(on_td.channel);
	struct ibv_cq_init_attr_ex cq_attr = {.cqe = 64,
					      .channel = on_td.channel,
					      .wc_flags = IBV_WC_STANDARD_FLAGS,
					      .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD};

	on_td.pd = cq_attr.parent_domain = ibv_alloc_parent_domain(r->context, &parent);
	CHECK(on_td.pd);
	struct ibv_cq_ex *cq_ex = ibv_create_cq_ex(r->context, &cq_attr);

	CHECK(cq_ex);
	on_td.cq = ibv_cq_ex_to_cq(cq_ex);
	ep_open_on(&a, r, NULL, NULL, 4096); /* of no thread domain */
	ep_open_on(&b, &on_td, NULL, NULL, 4096);
	ep_link(&a, &b);
	for (int i = 0; i < 300; i++) {
		/*
		 * Bursts of polling make the locks lean, waiting has the progress thread take them.
		 */
		struct ibv_wc wc;

		CHECK_ZERO(ep_recv(&b, 1, 0, 64));
		CHECK_ZERO(ibv_req_notify_cq(on_td.cq, 0));
		CHECK_ZERO(ep_send(&a, 2, 0, 64, IBV_SEND_SIGNALED));
		CHECK_ZERO(ibv_get_cq_event(on_td.channel, &cq, &cq_context));
		ibv_ack_cq_events(cq, 1);
		completion_expect(on_td.cq, 1, IBV_WC_SUCCESS, NULL);
		completion_expect(r->cq, 2, IBV_WC_SUCCESS, NULL);
		for (int polls = 0; polls < 100; polls++)
			EXPECT_EQ(ibv_poll_cq(on_td.cq, 1, &wc), 0);
	}
	ep_close(&a);
	ep_close(&b);
	EXPECT_EQ(ibv_destroy_cq(on_td.cq), 0);
	EXPECT_EQ(ibv_destroy_comp_channel(on_td.channel), 0);
	EXPECT_EQ(ibv_dealloc_pd(on_td.pd), 0);
	EXPECT_EQ(ibv_dealloc_td(td), 0);
}

int main(void)
{
	struct resources r;

	resources_open(&r, 64, false);
	arguments(&r);
	used_by_every_queue(&r);
	served_while_away(&r);
	resources_close(&r);
	return expect_done();
}

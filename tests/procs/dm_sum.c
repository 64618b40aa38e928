/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: atomics on memory that peers map are the processor's own, whoever does them. One counter
 * in a buffer of ibv_alloc_buf, another in device memory, hammered at the same time by
 *   - an initiator with nothing in flight (its own stores),
 *   - an initiator whose atomics stand behind a SEND (through the ring, done by the owner),
 *   - the owner's own queue pair,
 *   - for the buffer: the owner's program, by plain CPU atomics on its pointer.
 * The sums are exact.
 *
 * usage: dm_sum [OPERATIONS_EACH]
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INITIATORS = 2, MESSAGE = 64, RECEIVES = 32, SIZE = 8192 };
enum { RESULT_AT = 1024, SEND_AT = 2048, RECEIVE_AT = 4096 };
/* Where the counters lie: remote addresses are those of the buffer, or offsets in device memory. */
enum { BUFFER, DEVICE, KINDS };

struct regions {
	uint64_t addr[KINDS];
	uint32_t rkey[KINDS];
};

static uint64_t each;

static void add_one(struct endpoint *ep, const struct regions *regions, int kind, bool behind)
{
	ep->remote.addr = regions->addr[kind];
	ep->remote.rkey = regions->rkey[kind];
	if (behind)
		CHECK_ZERO(ep_send(ep, 1, SEND_AT, MESSAGE, 0));
	CHECK_ZERO(ep_fetch_add(ep, 2, RESULT_AT, 0, 1, IBV_SEND_SIGNALED));
	completion_expect(ep->resources->cq, 2, IBV_WC_SUCCESS, NULL);
}

static int initiator(int sock, void *argument)
{
	bool behind = *(bool *)argument;
	struct resources resources;
	struct regions regions;
	struct endpoint ep;
	uint64_t i;

	promise("an initiator's atomics succeed");
	resources_open(&resources, 64, false);
	ep_open_on(&ep, &resources, NULL, NULL, SIZE);
	message_receive(sock, &regions, sizeof(regions));
	ep_exchange(&ep, sock);
	message_meet(sock);
	for (i = 0; i < each * KINDS; i++)
		add_one(&ep, &regions, (int)(i % KINDS), behind);
	message_send(sock, &i, sizeof(i));
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

struct owner {
	struct resources resources, own;
	struct endpoint from[INITIATORS], here, there;
	struct process process[INITIATORS];
	struct regions regions;
	uint64_t *counter;
	uint64_t done;
};

static void owner_open(struct owner *o)
{
	int i, k;

	resources_open(&o->resources, 1024, false);
	/*
	 * Of the same context, whose device memory it uses, with a domain and a queue of its own.
	 */
	o->own = o->resources;
	o->own.pd = ibv_alloc_pd(o->own.context);
	o->own.cq = ibv_create_cq(o->own.context, 64, NULL, NULL, 0);
	CHECK(o->own.pd && o->own.cq);
	for (i = 0; i < INITIATORS; i++) {
		ep_open_on(&o->from[i], &o->resources, NULL, NULL, SIZE);
		for (k = 0; k < RECEIVES; k++)
			CHECK_ZERO(ep_recv(&o->from[i], (uint64_t)i, RECEIVE_AT, MESSAGE));
	}
	ep_open_on(&o->here, &o->own, NULL, NULL, SIZE);
	ep_open_on(&o->there, &o->own, NULL, NULL, SIZE);
	ep_link(&o->here, &o->there);
}

static void owner_connect(struct owner *o)
{
	int i;

	for (i = 0; i < INITIATORS; i++) {
		message_send(o->process[i].sock, &o->regions, sizeof(o->regions));
		ep_exchange(&o->from[i], o->process[i].sock);
	}
	for (i = 0; i < INITIATORS; i++)
		message_meet(o->process[i].sock);
}

/* Keeps the initiators supplied with receives. */
static void owner_serve(struct owner *o)
{
	struct ibv_wc wc = {0};

	while (ibv_poll_cq(o->resources.cq, 1, &wc) == 1) {
		if (wc.status != IBV_WC_SUCCESS)
			completion_print(&wc);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK_ZERO(ep_recv(&o->from[wc.wr_id], wc.wr_id, RECEIVE_AT, MESSAGE));
	}
}

static void owner_run(struct owner *o)
{
	bool ended[INITIATORS] = {false};
	int left = INITIATORS, i;
	uint64_t count;

	while (left || o->done < each) {
		owner_serve(o);
		if (o->done < each) {
			add_one(&o->here, &o->regions, BUFFER, false);
			add_one(&o->here, &o->regions, DEVICE, false);
			__atomic_fetch_add(o->counter, 1, __ATOMIC_RELAXED);
			o->done++;
			continue;
		}
		for (i = 0; i < INITIATORS; i++) {
			if (!ended[i] &&
			    message_try_receive(o->process[i].sock, &count, sizeof(count), 0)) {
				ended[i] = true;
				left--;
			}
		}
		processes_check();
		sched_yield();
	}
}

int main(int argc, char **argv)
{
	static bool behind[INITIATORS] = {false, true};
	struct ibv_alloc_dm_attr attr = {.length = 64};
	static struct owner o;
	struct ibv_mr *mr[KINDS];
	struct ibv_buf *buf;
	struct ibv_dm *dm;
	uint64_t sum;
	int i;

	each = argc > 1 ? strtoull(argv[1], NULL, 0) : 20000;
	watchdog(120);
	for (i = 0; i < INITIATORS; i++)
		process_start(&o.process[i], initiator, &behind[i]);
	promise("the sum of atomics by processors and requests is exact");
	owner_open(&o);
	/*
	 * Keys are of a protection domain: everything uses that of the first resources, but the loop has
	 * its own.
	 */
	o.counter = ibv_alloc_buf(o.resources.pd, 64, &buf);
	dm = ibv_alloc_dm(o.resources.context, &attr);
	CHECK(o.counter && dm);
	mr[BUFFER] = ibv_reg_mr(o.resources.pd, o.counter, 64, EP_ACCESS);
	mr[DEVICE] = ibv_reg_dm_mr(o.resources.pd, dm, 0, 64, EP_ACCESS | IBV_ACCESS_ZERO_BASED);
	CHECK(mr[BUFFER] && mr[DEVICE]);
	o.regions = (struct regions){.addr = {(uintptr_t)o.counter, 0},
				     .rkey = {mr[BUFFER]->rkey, mr[DEVICE]->rkey}};
	owner_connect(&o);
	{
		/* The loop's own keys for the same memory. */
		struct ibv_mr *own_buffer = ibv_reg_mr(o.own.pd, o.counter, 64, EP_ACCESS);
		struct ibv_mr *own_device =
			ibv_reg_dm_mr(o.own.pd, dm, 0, 64, EP_ACCESS | IBV_ACCESS_ZERO_BASED);

		CHECK(own_buffer && own_device);
		o.regions.rkey[BUFFER] = own_buffer->rkey;
		o.regions.rkey[DEVICE] = own_device->rkey;
		owner_run(&o);
		CHECK_ZERO(ibv_dereg_mr(own_buffer));
		CHECK_ZERO(ibv_dereg_mr(own_device));
	}
	for (i = 0; i < INITIATORS; i++)
		process_expect_success(&o.process[i], PROCESS_PATIENCE_MS);
	/* Two initiators, the owner's queue pair, and in the buffer the program as well. */
	CHECK_EQ(*o.counter, each * (INITIATORS + 2));
	CHECK_ZERO(ibv_memcpy_from_dm(&sum, dm, 0, sizeof(sum)));
	CHECK_EQ(sum, each * (INITIATORS + 1));
	for (i = 0; i < KINDS; i++)
		CHECK_ZERO(ibv_dereg_mr(mr[i]));
	for (i = 0; i < INITIATORS; i++)
		ep_close(&o.from[i]);
	ep_close(&o.here);
	ep_close(&o.there);
	ibv_free_buf(buf);
	CHECK_ZERO(ibv_free_dm(dm));
	CHECK_ZERO(ibv_destroy_cq(o.own.cq));
	CHECK_ZERO(ibv_dealloc_pd(o.own.pd));
	resources_close(&o.resources);
	printf("%llu atomics each, sums exact\n", (unsigned long long)each);
	return 0;
}

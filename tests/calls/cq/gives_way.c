/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a poll that gives its processor away looks again before it says that there is nothing. What it
 * says is otherwise older than what the program does next: one that finds its queue empty, and then the
 * peer's end (libfabric's rxm), throws away the peer's last message, which came in between.
 *
 * The message is sent while the poll is in sched_yield(2), which this program replaces.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

enum {
	BYTES = 8,
	MESSAGE = 7,
	POLLS = 1000000, /* far more than a thread makes in vain before it gives way */
	ROUNDS = 3,
};

static struct endpoint near, far;
static pthread_t poller;
static bool armed, yielded;

/* The library's own threads call it, too. */
__attribute__((visibility("default"))) int sched_yield(void)
{
	static int (*next)(void);

	if (!next)
		*(void **)(&next) = dlsym(RTLD_NEXT, "sched_yield");
	if (armed && pthread_equal(pthread_self(), poller)) {
		armed = false;
		yielded = true;
		CHECK(ep_send(&near, MESSAGE, 0, BYTES, IBV_SEND_SIGNALED) == 0);
		return 0;
	}
	return next();
}

static int poll_plain(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(cq, 1, &wc);

	if (n == 1) {
		EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
		EXPECT_EQ(wc.wr_id, MESSAGE);
	}
	return n;
}

static int poll_extended(struct ibv_cq *cq)
{
	struct ibv_cq_ex *ex = (struct ibv_cq_ex *)cq;
	struct ibv_poll_cq_attr attr = {0};

	if (ibv_start_poll(ex, &attr))
		return 0;
	EXPECT_EQ(ex->status, IBV_WC_SUCCESS);
	EXPECT_EQ(ex->wr_id, MESSAGE);
	ibv_end_poll(ex);
	return 1;
}

static void round_of(struct ibv_cq *cq, int (*poll_once)(struct ibv_cq *cq))
{
	struct ibv_wc wc;
	int n = 0;

	EXPECT_EQ(ep_recv(&far, MESSAGE, BYTES, BYTES), 0);
	yielded = false;
	armed = true;
	for (int i = 0; i < POLLS && !yielded && !n; i++)
		n = poll_once(cq);
	armed = false;
	EXPECT(yielded);
	EXPECT_EQ(n, 1);
	EXPECT_EQ(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
}

static void rounds(struct resources *here, struct resources *there, struct ibv_cq *cq,
		   int (*poll_once)(struct ibv_cq *cq))
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	ep_open_on(&near, here, &config, NULL, 4096);
	config.recv_cq = cq;
	ep_open_on(&far, there, &config, NULL, 4096);
	ep_link(&near, &far);
	for (int i = 0; i < ROUNDS; i++)
		round_of(cq, poll_once);
	ep_close(&near);
	ep_close(&far);
}

int main(void)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 16};
	struct resources here, there;

	poller = pthread_self();
	resources_open(&here, 16, false);
	resources_open(&there, 16, false);
	expect_case("ibv_poll_cq");
	struct ibv_cq *plain = ibv_create_cq(there.context, 16, NULL, NULL, 0);

	CHECK(plain);
	rounds(&here, &there, plain, poll_plain);
	CHECK(ibv_destroy_cq(plain) == 0);
	expect_case("ibv_start_poll");
	struct ibv_cq_ex *extended = ibv_create_cq_ex(there.context, &attr);

	CHECK(extended);
	rounds(&here, &there, ibv_cq_ex_to_cq(extended), poll_extended);
	CHECK(ibv_destroy_cq(ibv_cq_ex_to_cq(extended)) == 0);
	resources_close(&there);
	resources_close(&here);
	return expect_done();
}

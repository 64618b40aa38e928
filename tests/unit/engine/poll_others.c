/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a thread that polls in vain looks at engines that it polled before and at those that
 * nobody polls. It does so more and more seldom while that brings nothing, and at once again when it
 * brought something; it leaves engines alone that other threads poll.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "engine/engine.h"
#include "qp/qp.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"

enum {
	POLLS = 20000,
	SELDOM = 64,     /* as poll_others.c has it */
	DOUBLINGS = 8,   /* until looks are that seldom, and some more */
	AGAIN = 2,       /* polls from a look that brought something to the next one, and it */
	WINDOW = 100000, /* polls, with an engine beside that is polled */
	ANY_MOST = 100,  /* looks in such a window: 24 by the rule, 1,562 if they became no rarer */
	TRIES = 50,
	SECONDS = 30,
};

static struct resources here;
static struct ibv_cq *other; /* another engine's */
static struct endpoint from, to;

static struct vb_engine *engine(void)
{
	return vb_qp_of(from.qp)->engine;
}

/* Returns how often this thread looked at engines that it polled before. */
static uint32_t polled_in_vain(struct ibv_cq *cq, int polls)
{
	uint32_t before = engine()->looks_recent;
	struct ibv_wc wc;

	for (int i = 0; i < polls; i++)
		CHECK_EQ(ibv_poll_cq(cq, 1, &wc), 0);
	return engine()->looks_recent - before;
}

static void recent(void)
{
	uint32_t looks;
	struct ibv_wc wc;

	promise("looks at an engine that was polled before become rare while they bring nothing");
	polled_in_vain(other, 1);
	polled_in_vain(here.cq, 1);
	looks = polled_in_vain(here.cq, POLLS);
	CHECK_SAY(looks >= POLLS / SELDOM && looks <= POLLS / SELDOM + DOUBLINGS, "%u looks",
		  looks);
	looks = 0;

	/* On a busy machine the progress thread may take the message before this thread looks. */
	promise("a look that brought something is followed by another one soon");
	for (int i = 0; i < TRIES && looks <= 1; i++) {
		polled_in_vain(here.cq, POLLS);
		CHECK_ZERO(ep_recv(&to, 1, 0, 8));
		CHECK_ZERO(ep_send(&from, 1, 0, 8, 0));
		looks = polled_in_vain(here.cq, SELDOM);
		CHECK_EQ(ibv_poll_cq(other, 1, &wc), 1);
		polled_in_vain(other, 1);
	}
	CHECK(looks > 1);
}

static atomic_bool stop;

static void *poll_other(void *unused)
{
	struct ibv_wc wc;

	while (!atomic_load(&stop))
		(void)ibv_poll_cq(other, 1, &wc);
	return unused;
}

/* On a busy machine the other thread may stand still for a whole window. */
static void any(void)
{
	uint64_t end = now_us() + SECONDS * 1000000ull;
	uint32_t looks;
	pthread_t thread;

	promise("looks at engines that other threads poll become rare");
	CHECK_ZERO(pthread_create(&thread, NULL, poll_other, NULL));
	do {
		looks = engine()->looks_any;
		(void)polled_in_vain(here.cq, WINDOW);
		looks = engine()->looks_any - looks;
		CHECK(looks);
		CHECK_SAY(now_us() < end, "%u looks in %d polls", looks, WINDOW);
	} while (looks > ANY_MOST);
	atomic_store(&stop, true);
	CHECK_ZERO(pthread_join(thread, NULL));
}

int main(void)
{
	struct ep_config config;

	watchdog(60);
	resources_open(&here, 16, false);
	other = ibv_create_cq(here.context, 16, NULL, NULL, 0);
	CHECK(other);
	config = ep_defaults(IBV_QPT_RC);
	config.send_cq = config.recv_cq = other;
	ep_open_on(&from, &here, NULL, NULL, 4096);
	ep_open_on(&to, &here, &config, NULL, 4096);
	ep_link(&from, &to);
	recent();
	any();
	ep_close(&from);
	ep_close(&to);
	CHECK_ZERO(ibv_destroy_cq(other));
	resources_close(&here);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a poll of a queue whose engine sleeps (its program waits for events) finds all that the
 * engine has taken in, also when another thread is just about to make entries of it. A poll of an
 * engine that a thread polls steadily does not wait.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "engine/cq.h"
#include "engine/engine.h"
#include "qp/qp.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"

enum { POLLS = 1000, HELD_US = 50000 };

static struct resources here;
static struct ibv_cq *elsewhere; /* of the sender: another engine */
static struct endpoint from, to;

static struct vb_engine *engine(void)
{
	return vb_qp_of(to.qp)->engine;
}

static bool asleep(void)
{
	return __atomic_load_n(&engine()->pub->asleep, __ATOMIC_RELAXED);
}

struct poller {
	atomic_bool back;
	int entries;
	struct ibv_wc wc;
};

static void *poll_once(void *arg)
{
	struct poller *p = arg;

	p->entries = ibv_poll_cq(here.cq, 1, &p->wc);
	atomic_store(&p->back, true);
	return NULL;
}

static void message(uint64_t wr_id)
{
	CHECK_ZERO(ep_recv(&to, wr_id, 0, 64));
	CHECK_ZERO(ep_send(&from, wr_id, 0, 64, 0));
}

/* This thread holds the engine, as one that drives it does, and has not come to the message yet. */
static void sleeping(void)
{
	struct poller poller = {.entries = -1};
	pthread_t thread;

	promise("a poll of a sleeping engine finds what the thread that drives it has in hand");
	message(1);
	completion_expect(here.cq, 1, IBV_WC_SUCCESS, &poller.wc);
	CHECK_ZERO(ibv_req_notify_cq(here.cq, 0)); /* puts the engine to sleep */
	vb_lock_take(&engine()->lock);
	CHECK(asleep());
	message(2);
	CHECK_ZERO(pthread_create(&thread, NULL, poll_once, &poller));
	usleep(HELD_US); /* a poll that does not wait is back by then, unless the machine is busy */
	CHECK(!atomic_load(&poller.back));
	vb_lock_release(&engine()->lock);
	CHECK_ZERO(pthread_join(thread, NULL));
	CHECK_EQ(poller.entries, 1);
	CHECK_EQ(poller.wc.wr_id, 2);
}

static void awake(void)
{
	struct ibv_wc wc;

	promise("a poll of an engine that is polled waits for nobody");
	do {
		for (int i = 0; i < POLLS; i++)
			CHECK_EQ(ibv_poll_cq(here.cq, 1, &wc), 0);
		vb_lock_take(&engine()->lock);
		if (!asleep())
			break;
		vb_lock_release(&engine()->lock);
	} while (true);
	CHECK_EQ(ibv_poll_cq(here.cq, 1, &wc),
		 0); /* returns, though this thread itself holds the lock */
	vb_lock_release(&engine()->lock);
}

int main(void)
{
	struct ep_config config;

	watchdog(60);
	resources_open(&here, 16, true);
	elsewhere = ibv_create_cq(here.context, 16, NULL, NULL, 0);
	CHECK(elsewhere);
	config = ep_defaults(IBV_QPT_RC);
	config.send_cq = config.recv_cq = elsewhere;
	ep_open_on(&from, &here, &config, NULL, 4096);
	ep_open_on(&to, &here, NULL, NULL, 4096);
	ep_link(&from, &to);
	sleeping();
	awake();
	ep_close(&from);
	ep_close(&to);
	CHECK_ZERO(ibv_destroy_cq(elsewhere));
	resources_close(&here);
	return 0;
}

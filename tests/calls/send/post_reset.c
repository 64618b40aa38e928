/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Posts of one thread while another thread takes the queue pair to RESET and back to RTS, without
 * an end. A request that was being written before the RESET must not be taken for one of the new
 * life: it is refused, or gone with the RESET. So each completion belongs to an accepted request,
 * and their numbers only grow; and when it is quiet again, the send queue has all its room.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"
#include "support/qp_state.h"

enum { ROUNDS = 500, WORDS = 4, DEPTH = 16 };

static struct endpoint ep; /* connected to itself */
static struct ibv_qp_attr to_rts;
static _Atomic bool over;
static _Atomic bool met; /* a post was taken, and another one was refused */

/* A busy machine may run all rounds before the other thread posts once: then there are more. */
static void *resets(void *unused)
{
	(void)unused;
	for (int i = 0; i < ROUNDS || !atomic_load(&met); i++) {
		qp_move(ep.qp, IBV_QPS_RESET);
		if (i % 16 == 0)
			sched_yield();
		CHECK_ZERO(qp_bring_to(ep.qp, &to_rts, IBV_QPS_RTS));
		for (int turn = i % 8; turn; turn--)
			sched_yield();
	}
	atomic_store(&over, true);
	return NULL;
}

struct count {
	uint64_t posted; /* the number of the latest request */
	uint64_t done;   /* the number of the latest completion */
	uint64_t accepted[4096];
	uint64_t taken, refused, full;
};

static bool was_accepted(const struct count *c, uint64_t number)
{
	return c->accepted[number % 4096] == number;
}

static void poll_all(struct count *c)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(ep.cq[EP_SEND_CQ], 1, &wc)) > 0) {
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK_SAY(wc.wr_id > c->done && wc.wr_id <= c->posted,
			  "request %llu completes behind %llu, the latest is %llu",
			  (unsigned long long)wc.wr_id, (unsigned long long)c->done,
			  (unsigned long long)c->posted);
		CHECK_SAY(was_accepted(c, wc.wr_id), "request %llu was refused, and completes",
			  (unsigned long long)wc.wr_id);
		c->done = wc.wr_id;
	}
	CHECK_EQ(n, 0);
}

/* Returns the answer of ibv_post_send(3). */
static int post_next(struct count *c)
{
	uint64_t number = ++c->posted;
	struct ibv_sge sge = ep_sge(&ep, 0, 8);
	struct ibv_send_wr wr = ep_wr(IBV_WR_RDMA_WRITE, number, &sge, 1), *bad;
	int err;

	wr.wr.rdma.remote_addr = ep.local.addr + 8;
	wr.wr.rdma.rkey = ep.local.rkey;
	/* The completion may come before the call returns, but is polled by this thread alone. */
	err = ibv_post_send(ep.qp, &wr, &bad);
	CHECK(!err || err == EINVAL || err == ENOMEM);
	if (!err)
		c->accepted[number % 4096] = number;
	c->taken += !err;
	c->refused += err == EINVAL;
	c->full += err == ENOMEM;
	if (c->taken && c->refused)
		atomic_store(&met, true);
	return err;
}

static void quiet_again(struct count *c)
{
	uint64_t last = c->posted;
	int room = 0;

	qp_move(ep.qp, IBV_QPS_RESET);
	CHECK_ZERO(qp_bring_to(ep.qp, &to_rts, IBV_QPS_RTS));
	poll_all(c);
	while (!post_next(c))
		room++;
	CHECK_SAY(room >= DEPTH, "the send queue takes %d requests, it has room for %d", room,
		  DEPTH);
	last += (uint64_t)room;
	while (c->done < last)
		poll_all(c);
}

int main(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_UC);
	static struct count c;
	pthread_t thread;

	promise("requests and a RESET of another thread");
	config.cap.max_send_wr = DEPTH;
	config.cqe = 4 * DEPTH;
	config.buf_len = 8 * WORDS;
	ep_open(&ep, &config, EP_HERE);
	to_rts = ep_attr(&ep.config, &ep.local, &ep.local);
	CHECK_ZERO(ep_bring_to(&ep, &ep.local, IBV_QPS_RTS));
	CHECK_ZERO(pthread_create(&thread, NULL, resets, NULL));
	while (!atomic_load(&over)) {
		if (post_next(&c))
			sched_yield();
		poll_all(&c);
	}
	pthread_join(thread, NULL);
	quiet_again(&c);
	ep_close(&ep);
	return 0;
}

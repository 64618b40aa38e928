/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Every verb from every thread: posting to one queue pair, polling one queue, and making and
 * destroying objects beside messages that must not notice it. Clean under the thread sanitizer.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

#define POSTERS 4
#define EACH    500

static struct endpoint near, far;
static _Atomic int stop, wrong;

/* Checks of other threads than the main one count here; EXPECT is for one thread. */
static void must(bool ok)
{
	if (!ok)
		atomic_fetch_add(&wrong, 1);
}

static void open_pair(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	config.cap.max_send_wr = 256;
	config.cap.max_recv_wr = 256;
	ep_pair(&near, &far, &config, &config, EP_HERE);
	atomic_store(&stop, 0);
	atomic_store(&wrong, 0);
}

/* Each thread adds one to the same word EACH times, on one queue pair. */
static void *poster(void *arg)
{
	uint64_t who = (uintptr_t)arg;
	struct ibv_sge sge = ep_sge(&near, who * 64, 8);
	struct ibv_send_wr wr = ep_wr(IBV_WR_ATOMIC_FETCH_AND_ADD, who, &sge, 1), *bad;

	wr.wr.atomic.remote_addr = far.local.addr;
	wr.wr.atomic.rkey = far.local.rkey;
	wr.wr.atomic.compare_add = 1;
	for (int i = 0; i < EACH && !atomic_load(&stop);) {
		int rc = ibv_post_send(near.qp, &wr, &bad);

		must(rc == 0 || rc == ENOMEM);
		if (!rc)
			i++;
		else
			sched_yield();
	}
	return NULL;
}

static _Atomic int completed;

static void *poller(void *arg)
{
	struct ibv_wc wc[4];

	(void)arg;
	while (!atomic_load(&stop)) {
		int n = ibv_poll_cq(near.cq[EP_SEND_CQ], 4, wc);

		must(n >= 0);
		for (int i = 0; i < n; i++)
			must(wc[i].status == IBV_WC_SUCCESS);
		if (n > 0)
			atomic_fetch_add(&completed, n);
		else
			sched_yield();
	}
	return NULL;
}

static bool reaches(_Atomic int *counter, int value)
{
	for (int i = 0; i < 3 * EP_WAIT_MS && atomic_load(counter) < value; i++)
		usleep(1000);
	return atomic_load(counter) == value;
}

static void one_queue_pair(void)
{
	pthread_t post[POSTERS], poll[2];
	uint64_t sum = 0;

	expect_case("four threads post, two poll");
	open_pair();
	atomic_store(&completed, 0);
	ep_poke(&far, 0, &sum, sizeof(sum));
	for (uintptr_t i = 0; i < POSTERS; i++)
		CHECK(pthread_create(&post[i], NULL, poster, (void *)i) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&poll[i], NULL, poller, NULL) == 0);
	EXPECT(reaches(&completed, POSTERS * EACH));
	atomic_store(&stop, 1);
	for (int i = 0; i < POSTERS; i++)
		pthread_join(post[i], NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(poll[i], NULL);
	ep_peek(&far, 0, &sum, sizeof(sum));
	EXPECT_EQ(sum, POSTERS * EACH);
	EXPECT_EQ(wrong, 0);
	ep_pair_close(&near, &far);
}

/* Lists of two threads do not mix: pairs of immediates arrive side by side. */
static void *list_poster(void *arg)
{
	uint32_t who = (uint32_t)(uintptr_t)arg;
	struct ibv_send_wr first = ep_wr(IBV_WR_SEND_WITH_IMM, who, NULL, 0), second = first, *bad;

	first.imm_data = 2 * who;
	second.imm_data = 2 * who + 1;
	first.next = &second;
	for (int i = 0; i < 60; i++)
		must(ibv_post_send(near.qp, &first, &bad) == 0);
	return NULL;
}

static void contiguous_lists(void)
{
	pthread_t thread[2];
	struct ibv_wc wc;

	expect_case("lists of two threads stay in one piece");
	open_pair();
	for (uint64_t i = 0; i < 240; i++)
		CHECK(ep_post_recv(&far, i, NULL, 0) == 0);
	for (uintptr_t i = 0; i < 2; i++)
		CHECK(pthread_create(&thread[i], NULL, list_poster, (void *)i) == 0);
	for (int i = 0; i < 120; i++) {
		uint32_t first;

		EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
		first = wc.imm_data;
		EXPECT_EQ(first % 2, 0);
		EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_EQ(wc.imm_data, first + 1);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(wrong, 0);
	ep_pair_close(&near, &far);
}

/* Makes and drops every kind of object, and queue pairs in every state, as fast as it can. */
static void *churn(void *arg)
{
	struct ibv_context *ctx = near.context;
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	static char memory[4096];

	while (!atomic_load(&stop)) {
		struct ibv_pd *pd = ibv_alloc_pd(ctx);
		struct ibv_cq *cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
		struct ibv_mr *mr = pd ? ibv_reg_mr(pd, memory, sizeof(memory), 0) : NULL;
		struct ibv_qp_init_attr init = {
			.send_cq = cq,
			.recv_cq = cq,
			.qp_type = seed & 1 ? IBV_QPT_RC : IBV_QPT_UD,
			.cap = {.max_send_wr = 2,
				.max_recv_wr = 2,
				.max_send_sge = 1,
				.max_recv_sge = 1},
		};
		struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
		struct ibv_qp *qp = pd && cq ? ibv_create_qp(pd, &init) : NULL;
		struct ibv_recv_wr recv = {.wr_id = 1}, *bad;

		must(pd && cq && mr && qp);
		if (!pd || !cq || !mr || !qp)
			return NULL;
		must(ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					   (seed & 1 ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY)) == 0);
		must(ibv_post_recv(qp, &recv, &bad) == 0);
		attr.qp_state = IBV_QPS_ERR;
		if (seed & 2)
			must(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
		must(ibv_resize_cq(cq, 32) == 0);
		must(ibv_destroy_qp(qp) == 0);
		must(ibv_dereg_mr(mr) == 0);
		must(ibv_destroy_cq(cq) == 0);
		must(ibv_dealloc_pd(pd) == 0);
		seed++;
	}
	return NULL;
}

/* The canary: ping-pong over one connection with every byte checked. */
static int canary(int rounds)
{
	int done = 0;

	for (int i = 0; i < rounds; i++) {
		struct ibv_sge sge = ep_sge(&near, 0, 2000), into = ep_sge(&far, 4096, 2000);
		struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, (uint64_t)i, &sge, 1);
		struct ibv_wc wc;

		ep_fill(&near, 0, i, 2000);
		if (ep_post_recv(&far, (uint64_t)i, &into, 1) || ep_post_send(&near, &wr) ||
		    ep_poll_one(&near, EP_SEND_CQ, &wc) != IBV_WC_SUCCESS ||
		    ep_poll_one(&far, EP_RECV_CQ, &wc) != IBV_WC_SUCCESS ||
		    wc.wr_id != (uint64_t)i || !ep_is_filled(&far, 4096, i, 2000))
			break;
		done++;
	}
	return done;
}

static void beside_churn(void)
{
	enum { CHURNERS = 6, ROUNDS = 1000 };
	pthread_t thread[CHURNERS];

	expect_case("traffic beside objects that come and go");
	open_pair();
	for (uintptr_t i = 0; i < CHURNERS; i++)
		CHECK(pthread_create(&thread[i], NULL, churn, (void *)i) == 0);
	EXPECT_EQ(canary(ROUNDS), ROUNDS);
	atomic_store(&stop, 1);
	for (int i = 0; i < CHURNERS; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(wrong, 0);
	ep_pair_close(&near, &far);
}

/* Connections that are broken and mended beside the canary. */
static void *breaker(void *arg)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct endpoint a, b;

	(void)arg;
	ep_pair(&a, &b, &config, &config, EP_HERE);
	while (!atomic_load(&stop)) {
		struct ibv_sge sge = ep_sge(&a, 0, 4096);
		struct ibv_send_wr wr = ep_wr(IBV_WR_RDMA_WRITE, 1, &sge, 1);
		struct ibv_wc wc[64];

		wr.wr.rdma.remote_addr = b.local.addr;
		wr.wr.rdma.rkey = b.local.rkey;
		for (int i = 0; i < 32; i++)
			must(ep_post_send(&a, &wr) == 0);
		must(ep_move(&a, IBV_QPS_ERR) == 0);
		must(ep_move(&b, IBV_QPS_ERR) == 0);
		must(ep_poll(&a, EP_SEND_CQ, wc, 32, EP_WAIT_MS) == 32);
		must(ep_move(&a, IBV_QPS_RESET) == 0);
		must(ep_move(&b, IBV_QPS_RESET) == 0);
		must(ep_bring_to(&a, &b.local, IBV_QPS_RTS) == 0);
		must(ep_bring_to(&b, &a.local, IBV_QPS_RTS) == 0);
	}
	ep_pair_close(&a, &b);
	return NULL;
}

static void beside_errors(void)
{
	pthread_t thread;

	expect_case("traffic beside a connection that breaks all the time");
	open_pair();
	CHECK(pthread_create(&thread, NULL, breaker, NULL) == 0);
	EXPECT_EQ(canary(500), 500);
	atomic_store(&stop, 1);
	pthread_join(thread, NULL);
	EXPECT_EQ(wrong, 0);
	ep_pair_close(&near, &far);
}

/* The extended poller holds its queue from start to end; a second one waits, none fails. */
struct ex_share {
	struct ibv_cq_ex *cq;
	_Atomic int seen;
};

static void *ex_poller(void *arg)
{
	struct ibv_poll_cq_attr none = {.comp_mask = 0};
	struct ex_share *share = arg;

	while (!atomic_load(&stop)) {
		int rc = ibv_start_poll(share->cq, &none);

		if (rc) {
			must(rc == ENOENT);
			sched_yield();
			continue;
		}
		do {
			must(share->cq->status == IBV_WC_WR_FLUSH_ERR);
			atomic_fetch_add(&share->seen, 1);
		} while (!ibv_next_poll(share->cq));
		ibv_end_poll(share->cq);
	}
	return NULL;
}

static void extended_pollers(void)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 1024, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_qp_attr to_init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp_attr to_err = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 600, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ex_share share = {0};
	pthread_t thread[3];
	struct ibv_qp *qp;

	expect_case("three pollers of one extended queue");
	open_pair();
	share.cq = ibv_create_cq_ex(near.context, &attr);
	CHECK(share.cq);
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(share.cq);
	qp = ibv_create_qp(near.pd, &init);
	CHECK(qp);
	CHECK(!ibv_modify_qp(qp, &to_init,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	for (uint64_t i = 0; i < 600; i++) {
		struct ibv_recv_wr recv = {.wr_id = i}, *bad;

		CHECK(!ibv_post_recv(qp, &recv, &bad));
	}
	for (int i = 0; i < 3; i++)
		CHECK(pthread_create(&thread[i], NULL, ex_poller, &share) == 0);
	CHECK(!ibv_modify_qp(qp, &to_err, IBV_QP_STATE));
	EXPECT(reaches(&share.seen, 600));
	atomic_store(&stop, 1);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(share.seen, 600);
	EXPECT_EQ(wrong, 0);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(share.cq)), 0);
	ep_pair_close(&near, &far);
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	one_queue_pair();
	contiguous_lists();
	beside_churn();
	beside_errors();
	extended_pollers();
	return expect_done();
}

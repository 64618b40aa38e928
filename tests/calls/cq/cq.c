/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queues: bounds of creation, resizing, overrun, which objects keep one alive, and two
 * pollers.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

static struct ibv_context *ctx;

static void creation(void)
{
	struct ibv_device_attr attr;
	struct ibv_cq *cq, *more[4];

	CHECK(ibv_query_device(ctx, &attr) == 0);
	expect_case("cqe bounds");
	EXPECT_NULL(ibv_create_cq(ctx, 0, NULL, NULL, 0), EINVAL);
	EXPECT_NULL(ibv_create_cq(ctx, -1, NULL, NULL, 0), EINVAL);
	EXPECT_NULL(ibv_create_cq(ctx, attr.max_cqe + 1, NULL, NULL, 0), EINVAL);
	EXPECT_NULL(ibv_create_cq(ctx, 0x7fffffff, NULL, NULL, 0), EINVAL);

	expect_case("cqe 1");
	cq = ibv_create_cq(ctx, 1, &attr, NULL, 0);
	CHECK(cq);
	EXPECT(cq->cqe >= 1);
	EXPECT(cq->cq_context == &attr && cq->context == ctx && cq->channel == NULL);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);

	expect_case("several of max_cqe");
	for (int i = 0; i < 4; i++) {
		more[i] = ibv_create_cq(ctx, attr.max_cqe, NULL, NULL, 0);
		EXPECT(more[i] && more[i]->cqe >= attr.max_cqe);
	}
	for (int i = 0; i < 4; i++)
		if (more[i])
			EXPECT_EQ(ibv_destroy_cq(more[i]), 0);

	expect_case("completion vectors");
	for (int i = 0; i < ctx->num_comp_vectors; i++) {
		cq = ibv_create_cq(ctx, 4, NULL, NULL, i);
		CHECK(cq);
		EXPECT_EQ(ibv_destroy_cq(cq), 0);
	}
	EXPECT_NULL(ibv_create_cq(ctx, 4, NULL, NULL, ctx->num_comp_vectors), EINVAL);
	EXPECT_NULL(ibv_create_cq(ctx, 4, NULL, NULL, -1), EINVAL);
}

static void without_channel(void)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	struct ibv_wc wc[8];

	expect_case("no channel");
	CHECK(cq);
	EXPECT_EQ(ibv_req_notify_cq(cq, 0), 0);
	EXPECT_EQ(ibv_req_notify_cq(cq, 1), 0);
	expect_case("empty");
	EXPECT_EQ(ibv_poll_cq(cq, 8, wc), 0);
	EXPECT_EQ(ibv_poll_cq(cq, 0, wc), 0);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

static void handles(void)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	uint32_t handle;

	expect_case("handle overwritten");
	CHECK(cq);
	handle = cq->handle;
	cq->handle = 0xdeadbeef;
	EXPECT_REFUSED(ibv_destroy_cq(cq), ENOENT);
	cq->handle = handle;
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

static void busy(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct endpoint ep;

	expect_case("EBUSY while a QP uses it");
	ep_open(&ep, &config, EP_HERE);
	EXPECT_REFUSED(ibv_destroy_cq(ep.cq[EP_SEND_CQ]), EBUSY);
	EXPECT_REFUSED(ibv_destroy_cq(ep.cq[EP_RECV_CQ]), EBUSY);
	/* Still whole: it takes the completions of a flush. */
	CHECK(ep_bring_to(&ep, &ep.local, IBV_QPS_INIT) == 0);
	CHECK(ep_post_recv(&ep, 77, NULL, 0) == 0);
	CHECK(ep_move(&ep, IBV_QPS_ERR) == 0);
	{
		struct ibv_wc wc;

		EXPECT_STATUS(ep_poll_one(&ep, EP_RECV_CQ, &wc), IBV_WC_WR_FLUSH_ERR);
		EXPECT_EQ(wc.wr_id, 77);
	}
	ep_close(&ep);
}

/* Sends @n empty messages from a queue pair to itself; receives numbered from @first. */
static void fill(struct endpoint *ep, int first, int n)
{
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 0, NULL, 0);
	struct ibv_wc wc;

	wr.send_flags = IBV_SEND_SIGNALED;
	for (int i = 0; i < n; i++) {
		CHECK(ep_post_recv(ep, (uint64_t)(first + i), NULL, 0) == 0);
		CHECK(ep_post_send(ep, &wr) == 0);
		EXPECT_STATUS(ep_poll_one(ep, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	}
}

static void resize(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_device_attr device;
	struct ibv_wc wc[12];
	struct ibv_cq *cq;
	struct endpoint ep;

	config.cqe = 16;
	ep_open(&ep, &config, EP_HERE);
	ep_link(&ep, &ep);
	cq = ep.cq[EP_RECV_CQ];
	CHECK(ibv_query_device(ep.context, &device) == 0);
	fill(&ep, 100, 12);

	expect_case("resize below the unpolled entries");
	EXPECT_REFUSED(ibv_resize_cq(cq, 11), EINVAL);
	expect_case("resize bounds");
	EXPECT_REFUSED(ibv_resize_cq(cq, 0), EINVAL);
	EXPECT_REFUSED(ibv_resize_cq(cq, -1), EINVAL);
	EXPECT_REFUSED(ibv_resize_cq(cq, device.max_cqe + 1), EINVAL);
	EXPECT(cq->cqe >= 16);

	expect_case("resize keeps entries and order");
	EXPECT_EQ(ibv_resize_cq(cq, 64), 0);
	EXPECT(cq->cqe >= 64);
	EXPECT(cq->cq_context == &ep);
	fill(&ep, 112, 40);
	EXPECT_EQ(ibv_resize_cq(cq, 200), 0);
	for (int i = 100; i < 152; i++) {
		EXPECT_STATUS(ep_poll_one(&ep, EP_RECV_CQ, wc), IBV_WC_SUCCESS);
		EXPECT_EQ(wc->wr_id, i);
	}
	expect_case("resize down");
	EXPECT_EQ(ibv_resize_cq(cq, 8), 0);
	EXPECT(cq->cqe >= 8);
	fill(&ep, 300, 8);
	EXPECT_EQ(ep_poll(&ep, EP_RECV_CQ, wc, 8, EP_WAIT_MS), 8);
	for (int i = 0; i < 8; i++)
		EXPECT_EQ(wc[i].wr_id, 300 + i);
	ep_close(&ep);
}

/* All cq->cqe entries are usable, the next one overruns (IBA 10.2.6, ibv_poll_cq(3)). */
static void overrun(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct endpoint near, far;
	struct ep_event event;
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, NULL, 0);
	struct ibv_wc wc;
	bool cq_error = false, qp_fatal = false;
	int room;

	expect_case("overrun");
	config.cqe = 4;
	config.cap.max_recv_wr = config.cap.max_send_wr = 1024;
	ep_pair(&near, &far, &config, &config, EP_HERE);
	room = far.cq[EP_RECV_CQ]->cqe;
	CHECK(room >= 4 && room < 1024);
	for (int i = 0; i <= room; i++)
		CHECK(ep_post_recv(&far, (uint64_t)i, NULL, 0) == 0);
	for (int i = 0; i < room; i++) {
		CHECK(ep_post_send(&near, &wr) == 0);
		EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	}
	expect_case("a full queue is no error");
	EXPECT(!ep_event(&far, &event, EP_QUIET_MS));
	EXPECT_EQ(ep_state(&far), IBV_QPS_RTS);

	expect_case("overrun");
	CHECK(ep_post_send(&near, &wr) == 0);
	for (int i = 0; i < 2 && ep_event(&far, &event, EP_WAIT_MS); i++) {
		if (event.type == IBV_EVENT_CQ_ERR)
			cq_error = event.own_cq[EP_RECV_CQ];
		if (event.type == IBV_EVENT_QP_FATAL)
			qp_fatal = event.own_qp;
	}
	EXPECT(cq_error);
	EXPECT(qp_fatal);
	EXPECT_EQ(ep_state(&far), IBV_QPS_ERR);
	EXPECT_SAY(!ep_event(&far, &event, EP_QUIET_MS), "a third event: %d", event.type);
	expect_case("entries of an overrun queue stay");
	for (int i = 0; i < room; i++) {
		EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_EQ(wc.wr_id, i);
	}
	ep_pair_close(&near, &far);
}

/* Two pollers share a queue; each entry goes to exactly one of them. */
struct share {
	struct ibv_cq *cq;
	_Atomic int left;
	_Atomic int seen[512];
};

static void *poller(void *arg)
{
	struct share *share = arg;

	while (atomic_load(&share->left) > 0) {
		struct ibv_wc wc[3];
		int n = ibv_poll_cq(share->cq, 3, wc);

		for (int i = 0; i < n; i++)
			atomic_fetch_add(&share->seen[wc[i].wr_id % 512], 1);
		atomic_fetch_sub(&share->left, n);
		if (n <= 0)
			sched_yield();
	}
	return NULL;
}

static void two_pollers(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	static struct share share;
	pthread_t thread[2];
	struct endpoint ep;

	expect_case("two pollers");
	config.cqe = 1024;
	config.cap.max_recv_wr = 512;
	ep_open(&ep, &config, EP_HERE);
	CHECK(ep_bring_to(&ep, &ep.local, IBV_QPS_INIT) == 0);
	for (uint64_t i = 0; i < 512; i++)
		CHECK(ep_post_recv(&ep, i, NULL, 0) == 0);
	share.cq = ep.cq[EP_RECV_CQ];
	share.left = 512;
	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&thread[i], NULL, poller, &share) == 0);
	CHECK(ep_move(&ep, IBV_QPS_ERR) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
	EXPECT_EQ(share.left, 0);
	for (int i = 0; i < 512; i++)
		EXPECT_EQ(share.seen[i], 1);
	ep_close(&ep);
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	ctx = device_open();
	creation();
	without_channel();
	handles();
	busy();
	resize();
	overrun();
	two_pollers();
	EXPECT_EQ(ibv_close_device(ctx), 0);
	return expect_done();
}

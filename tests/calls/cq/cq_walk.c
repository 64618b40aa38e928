/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Iterations through an extended queue beside other work (ibv_create_cq_ex(3)): pollers of other
 * threads wait for the end of the iteration, and queue pairs are posted to and destroyed meanwhile.
 * And the order of events on a channel (ibv_get_cq_event(3)).
 */
#include <pthread.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

static struct ibv_context *ctx;
static struct ibv_pd *pd;

/* A queue pair in ERR: each receive posted to it is an entry of its queue at once. */
static struct ibv_qp *flusher(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.qp_type = IBV_QPT_UD,
					.cap = {.max_recv_wr = 16, .max_recv_sge = 1}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	CHECK(qp);
	CHECK(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_ERR;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	return qp;
}

static void entry(struct ibv_qp *qp, uint64_t wr_id)
{
	struct ibv_recv_wr recv = {.wr_id = wr_id}, *bad;

	CHECK(!ibv_post_recv(qp, &recv, &bad));
}

static struct ibv_cq_ex *queue(void)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &attr);

	CHECK(cq);
	return cq;
}

struct poller {
	struct ibv_cq_ex *cq;
	bool walks;
	int done, result;
	uint64_t wr_id;
};

static void *poll_beside(void *arg)
{
	struct poller *p = arg;
	struct ibv_wc wc = {0};

	if (p->walks) {
		p->result = ibv_start_poll(p->cq, NULL);
		p->wr_id = p->cq->wr_id;
		if (!p->result)
			ibv_end_poll(p->cq);
	} else {
		p->result = ibv_poll_cq(ibv_cq_ex_to_cq(p->cq), 1, &wc);
		p->wr_id = wc.wr_id;
	}
	__atomic_store_n(&p->done, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

/* It gets the first entry that the walk has not passed. */
static void others_wait(bool walks)
{
	struct poller p = {.cq = queue(), .walks = walks};
	struct ibv_qp *qp = flusher(ibv_cq_ex_to_cq(p.cq));
	pthread_t thread;

	expect_case("a walk: %s of another thread waits", walks ? "start_poll" : "poll_cq");
	for (uint64_t i = 1; i <= 3; i++)
		entry(qp, i);
	CHECK(ibv_start_poll(p.cq, NULL) == 0);
	EXPECT_EQ(p.cq->wr_id, 1);
	CHECK(pthread_create(&thread, NULL, poll_beside, &p) == 0);
	usleep(EP_QUIET_MS * 1000);
	EXPECT_EQ(__atomic_load_n(&p.done, __ATOMIC_SEQ_CST), 0);
	EXPECT_EQ(ibv_next_poll(p.cq), 0);
	EXPECT_EQ(p.cq->wr_id, 2);
	ibv_end_poll(p.cq);
	CHECK(pthread_join(thread, NULL) == 0);
	EXPECT_EQ(p.result, walks ? 0 : 1);
	EXPECT_EQ(p.wr_id, 3);
	EXPECT_EQ(ibv_start_poll(p.cq, NULL), ENOENT);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(p.cq)), 0);
}

/* What a destroyed queue pair had in the queue goes with it; what was passed stays passed. */
static void destroyed_meanwhile(void)
{
	struct ibv_cq_ex *cq = queue();
	struct ibv_qp *goes = flusher(ibv_cq_ex_to_cq(cq)), *stays = flusher(ibv_cq_ex_to_cq(cq));

	expect_case("a walk: queue pairs are posted to and destroyed");
	for (uint64_t i = 0; i < 3; i++) {
		entry(goes, 100 + i);
		entry(stays, 200 + i);
	}
	CHECK(ibv_start_poll(cq, NULL) == 0);
	EXPECT_EQ(cq->wr_id, 100);
	EXPECT_EQ(ibv_next_poll(cq), 0);
	EXPECT_EQ(cq->wr_id, 200);
	EXPECT_EQ(ibv_next_poll(cq), 0);
	EXPECT_EQ(cq->wr_id, 101);
	EXPECT_EQ(ibv_destroy_qp(goes), 0);
	entry(stays, 203);
	for (uint64_t i = 1; i < 4; i++) {
		EXPECT_EQ(ibv_next_poll(cq), 0);
		EXPECT_EQ(cq->wr_id, 200 + i);
		EXPECT_EQ(ibv_wc_read_qp_num(cq), stays->qp_num);
	}
	EXPECT_EQ(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	EXPECT_EQ(ibv_start_poll(cq, NULL), ENOENT);
	EXPECT_EQ(ibv_destroy_qp(stays), 0);
	EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/* Armed in one order, completed in another: the latter is that of the events. */
static void order_of_events(void)
{
	enum { QUEUES = 7 };
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
	struct ibv_cq *cq[QUEUES], *told;
	struct ibv_qp *qp[QUEUES];
	void *number;

	expect_case("events in the order in which they arose");
	CHECK(channel);
	for (intptr_t i = 0; i < QUEUES; i++) {
		cq[i] = ibv_create_cq(ctx, 4, (void *)i, channel, 0);
		CHECK(cq[i] && !ibv_req_notify_cq(cq[i], 0));
		qp[i] = flusher(cq[i]);
	}
	for (int i = 0; i < QUEUES; i++)
		entry(qp[i * 3 % QUEUES], 1);
	for (int i = 0; i < QUEUES; i++) {
		CHECK(ibv_get_cq_event(channel, &told, &number) == 0);
		EXPECT_EQ((intptr_t)number, i * 3 % QUEUES);
		EXPECT(told == cq[i * 3 % QUEUES]);
		ibv_ack_cq_events(told, 1);
	}
	for (int i = 0; i < QUEUES; i++) {
		EXPECT_EQ(ibv_destroy_qp(qp[i]), 0);
		EXPECT_EQ(ibv_destroy_cq(cq[i]), 0);
	}
	EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	ctx = device_open();
	pd = ibv_alloc_pd(ctx);
	CHECK(pd);
	others_wait(false);
	others_wait(true);
	destroyed_meanwhile();
	order_of_events();
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(ctx), 0);
	return expect_done();
}

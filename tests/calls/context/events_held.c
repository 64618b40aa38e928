/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Events and the end of the objects that they are about (ibv_get_async_event(3)): destroying an
 * object waits until an event that was fetched is acknowledged, and for no other event. An event
 * that was not fetched goes with its object. The test takes each kind of object that has events;
 * queue pairs are in async_event.c, completion events in comp_channel.c.
 */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *queue_cq;
static struct ibv_xrcd *xrcd;

/* A queue of one entry, which a queue pair in ERR overruns and then leaves. */
static void *cq_with_event(void)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.qp_type = IBV_QPT_UD,
					.cap = {.max_recv_wr = 4, .max_recv_sge = 1}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad;

	CHECK(qp);
	CHECK(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_ERR;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	CHECK(!ibv_post_recv(qp, &recv, &bad) && !ibv_post_recv(qp, &recv, &bad));
	CHECK(!ibv_destroy_qp(qp));
	return cq;
}

static int cq_destroy(void *object)
{
	return ibv_destroy_cq(object);
}

/* Nothing is posted, so that its limit is reached at once. */
static void *srq_with_event(enum ibv_srq_type type)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = {.max_wr = 4, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
		.srq_type = type,
		.pd = pd,
		.xrcd = xrcd,
		.cq = queue_cq,
		.tm_cap = {.max_num_tags = 1},
	};
	struct ibv_srq_attr attr = {.srq_limit = 1};
	struct ibv_srq *srq = ibv_create_srq_ex(ctx, &init);

	CHECK(srq && !ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
	return srq;
}

static void *basic_with_event(void)
{
	return srq_with_event(IBV_SRQT_BASIC);
}

static void *xrc_with_event(void)
{
	return srq_with_event(IBV_SRQT_XRC);
}

static void *tags_with_event(void)
{
	return srq_with_event(IBV_SRQT_TM);
}

static int srq_destroy(void *object)
{
	return ibv_destroy_srq(object);
}

static const struct kind {
	const char *what;
	enum ibv_event_type event;
	void *(*make)(void);
	int (*destroy)(void *object);
} kinds[] = {
	{"a completion queue", IBV_EVENT_CQ_ERR, cq_with_event, cq_destroy},
	{"a shared receive queue", IBV_EVENT_SRQ_LIMIT_REACHED, basic_with_event, srq_destroy},
	{"an XRC queue", IBV_EVENT_SRQ_LIMIT_REACHED, xrc_with_event, srq_destroy},
	{"a queue with tags", IBV_EVENT_SRQ_LIMIT_REACHED, tags_with_event, srq_destroy},
};

struct destroyer {
	const struct kind *kind;
	void *object;
	int done, result;
};

static void *destroy(void *arg)
{
	struct destroyer *d = arg;

	d->result = d->kind->destroy(d->object);
	__atomic_store_n(&d->done, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void fetched(const struct kind *kind)
{
	struct destroyer d = {.kind = kind, .object = kind->make()};
	struct ibv_async_event event, later;
	void *other = kind->make();
	pthread_t thread;

	expect_case("%s: its event was fetched", kind->what);
	CHECK(ibv_get_async_event(ctx, &event) == 0);
	EXPECT_EQ(event.event_type, kind->event);
	EXPECT((void *)event.element.cq == d.object);
	CHECK(ibv_get_async_event(ctx, &later) == 0);
	EXPECT((void *)later.element.cq == other);
	CHECK(pthread_create(&thread, NULL, destroy, &d) == 0);
	usleep(EP_QUIET_MS * 1000);
	EXPECT_EQ(__atomic_load_n(&d.done, __ATOMIC_SEQ_CST), 0);
	expect_case("%s: another's acknowledgement is not its own", kind->what);
	ibv_ack_async_event(&later);
	EXPECT_EQ(kind->destroy(other), 0);
	EXPECT_EQ(__atomic_load_n(&d.done, __ATOMIC_SEQ_CST), 0);
	expect_case("%s: its own lets it go", kind->what);
	ibv_ack_async_event(&event);
	CHECK(pthread_join(thread, NULL) == 0);
	EXPECT_EQ(d.result, 0);
}

static void never_fetched(const struct kind *kind)
{
	struct ibv_async_event event;
	void *object = kind->make();

	expect_case("%s: its event was not fetched", kind->what);
	EXPECT_EQ(kind->destroy(object), 0);
	EXPECT_MINUS1(ibv_get_async_event(ctx, &event), EAGAIN);
}

int main(int argc, char **argv)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};

	ep_main(argc, argv);
	ctx = device_open();
	pd = ibv_alloc_pd(ctx);
	queue_cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	xrcd = ibv_open_xrcd(ctx, &attr);
	CHECK(pd && queue_cq && xrcd);
	CHECK(fcntl(ctx->async_fd, F_SETFL, fcntl(ctx->async_fd, F_GETFL) | O_NONBLOCK) == 0);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		fetched(&kinds[i]);
		never_fetched(&kinds[i]);
	}
	EXPECT_EQ(ibv_close_xrcd(xrcd), 0);
	EXPECT_EQ(ibv_destroy_cq(queue_cq), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(ctx), 0);
	return expect_done();
}

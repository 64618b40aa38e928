/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Asynchronous events: which context gets them, how its descriptor behaves, and which calls wait
 * for an acknowledgement. The source of events here is IBV_EVENT_QP_LAST_WQE_REACHED; which event a
 * fault raises is tested by error_matrix.c.
 */
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"

/* A queue pair with an SRQ that went to error: one event for it is under way. */
static void open_with_event(struct endpoint *ep)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	config.srq_wr = 8;
	ep_open(ep, &config, EP_HERE);
	ep_link(ep, ep);
	CHECK(ep_move(ep, IBV_QPS_ERR) == 0);
	EXPECT_SAY(readable(ep->context->async_fd, EP_WAIT_MS), "no event came");
}

static void descriptor(void)
{
	struct ibv_context *ctx = device_open();
	struct ibv_async_event event;
	int flags;

	expect_case("descriptor");
	EXPECT(fcntl(ctx->async_fd, F_GETFD) & FD_CLOEXEC);
	flags = fcntl(ctx->async_fd, F_GETFL);
	EXPECT_EQ(flags & O_NONBLOCK, 0); /* a call blocks until told otherwise */
	CHECK(fcntl(ctx->async_fd, F_SETFL, flags | O_NONBLOCK) == 0);
	EXPECT_MINUS1(ibv_get_async_event(ctx, &event), EAGAIN);
	EXPECT(!readable(ctx->async_fd, 0));
	EXPECT_EQ(ibv_close_device(ctx), 0);
}

/* The event goes to the context that made the object and to no other. */
static void delivery(void)
{
	struct ibv_context *other = device_open();
	struct ibv_async_event event;
	struct endpoint ep;

	expect_case("delivery");
	open_with_event(&ep);
	EXPECT(!readable(other->async_fd, EP_QUIET_MS));
	CHECK(ibv_get_async_event(ep.context, &event) == 0);
	EXPECT_EQ(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	EXPECT(event.element.qp == ep.qp);
	EXPECT_EQ(event.element.qp->qp_context == &ep, 1);
	ibv_ack_async_event(&event);
	EXPECT(!readable(ep.context->async_fd, EP_QUIET_MS));
	ep_close(&ep);
	EXPECT_EQ(ibv_close_device(other), 0);
}

struct destroyer {
	struct ibv_qp *qp;
	int done; /* atomically */
	int result;
};

static void *destroy_qp(void *arg)
{
	struct destroyer *destroyer = arg;

	destroyer->result = ibv_destroy_qp(destroyer->qp);
	__atomic_store_n(&destroyer->done, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

/* ibv_destroy_qp(3) waits until each fetched event of the queue pair is acknowledged. */
static void acknowledgement(void)
{
	struct destroyer destroyer = {0};
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_async_event event;
	struct endpoint ep, live;
	pthread_t thread;

	expect_case("destroy waits for the acknowledgement");
	open_with_event(&ep);
	ep_open(&live, &config, EP_HERE);
	CHECK(ibv_get_async_event(ep.context, &event) == 0);
	destroyer.qp = ep.qp;
	CHECK(pthread_create(&thread, NULL, destroy_qp, &destroyer) == 0);
	usleep(EP_QUIET_MS * 1000);
	EXPECT_EQ(__atomic_load_n(&destroyer.done, __ATOMIC_SEQ_CST), 0);
	/* Meanwhile other objects of the same context and process go on. */
	{
		struct ibv_cq *cq = ibv_create_cq(ep.context, 4, NULL, NULL, 0);

		EXPECT(cq != NULL);
		EXPECT_EQ(ibv_destroy_cq(cq), 0);
	}
	ep_close(&live);
	EXPECT_EQ(__atomic_load_n(&destroyer.done, __ATOMIC_SEQ_CST), 0);
	ibv_ack_async_event(&event);
	CHECK(pthread_join(thread, NULL) == 0);
	EXPECT_EQ(destroyer.result, 0);
	ep.qp = NULL;
	ep_close(&ep);
}

/* An event that was not fetched goes with its object. */
static void never_fetched(void)
{
	struct endpoint ep;

	expect_case("never fetched");
	open_with_event(&ep);
	EXPECT_EQ(ibv_destroy_qp(ep.qp), 0);
	ep.qp = NULL;
	EXPECT(!readable(ep.context->async_fd, 0));
	{
		struct ibv_async_event event;

		EXPECT_MINUS1(ibv_get_async_event(ep.context, &event), EAGAIN);
	}
	ep_close(&ep);
}

static void *wait_for_event(void *arg)
{
	struct ibv_context *ctx = arg;
	struct ibv_async_event event;

	if (ibv_get_async_event(ctx, &event))
		return NULL;
	ibv_ack_async_event(&event);
	return (void *)(uintptr_t)(event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED);
}

static void sleeping_waiter(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	pthread_t thread;
	struct endpoint ep;
	void *good;
	int flags;

	expect_case("a sleeping waiter wakes");
	config.srq_wr = 8;
	ep_open(&ep, &config, EP_HERE);
	ep_link(&ep, &ep);
	flags = fcntl(ep.context->async_fd, F_GETFL);
	CHECK(fcntl(ep.context->async_fd, F_SETFL, flags & ~O_NONBLOCK) == 0);
	CHECK(pthread_create(&thread, NULL, wait_for_event, ep.context) == 0);
	usleep(5000);
	CHECK(ep_move(&ep, IBV_QPS_ERR) == 0);
	CHECK(pthread_join(thread, &good) == 0);
	EXPECT(good != NULL);
	CHECK(fcntl(ep.context->async_fd, F_SETFL, flags) == 0);
	ep_close(&ep);
}

/* COMM_EST comes once, when the first packet finds the queue pair in RTR (IBA 11.6.3.2). */
static void communication_established(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, NULL, 0);
	struct endpoint near, far;
	struct ep_event event;
	struct ibv_wc wc;

	expect_case("COMM_EST");
	ep_open(&near, &config, EP_HERE);
	ep_open(&far, &config, EP_HERE);
	CHECK(ep_bring_to(&far, &near.local, IBV_QPS_RTR) == 0);
	CHECK(ep_bring_to(&near, &far.local, IBV_QPS_RTS) == 0);
	for (int i = 0; i < 2; i++) {
		CHECK(ep_post_recv(&far, 1, NULL, 0) == 0);
		CHECK(ep_post_send(&near, &wr) == 0);
		EXPECT_STATUS(ep_poll_one(&near, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_STATUS(ep_poll_one(&far, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
	}
	if (EXPECT(ep_event(&far, &event, EP_WAIT_MS))) {
		EXPECT_EQ(event.type, IBV_EVENT_COMM_EST);
		EXPECT(event.own_qp);
	}
	EXPECT(!ep_event(&far, &event, EP_QUIET_MS));
	EXPECT(!ep_event(&near, &event, 0));
	EXPECT_EQ(ep_state(&far), IBV_QPS_RTR);
	ep_pair_close(&near, &far);
}

int main(int argc, char **argv)
{
	ep_main(argc, argv);
	descriptor();
	delivery();
	acknowledgement();
	never_fetched();
	sleeping_waiter();
	communication_established();
	return expect_done();
}

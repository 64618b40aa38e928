/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Asynchronous events: where they go, how their descriptor behaves, what acknowledgement holds up.
 * Which event a fault raises: error_matrix.c. Here IBV_EVENT_QP_LAST_WQE_REACHED is the source.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/end.h"
#include "support/check.h"

static bool readable(int fd, int ms)
{
	struct pollfd poller = {.fd = fd, .events = POLLIN};

	return poll(&poller, 1, ms) == 1 && poller.revents & POLLIN;
}

/* A queue pair with an SRQ that went to error: one event for it is under way. */
static void open_with_event(struct end *end)
{
	struct end_config config = end_defaults(IBV_QPT_RC);

	config.srq_wr = 8;
	end_open(end, &config, END_HERE);
	end_link(end, end);
	CHECK(end_move(end, IBV_QPS_ERR) == 0);
	EXPECT_SAY(readable(end->ctx->async_fd, END_WAIT_MS), "no event came");
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
	struct end end;

	expect_case("delivery");
	open_with_event(&end);
	EXPECT(!readable(other->async_fd, END_QUIET_MS));
	CHECK(ibv_get_async_event(end.ctx, &event) == 0);
	EXPECT_EQ(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	EXPECT(event.element.qp == end.qp);
	EXPECT_EQ(event.element.qp->qp_context == &end, 1);
	ibv_ack_async_event(&event);
	EXPECT(!readable(end.ctx->async_fd, END_QUIET_MS));
	end_close(&end);
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
	struct end_config config = end_defaults(IBV_QPT_RC);
	struct ibv_async_event event;
	struct end end, live;
	pthread_t thread;

	expect_case("destroy waits for the acknowledgement");
	open_with_event(&end);
	end_open(&live, &config, END_HERE);
	CHECK(ibv_get_async_event(end.ctx, &event) == 0);
	destroyer.qp = end.qp;
	CHECK(pthread_create(&thread, NULL, destroy_qp, &destroyer) == 0);
	usleep(END_QUIET_MS * 1000);
	EXPECT_EQ(__atomic_load_n(&destroyer.done, __ATOMIC_SEQ_CST), 0);
	/* Meanwhile other objects of the same context and process go on. */
	{
		struct ibv_cq *cq = ibv_create_cq(end.ctx, 4, NULL, NULL, 0);

		EXPECT(cq != NULL);
		EXPECT_EQ(ibv_destroy_cq(cq), 0);
	}
	end_close(&live);
	EXPECT_EQ(__atomic_load_n(&destroyer.done, __ATOMIC_SEQ_CST), 0);
	ibv_ack_async_event(&event);
	CHECK(pthread_join(thread, NULL) == 0);
	EXPECT_EQ(destroyer.result, 0);
	/* The rest of the end, which no longer has its queue pair. */
	EXPECT_EQ(ibv_destroy_srq(end.srq), 0);
	EXPECT_EQ(ibv_destroy_cq(end.cq[0]), 0);
	EXPECT_EQ(ibv_destroy_cq(end.cq[1]), 0);
	EXPECT_EQ(ibv_dereg_mr(end.mr), 0);
	EXPECT_EQ(ibv_dealloc_pd(end.pd), 0);
	EXPECT_EQ(ibv_dealloc_pd(end.other_pd), 0);
	EXPECT_EQ(ibv_close_device(end.ctx), 0);
}

/* An event that was not fetched goes with its object. */
static void never_fetched(void)
{
	struct end end;

	expect_case("never fetched");
	open_with_event(&end);
	EXPECT_EQ(ibv_destroy_qp(end.qp), 0);
	EXPECT(!readable(end.ctx->async_fd, 0));
	{
		struct ibv_async_event event;

		EXPECT_MINUS1(ibv_get_async_event(end.ctx, &event), EAGAIN);
	}
	EXPECT_EQ(ibv_destroy_srq(end.srq), 0);
	EXPECT_EQ(ibv_destroy_cq(end.cq[0]), 0);
	EXPECT_EQ(ibv_destroy_cq(end.cq[1]), 0);
	EXPECT_EQ(ibv_dereg_mr(end.mr), 0);
	EXPECT_EQ(ibv_dealloc_pd(end.pd), 0);
	EXPECT_EQ(ibv_dealloc_pd(end.other_pd), 0);
	EXPECT_EQ(ibv_close_device(end.ctx), 0);
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
	struct end_config config = end_defaults(IBV_QPT_RC);
	pthread_t thread;
	struct end end;
	void *good;
	int flags;

	expect_case("a sleeping waiter wakes");
	config.srq_wr = 8;
	end_open(&end, &config, END_HERE);
	end_link(&end, &end);
	flags = fcntl(end.ctx->async_fd, F_GETFL);
	CHECK(fcntl(end.ctx->async_fd, F_SETFL, flags & ~O_NONBLOCK) == 0);
	CHECK(pthread_create(&thread, NULL, wait_for_event, end.ctx) == 0);
	usleep(5000);
	CHECK(end_move(&end, IBV_QPS_ERR) == 0);
	CHECK(pthread_join(thread, &good) == 0);
	EXPECT(good != NULL);
	CHECK(fcntl(end.ctx->async_fd, F_SETFL, flags) == 0);
	end_close(&end);
}

/* COMM_EST comes once, when the first packet finds the queue pair in RTR (IBA 11.6.3.2). */
static void communication_established(void)
{
	struct end_config config = end_defaults(IBV_QPT_RC);
	struct ibv_send_wr wr = end_wr(IBV_WR_SEND, 1, NULL, 0);
	struct end near, far;
	struct end_event event;
	struct ibv_wc wc;

	expect_case("COMM_EST");
	end_open(&near, &config, END_HERE);
	end_open(&far, &config, END_HERE);
	CHECK(end_bring_to(&far, &near.info, IBV_QPS_RTR) == 0);
	CHECK(end_bring_to(&near, &far.info, IBV_QPS_RTS) == 0);
	for (int i = 0; i < 2; i++) {
		CHECK(end_post_recv(&far, 1, NULL, 0) == 0);
		CHECK(end_post_send(&near, &wr) == 0);
		EXPECT_STATUS(end_poll_one(&near, END_SEND_CQ, &wc), IBV_WC_SUCCESS);
		EXPECT_STATUS(end_poll_one(&far, END_RECV_CQ, &wc), IBV_WC_SUCCESS);
	}
	if (EXPECT(end_event(&far, &event, END_WAIT_MS))) {
		EXPECT_EQ(event.type, IBV_EVENT_COMM_EST);
		EXPECT(event.own_qp);
	}
	EXPECT(!end_event(&far, &event, END_QUIET_MS));
	EXPECT(!end_event(&near, &event, 0));
	EXPECT_EQ(end_state(&far), IBV_QPS_RTR);
	end_pair_close(&near, &far);
}

int main(int argc, char **argv)
{
	end_main(argc, argv);
	descriptor();
	delivery();
	acknowledgement();
	never_fetched();
	sleeping_waiter();
	communication_established();
	return expect_done();
}

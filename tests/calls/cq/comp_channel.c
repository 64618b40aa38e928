/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion channels: one event per arming, solicited arming, descriptors in every kind of wait,
 * acknowledgement before destruction, several queues on one channel.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"
#include "support/qp_state.h"

static struct ibv_context *ctx;
static struct ibv_pd *pd;

/* A UD-free source of completions: an RC queue pair connected to itself on a CQ with a channel. */
struct source {
	struct ibv_comp_channel *channel;
	struct ibv_cq *send_cq, *cq;
	struct ibv_qp *qp;
};

static void source_open(struct source *source, struct ibv_comp_channel *channel, int vector)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1},
	};

	source->channel = channel;
	source->send_cq = ibv_create_cq(ctx, 128, NULL, NULL, 0);
	source->cq = ibv_create_cq(ctx, 128, source, channel, vector);
	CHECK(source->send_cq && source->cq);
	EXPECT(source->cq->channel == channel);
	init.send_cq = source->send_cq;
	init.recv_cq = source->cq;
	source->qp = ibv_create_qp(pd, &init);
	CHECK(source->qp);
	qp_link_self(source->qp);
}

static void source_close(struct source *source)
{
	EXPECT_EQ(ibv_destroy_qp(source->qp), 0);
	EXPECT_EQ(ibv_destroy_cq(source->cq), 0);
	EXPECT_EQ(ibv_destroy_cq(source->send_cq), 0);
}

/* One receive completion in the CQ, there when this returns (its sender's came). */
static void complete_one(struct source *source, bool solicited)
{
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad_recv;
	struct ibv_send_wr send = {
		.wr_id = 2,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | (solicited ? IBV_SEND_SOLICITED : 0u),
	};
	struct ibv_send_wr *bad_send;
	struct ibv_wc wc;
	int n = 0;

	CHECK(!ibv_post_recv(source->qp, &recv, &bad_recv));
	CHECK(!ibv_post_send(source->qp, &send, &bad_send));
	for (int i = 0; !n && i < EP_WAIT_MS * 10; i++) {
		n = ibv_poll_cq(source->send_cq, 1, &wc);
		if (!n)
			usleep(100);
	}
	CHECK(n == 1);
	EXPECT_STATUS(wc.status, IBV_WC_SUCCESS);
}

static int drain(struct source *source)
{
	struct ibv_wc wc[16];
	int got = 0, n;

	while ((n = ibv_poll_cq(source->cq, 16, wc)) > 0)
		got += n;
	return got;
}

/* Takes an event that must be there, names the source, and acknowledges it. */
static void take_event(struct source *source)
{
	struct ibv_cq *cq = NULL;
	void *cq_context = NULL;

	if (!EXPECT_SAY(readable(source->channel->fd, EP_WAIT_MS), "no event came"))
		return;
	EXPECT_EQ(ibv_get_cq_event(source->channel, &cq, &cq_context), 0);
	EXPECT(cq == source->cq);
	EXPECT(cq_context == source);
	ibv_ack_cq_events(source->cq, 1);
}

static void silent(struct source *source)
{
	EXPECT_SAY(!readable(source->channel->fd, EP_QUIET_MS), "an event that nobody armed for");
}

static void arming(struct source *source)
{
	expect_case("not armed");
	complete_one(source, true);
	silent(source);
	EXPECT_EQ(drain(source), 1);

	expect_case("entries polled before arming");
	EXPECT_EQ(ibv_req_notify_cq(source->cq, 0), 0);
	silent(source);

	expect_case("one shot");
	complete_one(source, false);
	take_event(source);
	complete_one(source, false);
	silent(source);
	EXPECT_EQ(drain(source), 2);

	expect_case("armed twice, one event");
	EXPECT_EQ(ibv_req_notify_cq(source->cq, 0), 0);
	EXPECT_EQ(ibv_req_notify_cq(source->cq, 0), 0);
	complete_one(source, false);
	complete_one(source, false);
	take_event(source);
	silent(source);
	EXPECT_EQ(drain(source), 2);

	expect_case("armed with entries unpolled");
	complete_one(source, false);
	EXPECT_EQ(ibv_req_notify_cq(source->cq, 0), 0);
	take_event(source);
	EXPECT_EQ(drain(source), 1);
}

static void solicited(struct source *source)
{
	struct ibv_recv_wr recv = {.wr_id = 9}, *bad;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	expect_case("solicited only: others are silent");
	EXPECT_EQ(ibv_req_notify_cq(source->cq, 1), 0);
	complete_one(source, false);
	silent(source);
	expect_case("solicited only: a solicited one fires");
	complete_one(source, true);
	take_event(source);
	EXPECT_EQ(drain(source), 2);

	expect_case("any, then solicited: stays any");
	EXPECT_EQ(ibv_req_notify_cq(source->cq, 0), 0);
	EXPECT_EQ(ibv_req_notify_cq(source->cq, 1), 0);
	complete_one(source, false);
	take_event(source);
	EXPECT_EQ(drain(source), 1);

	expect_case("solicited, then any: becomes any");
	EXPECT_EQ(ibv_req_notify_cq(source->cq, 1), 0);
	EXPECT_EQ(ibv_req_notify_cq(source->cq, 0), 0);
	complete_one(source, false);
	take_event(source);
	EXPECT_EQ(drain(source), 1);

	expect_case("solicited with only unsolicited entries waiting");
	complete_one(source, false);
	EXPECT_EQ(ibv_req_notify_cq(source->cq, 1), 0);
	silent(source);
	complete_one(source, true);
	take_event(source);
	EXPECT_EQ(drain(source), 2);

	expect_case("solicited only: an unsuccessful one fires");
	CHECK(!ibv_post_recv(source->qp, &recv, &bad));
	EXPECT_EQ(ibv_req_notify_cq(source->cq, 1), 0);
	CHECK(!ibv_modify_qp(source->qp, &attr, IBV_QP_STATE));
	take_event(source);
	EXPECT_EQ(drain(source), 1);
	attr.qp_state = IBV_QPS_RESET;
	CHECK(!ibv_modify_qp(source->qp, &attr, IBV_QP_STATE));
	qp_link_self(source->qp);
}

static void nonblocking(struct source *source)
{
	int fd = source->channel->fd, flags = fcntl(fd, F_GETFL);
	struct epoll_event event = {.events = EPOLLIN | EPOLLET}, got;
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct ibv_cq *cq;
	void *context;
	int copy;

	expect_case("O_NONBLOCK, empty");
	CHECK(fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0);
	EXPECT_MINUS1(ibv_get_cq_event(source->channel, &cq, &context), EAGAIN);

	expect_case("epoll, edge");
	CHECK(epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(ibv_req_notify_cq(source->cq, 0), 0);
		complete_one(source, false);
		EXPECT_EQ(epoll_wait(epoll, &got, 1, EP_WAIT_MS), 1);
		take_event(source);
		EXPECT_EQ(drain(source), 1);
		EXPECT_MINUS1(ibv_get_cq_event(source->channel, &cq, &context), EAGAIN);
	}
	close(epoll);

	expect_case("a duplicate of the descriptor shows it too");
	copy = dup(fd);
	CHECK(copy >= 0);
	EXPECT_EQ(ibv_req_notify_cq(source->cq, 0), 0);
	complete_one(source, false);
	EXPECT(readable(copy, EP_WAIT_MS));
	take_event(source);
	EXPECT(!readable(copy, 0));
	close(copy);
	EXPECT_EQ(drain(source), 1);
	CHECK(fcntl(fd, F_SETFL, flags) == 0);
}

static void on_signal(int number)
{
	(void)number;
}

static void *wait_interrupted(void *arg)
{
	struct source *source = arg;
	struct ibv_cq *cq;
	void *context;
	int rc;

	errno = 0;
	rc = ibv_get_cq_event(source->channel, &cq, &context);
	return (void *)(intptr_t)(rc == -1 && errno == EINTR);
}

static void interrupted(struct source *source)
{
	struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART */
	pthread_t thread;
	void *good = NULL;

	expect_case("EINTR");
	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	CHECK(pthread_create(&thread, NULL, wait_interrupted, source) == 0);
	/* Signals before the thread sleeps are lost: send until it has returned. */
	for (int i = 0; i < 2000 && pthread_tryjoin_np(thread, &good); i++) {
		pthread_kill(thread, SIGUSR1);
		usleep(5000);
	}
	EXPECT(good != NULL);
}

static void *wait_and_take(void *arg)
{
	struct source *source = arg;
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(source->channel, &cq, &context))
		return NULL;
	ibv_ack_cq_events(cq, 1);
	return (void *)1;
}

static void sleeping_waiter(struct source *source)
{
	pthread_t thread;
	void *good;

	expect_case("a sleeping waiter wakes");
	for (int i = 0; i < 10; i++) {
		EXPECT_EQ(ibv_req_notify_cq(source->cq, 0), 0);
		CHECK(pthread_create(&thread, NULL, wait_and_take, source) == 0);
		usleep(2000);
		complete_one(source, false);
		CHECK(pthread_join(thread, &good) == 0);
		EXPECT(good != NULL);
		EXPECT_EQ(drain(source), 1);
	}
}

struct destroyer {
	struct ibv_cq *cq;
	int done; /* atomically */
	int result;
};

static void *destroy_cq(void *arg)
{
	struct destroyer *destroyer = arg;

	destroyer->result = ibv_destroy_cq(destroyer->cq);
	__atomic_store_n(&destroyer->done, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

/* EBUSY is judged before the wait for acknowledgements (semantics of ibv_destroy_cq(3)). */
static void acknowledgement(struct ibv_comp_channel *channel)
{
	struct destroyer destroyer = {0};
	struct source source;
	struct ibv_cq *cq;
	pthread_t thread;
	void *context;

	source_open(&source, channel, 0);
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(ibv_req_notify_cq(source.cq, 0), 0);
		complete_one(&source, false);
		EXPECT(readable(channel->fd, EP_WAIT_MS));
		EXPECT_EQ(ibv_get_cq_event(channel, &cq, &context), 0);
		EXPECT_EQ(drain(&source), 1);
	}
	expect_case("EBUSY with events unacknowledged");
	EXPECT_REFUSED(ibv_destroy_cq(source.cq), EBUSY);
	EXPECT_EQ(ibv_destroy_qp(source.qp), 0);

	expect_case("destroy waits for acknowledgements");
	destroyer.cq = source.cq;
	CHECK(pthread_create(&thread, NULL, destroy_cq, &destroyer) == 0);
	usleep(EP_QUIET_MS * 1000);
	EXPECT_EQ(__atomic_load_n(&destroyer.done, __ATOMIC_SEQ_CST), 0);
	ibv_ack_cq_events(source.cq, 1);
	usleep(EP_QUIET_MS * 1000);
	EXPECT_EQ(__atomic_load_n(&destroyer.done, __ATOMIC_SEQ_CST), 0);
	ibv_ack_cq_events(source.cq, 2);
	CHECK(pthread_join(thread, NULL) == 0);
	EXPECT_EQ(destroyer.result, 0);
	EXPECT_EQ(ibv_destroy_cq(source.send_cq), 0);

	expect_case("an event never fetched vanishes with its queue");
	source_open(&source, channel, 0);
	EXPECT_EQ(ibv_req_notify_cq(source.cq, 0), 0);
	complete_one(&source, false);
	EXPECT(readable(channel->fd, EP_WAIT_MS));
	source_close(&source);
	EXPECT(!readable(channel->fd, 0));
}

static void many_queues(struct ibv_comp_channel *channel)
{
	enum { QUEUES = 20 };
	static struct source source[QUEUES];
	bool seen[QUEUES] = {0};

	expect_case("20 queues on one channel");
	for (int i = 0; i < QUEUES; i++) {
		source_open(&source[i], channel, i % ctx->num_comp_vectors);
		EXPECT_EQ(ibv_req_notify_cq(source[i].cq, 0), 0);
	}
	for (int i = 0; i < QUEUES; i++)
		complete_one(&source[i], false);
	for (int i = 0; i < QUEUES; i++) {
		struct ibv_cq *cq;
		void *context;
		long which;

		if (!EXPECT(readable(channel->fd, EP_WAIT_MS)))
			break;
		CHECK(ibv_get_cq_event(channel, &cq, &context) == 0);
		which = (struct source *)context - source;
		CHECK(which >= 0 && which < QUEUES);
		EXPECT(cq == source[which].cq);
		EXPECT(!seen[which]);
		seen[which] = true;
		ibv_ack_cq_events(cq, 1);
	}
	EXPECT(!readable(channel->fd, EP_QUIET_MS));
	for (int i = 0; i < QUEUES; i++)
		source_close(&source[i]);
}

int main(int argc, char **argv)
{
	struct ibv_comp_channel *channel;
	struct source source;

	ep_main(argc, argv);
	ctx = device_open();
	pd = ibv_alloc_pd(ctx);
	channel = ibv_create_comp_channel(ctx);
	CHECK(pd && channel);
	EXPECT(channel->fd >= 0 && channel->context == ctx);
	EXPECT(fcntl(channel->fd, F_GETFD) & FD_CLOEXEC);
	source_open(&source, channel, 0);
	expect_case("EBUSY while a CQ uses it");
	EXPECT_REFUSED(ibv_destroy_comp_channel(channel), EBUSY);
	arming(&source);
	solicited(&source);
	nonblocking(&source);
	interrupted(&source);
	sleeping_waiter(&source);
	source_close(&source);
	acknowledgement(channel);
	many_queues(channel);
	expect_case("destroy");
	EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(ctx), 0);
	return expect_done();
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Synchronous ids (rdma_create_id(3) without a channel): rdma_disconnect(3) waits for what is still
 * to come and for nothing else, however often it is called, after a rejection, and after the peer
 * has disconnected.
 */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_verbs.h>

#include "cm.h"
#include "support/check.h"

enum { PORT = 7230, HANGS_S = 60, AT_ONCE_MS = 1000, TIMEWAIT_S = 4 };

static struct rdma_event_channel *passive;
static struct rdma_conn_param param = {.retry_count = 7};

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void disconnect_at_once(struct rdma_cm_id *id)
{
	const long began = now_ms();

	EXPECT_EQ(rdma_disconnect(id), 0);
	EXPECT_SAY(now_ms() - began < AT_ONCE_MS, "it took %ld ms", now_ms() - began);
}

struct answer {
	bool accept;
	struct rdma_cm_id *child;
};

/* The call waits for an answer, which a thread gives. */
static void *answer_request(void *argument)
{
	struct answer *answer = argument;
	struct rdma_cm_event *event = cm_event(passive, RDMA_CM_EVENT_CONNECT_REQUEST);

	answer->child = event->id;
	cm_make_qp(event->id);
	if (answer->accept)
		CHECK_ZERO(rdma_accept(event->id, &param));
	else
		CHECK_ZERO(rdma_reject(event->id, NULL, 0));
	CHECK_ZERO(rdma_ack_cm_event(event));
	return NULL;
}

static struct rdma_cm_id *connected(struct answer *answer)
{
	struct rdma_cm_id *id = cm_routed(NULL, RDMA_PS_TCP, OWN_V4, PORT);
	pthread_t thread;

	cm_make_qp(id);
	CHECK_ZERO(pthread_create(&thread, NULL, answer_request, answer));
	if (answer->accept)
		CHECK_ZERO(rdma_connect(id, &param));
	else
		EXPECT_MINUS1(rdma_connect(id, &param), ECONNREFUSED);
	CHECK_ZERO(pthread_join(thread, NULL));
	if (answer->accept)
		CHECK_ZERO(cm_pass(passive, RDMA_CM_EVENT_ESTABLISHED));
	return id;
}

static void end(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	CHECK_ZERO(rdma_destroy_id(id));
}

static void test_twice(void)
{
	struct answer answer = {.accept = true};
	struct rdma_cm_id *id = connected(&answer);

	expect_case("the peer has disconnected, and this side does so three times");
	CHECK_ZERO(rdma_disconnect(answer.child));
	while (id->event && id->event->event != RDMA_CM_EVENT_DISCONNECTED)
		EXPECT_EQ(rdma_disconnect(id), 0);
	CHECK(id->event);
	EXPECT_EQ(id->event->event, RDMA_CM_EVENT_DISCONNECTED);
	CHECK_ZERO(cm_pass(passive, RDMA_CM_EVENT_DISCONNECTED));
	disconnect_at_once(id);
	sleep(TIMEWAIT_S); /* TIMEWAIT_EXIT has come, which a call may take */
	disconnect_at_once(id);
	disconnect_at_once(id);
	end(id);
	end(answer.child);
}

static void test_rejected(void)
{
	struct answer answer = {.accept = false};
	struct rdma_cm_id *id = connected(&answer);

	expect_case("rejected: there is nothing to wait for");
	disconnect_at_once(id);
	disconnect_at_once(id);
	end(id);
	end(answer.child);
}

int main(void)
{
	struct rdma_cm_id *listener;

	cm_network();
	alarm(HANGS_S);
	passive = rdma_create_event_channel();
	listener = cm_id(passive, RDMA_PS_TCP);
	CHECK_ZERO(rdma_bind_addr(listener, cm_address("0.0.0.0", PORT)));
	CHECK_ZERO(rdma_listen(listener, 4));
	test_twice();
	test_rejected();
	while (cm_waits(passive)) { /* TIMEWAIT_EXIT */
		struct rdma_cm_event *event;

		CHECK_ZERO(rdma_get_cm_event(passive, &event));
		CHECK_ZERO(rdma_ack_cm_event(event));
	}
	CHECK_ZERO(rdma_destroy_id(listener));
	rdma_destroy_event_channel(passive);
	return expect_done();
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process that ends without a word: its peer has DISCONNECTED from the end of the process, not from
 * retries that run out; a request that it has not answered is rejected; its port is free.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_verbs.h>

#include "cm.h"
#include "support/check.h"
#include "support/process.h"

enum { PORT = 7200 };

/* Accepts the first request, does not answer the second, and goes when it is told. */
static int serve(int sock, void *unused)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener = cm_id(channel, RDMA_PS_TCP);
	struct rdma_conn_param param = {0};
	struct rdma_cm_event *event;

	(void)unused;
	CHECK_ZERO(rdma_bind_addr(listener, cm_address("0.0.0.0", PORT)));
	CHECK_ZERO(rdma_listen(listener, 4));
	message_say(sock);
	event = cm_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	cm_make_qp(event->id);
	CHECK_ZERO(rdma_accept(event->id, &param));
	CHECK_ZERO(rdma_ack_cm_event(event));
	CHECK_ZERO(cm_pass(channel, RDMA_CM_EVENT_ESTABLISHED));
	message_say(sock);
	CHECK_ZERO(cm_pass(channel, RDMA_CM_EVENT_CONNECT_REQUEST));
	message_say(sock);
	message_hear(sock);
	exit(0);
}

int main(void)
{
	struct rdma_conn_param param = {.retry_count = 7};
	struct rdma_event_channel *channel;
	struct rdma_cm_id *connected, *asking, *next;
	struct process server;

	cm_network();
	process_start(&server, serve, NULL);
	message_hear(server.sock);
	channel = rdma_create_event_channel();
	connected = cm_routed(channel, RDMA_PS_TCP, OWN_V4, PORT);
	cm_make_qp(connected);
	CHECK_ZERO(rdma_connect(connected, &param));
	CHECK_ZERO(cm_pass(channel, RDMA_CM_EVENT_ESTABLISHED));
	message_hear(server.sock);
	asking = cm_routed(channel, RDMA_PS_TCP, OWN_V4, PORT);
	cm_make_qp(asking);
	CHECK_ZERO(rdma_connect(asking, &param));
	message_hear(server.sock);

	for (int i = 0; i < 2; i++) {
		struct rdma_cm_event *event;

		expect_case(i ? "and the other one" : "a process that ends tells its peers");
		if (!i)
			message_say(server.sock);
		CHECK_ZERO(rdma_get_cm_event(channel, &event));
		if (event->id == connected)
			EXPECT_EQ(event->event, RDMA_CM_EVENT_DISCONNECTED);
		else
			EXPECT_EQ(event->event, RDMA_CM_EVENT_REJECTED);
		CHECK_ZERO(rdma_ack_cm_event(event));
	}
	process_expect_success(&server, PROCESS_PATIENCE_MS);

	expect_case("its port is free");
	next = cm_id(channel, RDMA_PS_TCP);
	EXPECT_EQ(rdma_bind_addr(next, cm_address("0.0.0.0", PORT)), 0);
	EXPECT_EQ(rdma_listen(next, 1), 0);
	rdma_destroy_qp(connected);
	rdma_destroy_qp(asking);
	CHECK_ZERO(rdma_destroy_id(connected));
	CHECK_ZERO(rdma_destroy_id(asking));
	CHECK_ZERO(rdma_destroy_id(next));
	rdma_destroy_event_channel(channel);
	return expect_done();
}

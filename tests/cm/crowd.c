/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What programs do to the library at bad moments: they fork before and after listening, read one
 * channel with sixteen threads while ids of it are destroyed, and close the channel's descriptor.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "cm.h"
#include "support/check.h"
#include "support/process.h"

enum { PORT = 7330, THREADS = 16, IDS = 400 };

struct inherited {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
};

/* A child has no part in its parent's objects, and makes its own. */
static int child(int sock, void *argument)
{
	struct inherited *in = argument;
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	(void)sock;
	CHECK_EQ(rdma_listen(in->id, 1), -1);
	CHECK_EQ(errno, ENODEV);
	CHECK_EQ(rdma_get_cm_event(in->channel, &event), -1);
	CHECK_EQ(errno, ENODEV);
	CHECK_EQ(rdma_create_id(in->channel, &id, NULL, RDMA_PS_TCP), -1);
	id = cm_id(channel, RDMA_PS_TCP);
	CHECK_ZERO(rdma_bind_addr(id, cm_address("0.0.0.0", PORT + 1)));
	CHECK_ZERO(rdma_listen(id, 1));
	CHECK_ZERO(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
	_exit(0); /* what the library let go of at the fork is no leak of this process */
}

static void fork_child(struct inherited *in)
{
	struct process process;

	process_start(&process, child, in);
	process_expect_success(&process, PROCESS_PATIENCE_MS);
}

static void test_fork(struct rdma_event_channel *channel)
{
	struct inherited in = {.channel = channel, .id = cm_id(channel, RDMA_PS_TCP)};
	struct rdma_conn_param param = {.retry_count = 7, .qp_num = 77};
	struct rdma_cm_id *active, *passive;
	struct rdma_cm_event *event;

	expect_case("children refuse inherited ids; the parent's go on");
	fork_child(&in);
	CHECK_ZERO(rdma_bind_addr(in.id, cm_address("0.0.0.0", PORT)));
	EXPECT_EQ(rdma_listen(in.id, 4), 0);
	fork_child(&in);
	active = cm_routed(channel, RDMA_PS_TCP, OWN_V4, PORT);
	CHECK_ZERO(rdma_connect(active, &param));
	event = cm_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	passive = event->id;
	CHECK_ZERO(rdma_ack_cm_event(event));
	CHECK_ZERO(rdma_destroy_id(passive));
	CHECK_ZERO(rdma_destroy_id(active));
	EXPECT_EQ(rdma_destroy_id(in.id), 0);
}

static _Atomic int read_events;
static _Atomic bool over;

static void *read_channel(void *channel)
{
	struct rdma_cm_event *event;

	while (!over && !rdma_get_cm_event(channel, &event)) {
		atomic_fetch_add(&read_events, 1);
		CHECK_ZERO(rdma_ack_cm_event(event));
	}
	return NULL;
}

/* Some events are read, the others go with their ids; nobody meets an id that is gone. */
static void test_threads(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *last;
	pthread_t threads[THREADS];

	expect_case("sixteen threads read a channel whose ids are destroyed");
	for (int i = 0; i < THREADS; i++)
		CHECK_ZERO(pthread_create(&threads[i], NULL, read_channel, channel));
	for (int i = 0; i < IDS; i++) {
		struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);

		for (int k = 0; k < 4; k++)
			CHECK_ZERO(rdma_write_cm_event(id, RDMA_CM_EVENT_USER, 0, 0));
		CHECK_ZERO(rdma_destroy_id(id));
	}
	EXPECT(read_events <= 4 * IDS);
	over = true;
	last = cm_id(channel, RDMA_PS_TCP);
	for (int i = 0; i < THREADS; i++)
		CHECK_ZERO(rdma_write_cm_event(last, RDMA_CM_EVENT_USER, 0, 0));
	for (int i = 0; i < THREADS; i++)
		CHECK_ZERO(pthread_join(threads[i], NULL));
	CHECK_ZERO(rdma_destroy_id(last));
	rdma_destroy_event_channel(channel);
}

static void test_closed(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);
	char byte = 'x';
	int ends[2];

	expect_case("a program that closes the channel's descriptor keeps what it opens there");
	CHECK_ZERO(close(channel->fd));
	CHECK_ZERO(pipe(ends));
	CHECK_EQ(dup2(ends[0], channel->fd), channel->fd);
	CHECK_ZERO(rdma_write_cm_event(id, RDMA_CM_EVENT_USER, 0, 0));
	EXPECT_EQ(rdma_destroy_id(id), 0);
	CHECK_EQ(write(ends[1], &byte, 1), 1);
	ends[0] = channel->fd;
	rdma_destroy_event_channel(channel);
	EXPECT_EQ(read(ends[0], &byte, 1), 1);
}

int main(void)
{
	struct rdma_event_channel *channel;

	cm_network();
	channel = rdma_create_event_channel();
	CHECK(channel);
	test_fork(channel);
	test_threads();
	test_closed();
	rdma_destroy_event_channel(channel);
	return expect_done();
}

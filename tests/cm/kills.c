/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * SIGKILL at random moments, 60 times or as often as the argument says: of the process that listens,
 * of one that connects to it, of one that has nothing to do with either. In each round nobody is left
 * hanging: a client that lives is told how its connection ended, and the port serves a new listener.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_verbs.h>

#include "cm.h"
#include "support/check.h"
#include "support/process.h"

enum { PORT = 7320, ROUNDS = 60, VICTIMS = 3, MOST_US = 20000 };

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	CHECK_ZERO(rdma_create_qp(id, NULL, &attr));
}

static struct rdma_cm_id *listen_here(struct rdma_event_channel *channel, uint16_t port)
{
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);

	CHECK_SAY(!rdma_bind_addr(id, cm_address("0.0.0.0", port)), "port %u is not free: %s", port,
		  strerror(errno));
	CHECK_ZERO(rdma_listen(id, 16));
	return id;
}

static void say_ready(int sock)
{
	CHECK_EQ(write(sock, "x", 1), 1);
}

/* Accepts whatever comes. A client may be gone before it is answered. */
static int serve(int sock, void *unused)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param param = {0};
	struct rdma_cm_event *event;

	(void)unused;
	(void)listen_here(channel, PORT);
	say_ready(sock);
	while (!rdma_get_cm_event(channel, &event)) {
		struct rdma_cm_id *id = event->id;
		const enum rdma_cm_event_type type = event->event;

		if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
			make_qp(id);
			(void)rdma_accept(id, &param);
		}
		CHECK_ZERO(rdma_ack_cm_event(event));
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST || type == RDMA_CM_EVENT_ESTABLISHED)
			continue;
		rdma_destroy_qp(id);
		CHECK_ZERO(rdma_destroy_id(id));
	}
	return 1;
}

static void connect_once(struct rdma_event_channel *channel)
{
	struct rdma_conn_param param = {.retry_count = 7};
	struct rdma_cm_id *id = cm_routed(channel, RDMA_PS_TCP, OWN_V4, PORT);
	struct rdma_cm_event *event;

	make_qp(id);
	CHECK_ZERO(rdma_connect(id, &param));
	CHECK_ZERO(rdma_get_cm_event(channel, &event)); /* whatever it is */
	CHECK_ZERO(rdma_ack_cm_event(event));
	(void)rdma_disconnect(id);
	rdma_destroy_qp(id);
	CHECK_ZERO(rdma_destroy_id(id));
}

/* Goes on until it is killed, or told to end. */
static int call(int sock, void *unused)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	char byte;

	(void)unused;
	say_ready(sock);
	while (!message_try_receive(sock, &byte, 1, 0))
		connect_once(channel);
	_exit(0); /* what the library let go of at the fork is no leak of this process */
}

static int stand_by(int sock, void *unused)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	(void)unused;
	(void)listen_here(channel, PORT + 1);
	say_ready(sock);
	pause();
	return 1;
}

static void start(struct process *process, process_main run)
{
	char byte;

	process_start(process, run, NULL);
	message_receive(process->sock, &byte, 1);
}

static void round_of(int victim)
{
	static const process_main run[VICTIMS] = {serve, call, stand_by};
	struct process all[VICTIMS];

	for (int i = 0; i < VICTIMS; i++)
		start(&all[i], run[i]);
	usleep((useconds_t)(random() % MOST_US));
	process_kill(&all[victim]);
	if (victim) { /* the others go on: a new client is served */
		struct rdma_event_channel *channel = rdma_create_event_channel();

		connect_once(channel);
		rdma_destroy_event_channel(channel);
	}
	if (victim != 1) { /* nor does a client hang */
		message_send(all[1].sock, "x", 1);
		process_expect_success(&all[1], PROCESS_PATIENCE_MS);
	}
	for (int i = 0; i < VICTIMS; i++)
		process_kill(&all[i]);
}

int main(int argc, char **argv)
{
	const int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
	struct rdma_event_channel *channel;

	srandom((unsigned int)getpid());
	cm_network();
	CHECK_ZERO(setenv("VERBATIM_CM_TIMES", "10", 1)); /* a dead peer is known in a second */
	expect_case("%d processes killed, nobody hangs, and ports are free again", rounds);
	for (int i = 0; i < rounds; i++)
		round_of(i % VICTIMS);
	channel = rdma_create_event_channel();
	for (uint16_t i = 0; i < 2; i++) {
		uint16_t port = (uint16_t)(PORT + i);
		struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);

		EXPECT_EQ(rdma_bind_addr(id, cm_address("0.0.0.0", port)), 0);
		EXPECT_EQ(rdma_listen(id, 1), 0);
		CHECK_ZERO(rdma_destroy_id(id));
	}
	rdma_destroy_event_channel(channel);
	return expect_done();
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: connection requests in the name of addresses that nobody has, as many as the network
 * carries, to a server that accepts each of them with a queue pair and queues of its own: the
 * server does not run out of descriptors, a client that it has not heard of before is let in
 * meanwhile, and when the flood is over the server gets back everything that it spent.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../cm/cm.h"
#include "forged_req.h"
#include "procs/leftovers.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/intruder.h"
#include "support/network.h"
#include "support/process.h"

enum { PORT = 7213, BACKLOG = 128, DESCRIPTORS = 1024, BURST = 20000, CLIENTS = 5 };
/* Less than half of the time that Linux waits for an RTU. */
enum { REGAIN_MS = 25000, SENDERS_KEPT = 64 };

#define FAR_V4    "192.0.2.2"
#define SPOOFED   0xc6120000u /* 198.18.0.0/15, of the block for tests of benchmarks */
#define SPOOFABLE 0x0001ffffu

/* What the processes tell the test. */
struct report {
	atomic_uint children,
		children_most; /* connections that the server has now, and had at most */
	atomic_uint refused;   /* it found no room for */
	atomic_uint descriptors;
	atomic_uint forged;
	atomic_bool end;
};
static struct report *report;

static void child_end(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	CHECK_ZERO(rdma_destroy_id(id));
}

/* Whether the child lives on. */
static bool child_begin(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct rdma_conn_param param = {0};

	if (rdma_create_qp(id, NULL, &attr)) {
		atomic_fetch_add(&report->refused, 1);
		return false;
	}
	return !rdma_accept(id, &param);
}

static void serve(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *ended = NULL;

	CHECK_ZERO(rdma_get_cm_event(channel, &event));
	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		atomic_fetch_add(&report->children, 1);
		if (!child_begin(event->id))
			ended = event->id;
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DISCONNECTED:
		ended = event->id;
		break;
	default:
		break;
	}
	CHECK_ZERO(rdma_ack_cm_event(event));
	if (ended) {
		child_end(ended);
		atomic_fetch_sub(&report->children, 1);
	}
	if (atomic_load(&report->children) > atomic_load(&report->children_most))
		atomic_store(&report->children_most, atomic_load(&report->children));
}

static int server(int sock, void *unused)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct pollfd fd;

	(void)unused;
	descriptors_limit(DESCRIPTORS);
	channel = rdma_create_event_channel();
	CHECK(channel);
	listener = cm_id(channel, RDMA_PS_TCP);
	CHECK_ZERO(rdma_bind_addr(listener, cm_address("0.0.0.0", PORT)));
	CHECK_ZERO(rdma_listen(listener, BACKLOG));
	fd = (struct pollfd){.fd = channel->fd, .events = POLLIN};
	message_meet(sock);
	while (!atomic_load(&report->end)) {
		if (poll(&fd, 1, 20) > 0)
			serve(channel);
		else
			atomic_store(&report->descriptors, (unsigned int)descriptors_open());
	}
	CHECK_ZERO(rdma_destroy_id(listener));
	rdma_destroy_event_channel(channel);
	return 0;
}

/* Holds the other host's namespace, and sends from there until it is killed. */
static int flooder(int sock, void *unused)
{
	struct sockaddr_in to = {.sin_family = AF_INET};
	struct forged_req req = {.port = PORT};
	uint8_t packet[FORGED_REQ_MOST];
	int fd;

	(void)unused;
	CHECK_ZERO(unshare(CLONE_NEWNET));
	message_meet(sock);
	message_meet(sock);
	CHECK(ip("addr add " FAR_V4 "/24 dev v1") && ip("link set lo up") && ip("link set v1 up"));
	fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
	CHECK(fd >= 0 && inet_pton(AF_INET, OWN_V4, &to.sin_addr));
	req.destination = ntohl(to.sin_addr.s_addr);
	message_meet(sock);
	message_meet(sock);
	for (uint32_t n = 1;; n++) {
		req.number = n * 2654435761u;
		req.source = SPOOFED + (n * 40503u & SPOOFABLE);
		(void)sendto(fd, packet, forged_req_write(&req, packet), 0, (struct sockaddr *)&to,
			     sizeof(to));
		atomic_fetch_add(&report->forged, 1);
		/* As fast as it can at first, then so that a busy machine goes on, too. */
		if (n > BURST && n % 4 == 0)
			sleep_ms(1);
	}
	return 0;
}

static void connect_once(struct rdma_event_channel *channel)
{
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
	struct rdma_cm_id *id = cm_routed(channel, RDMA_PS_TCP, OWN_V4, PORT);

	cm_make_qp(id);
	CHECK_ZERO(rdma_connect(id, &param));
	CHECK_ZERO(cm_pass(channel, RDMA_CM_EVENT_ESTABLISHED));
	CHECK_ZERO(rdma_disconnect(id));
	CHECK_ZERO(cm_pass(channel, RDMA_CM_EVENT_DISCONNECTED));
	rdma_destroy_qp(id);
	CHECK_ZERO(rdma_destroy_id(id));
}

/* Connects when it is told to. */
static int client(int sock, void *argument)
{
	struct rdma_event_channel *channel;
	char path[64];
	bool more;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)*(pid_t *)argument);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && !setns(fd, CLONE_NEWNET));
	close(fd);
	CHECK_ZERO(setenv("VERBATIM_DEVICES", "vb_v1", 1));
	promise("client");
	channel = rdma_create_event_channel();
	CHECK(channel);
	for (;;) {
		message_receive(sock, &more, sizeof(more));
		if (!more)
			break;
		connect_once(channel);
		message_meet(sock);
	}
	rdma_destroy_event_channel(channel);
	return 0;
}

static void let_in(struct process *honest)
{
	const bool more = true;

	message_send(honest->sock, &more, sizeof(more));
	message_meet(honest->sock);
}

static bool waits(atomic_uint *what, unsigned int most, unsigned int ms)
{
	uint64_t until = now_ms() + ms;

	while (atomic_load(what) > most && now_ms() < until) {
		processes_check();
		sleep_ms(10);
	}
	return atomic_load(what) <= most;
}

int main(void)
{
	struct process host, flood, honest;
	unsigned int before;

	watchdog(170);
	cm_network();
	report = memory_shared(sizeof(*report));
	process_start(&flood, flooder, NULL);
	message_meet(flood.sock);
	CHECK(ip("link set v1 netns %d", (int)flood.pid));
	message_meet(flood.sock);
	message_meet(flood.sock);
	/* There is a way to the spoofed addresses, and nobody there. */
	CHECK(ip("route add default via " FAR_V4));
	atomic_store(&report->descriptors, DESCRIPTORS);
	process_start(&host, server, NULL);
	message_meet(host.sock);
	CHECK(waits(&report->descriptors, DESCRIPTORS - 1, PROCESS_PATIENCE_MS));
	before = atomic_load(&report->descriptors);
	process_start(&honest, client, &flood.pid);
	message_meet(flood.sock);
	while (atomic_load(&report->forged) < BURST) {
		processes_check();
		sleep_ms(1);
	}
	promise("an honest client is let in meanwhile");
	for (int i = 0; i < CLIENTS; i++)
		let_in(&honest);
	process_kill(&flood);
	fprintf(stderr, "%u forged, %u children at most, %u refused\n",
		atomic_load(&report->forged), atomic_load(&report->children_most),
		atomic_load(&report->refused));
	promise("the server has room all the time");
	CHECK_EQ(atomic_load(&report->refused), 0);
	promise("the server gets back what it spent");
	CHECK_SAY(waits(&report->children, 0, REGAIN_MS), "%u connections are left",
		  atomic_load(&report->children));
	/* Sockets to other hosts stay open, up to a bound (remote/senders.c). */
	CHECK_SAY(waits(&report->descriptors, before + SENDERS_KEPT, PROCESS_PATIENCE_MS),
		  "%u descriptors, %u before", atomic_load(&report->descriptors), before);
	promise("and afterwards");
	let_in(&honest);
	message_send(honest.sock, &(bool){false}, sizeof(bool));
	process_expect_success(&honest, PROCESS_PATIENCE_MS);
	atomic_store(&report->end, true);
	process_expect_success(&host, PROCESS_PATIENCE_MS);
	return 0;
}

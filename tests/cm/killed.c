/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process with an idle connection is killed (SIGKILL), at either end: the other end is told that
 * the connection is over, on the same host and from another host, where a process of the dead one's
 * host tells it. A request whose initiator was killed is refused when it is accepted, and does not
 * wait for answers for a minute.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/rdma_verbs.h>

#include "cm.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/network.h"
#include "support/process.h"

enum { PORT = 7210, LIMIT_MS = 20000, MANY = 150, GREETING_MS = 200 };

#define FAR_V4    "192.0.2.2"
#define CONNECTED 3 /* of the column St of /proc/net/unix */

struct plan {
	const char *what;
	bool far; /* the active side is another host */
	bool kill_active;
	bool late;       /* the passive side accepts after the kill */
	int connections; /* between the two */
};

struct report {
	int events; /* that the connections are over */
	int others;
};

/* What comes when the other end is killed, until all connections are known to be over. */
static void report_end(int sock, struct rdma_event_channel *channel, const struct plan *plan,
		       enum rdma_cm_event_type wanted)
{
	struct report report = {0};

	while (report.events < plan->connections) {
		struct rdma_cm_event *event;

		CHECK_ZERO(rdma_get_cm_event(channel, &event));
		if (event->event == wanted)
			report.events++;
		else
			report.others++;
		CHECK_ZERO(rdma_ack_cm_event(event));
	}
	message_send(sock, &report, sizeof(report));
}

static void accept_one(struct rdma_event_channel *channel, int sock, bool late)
{
	struct rdma_conn_param param = {0};
	struct rdma_cm_event *event = cm_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);

	cm_make_qp(event->id);
	if (late) {
		message_say(sock);
		message_hear(sock);
	}
	CHECK_ZERO(rdma_accept(event->id, &param));
	CHECK_ZERO(rdma_ack_cm_event(event));
	if (!late)
		CHECK_ZERO(cm_pass(channel, RDMA_CM_EVENT_ESTABLISHED));
}

static int passive(int sock, void *argument)
{
	const struct plan *plan = argument;
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener = cm_id(channel, RDMA_PS_TCP);

	CHECK_ZERO(rdma_bind_addr(listener, cm_address("0.0.0.0", PORT)));
	CHECK_ZERO(rdma_listen(listener, 0));
	message_say(sock);
	for (int i = 0; i < plan->connections; i++)
		accept_one(channel, sock, plan->late);
	if (!plan->late)
		message_say(sock);
	report_end(sock, channel, plan,
		   plan->late ? RDMA_CM_EVENT_REJECTED : RDMA_CM_EVENT_DISCONNECTED);
	pause();
	return 0;
}

/* The process that holds the namespace of the other host; 0: none does yet. */
static pid_t far_host;

/* Another host, which gets v1 from the test; or the one that is there. */
static void move_out(int sock)
{
	char path[64];
	int fd;

	CHECK_ZERO(setenv("VERBATIM_DEVICES", "vb_v1", 1));
	if (far_host) {
		snprintf(path, sizeof(path), "/proc/%d/ns/net", far_host);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		CHECK_ZERO(setns(fd, CLONE_NEWNET));
		close(fd);
		return;
	}
	CHECK_ZERO(unshare(CLONE_NEWNET));
	message_say(sock);
	message_hear(sock);
	CHECK(ip("addr add %s/24 dev v1", FAR_V4));
	CHECK(ip("link set lo up") && ip("link set v1 up"));
}

static int active(int sock, void *argument)
{
	const struct plan *plan = argument;
	struct rdma_conn_param param = {.retry_count = 7};
	struct rdma_event_channel *channel;

	if (plan->far)
		move_out(sock);
	channel = rdma_create_event_channel();
	CHECK(channel);
	for (int i = 0; i < plan->connections; i++) {
		struct rdma_cm_id *id = cm_routed(channel, RDMA_PS_TCP, OWN_V4, PORT);

		cm_make_qp(id);
		CHECK_ZERO(rdma_connect(id, &param));
		if (!plan->late)
			CHECK_ZERO(cm_pass(channel, RDMA_CM_EVENT_ESTABLISHED));
	}
	if (!plan->late)
		message_say(sock);
	report_end(sock, channel, plan, RDMA_CM_EVENT_DISCONNECTED);
	pause();
	return 0;
}

/* A process of this user that takes part in connections, and has nothing to do with these. */
static int bystander(int sock, void *argument)
{
	const struct plan *plan = argument;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;

	if (plan->far && plan->kill_active)
		move_out(sock);
	channel = rdma_create_event_channel();
	id = cm_id(channel, RDMA_PS_TCP);
	CHECK_ZERO(rdma_bind_addr(id, cm_address("0.0.0.0", PORT + 1)));
	CHECK_ZERO(rdma_listen(id, 1));
	message_say(sock);
	pause();
	return 0;
}

/* `out`: on the other host. */
static void start(struct process *process, process_main run, const struct plan *plan, bool out)
{
	process_start(process, run, (void *)(uintptr_t)plan);
	if (!out || far_host)
		return;
	message_hear(process->sock);
	CHECK(ip("link set v1 netns %d", process->pid));
	far_host = process->pid;
	message_say(process->sock);
}

/* Whether a process of the victim's host has called another one there. */
static bool any_met(const struct process *victim)
{
	char path[64], line[512];
	bool met = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/net/unix", (int)victim->pid);
	f = fopen(path, "re");
	CHECK(f != NULL);
	while (!met && fgets(line, sizeof(line), f)) {
		unsigned int type, state;

		met = sscanf(line, "%*s %*x %*x %*x %x %x", &type, &state) == 2 &&
		      type == SOCK_SEQPACKET && state == CONNECTED && strstr(line, "@verbatim/k/");
	}
	fclose(f);
	return met;
}

/*
 * Nobody notices the end of a process that no other one of its host has met. Where both ends are on
 * one host they have; else the bystander has to meet the victim, which nothing else tells.
 */
static void wait_watched(const struct process *victim)
{
	const uint64_t until = now_ms() + LIMIT_MS;

	while (!any_met(victim)) {
		CHECK_SAY(now_ms() < until, "no process of the host has met the victim");
		sleep_ms(10);
	}
	sleep_ms(GREETING_MS); /* and they have exchanged their greetings */
}

static void run(const struct plan *plan)
{
	struct process server, caller, other;
	struct process *victim = plan->kill_active ? &caller : &server;
	struct process *survivor = plan->kill_active ? &server : &caller;
	struct report report;

	expect_case("%s", plan->what);
	process_start(&server, passive, (void *)(uintptr_t)plan);
	message_hear(server.sock);
	start(&other, bystander, plan, plan->far && plan->kill_active);
	message_hear(other.sock);
	start(&caller, active, plan, plan->far);
	message_hear(server.sock);
	if (!plan->late)
		message_hear(caller.sock);
	wait_watched(victim);
	process_kill(victim);
	if (plan->late)
		message_say(server.sock);
	if (EXPECT_SAY(message_try_receive(survivor->sock, &report, sizeof(report), LIMIT_MS),
		       "%d connections: the survivor was not told in time", plan->connections))
		EXPECT_SAY(!report.others, "%d events of another kind", report.others);
	process_kill(survivor);
	process_kill(&other);
	if (plan->far) /* the namespace has gone, and v0 with v1 */
		network_with_pair();
	far_host = 0;
}

int main(void)
{
	static const struct plan plans[] = {
		{"one host: the passive side is killed", .connections = 1},
		{"one host: the active side is killed", .kill_active = true, .connections = 1},
		{"one host: many connections", .connections = MANY},
		{"two hosts: the passive side is killed", .far = true, .connections = 1},
		{"two hosts: many connections", .far = true, .connections = MANY},
		{"two hosts: the active side is killed", .far = true, .kill_active = true,
		 .connections = 1},
		{"two hosts: the active side is killed while it waits", .far = true,
		 .kill_active = true, .late = true, .connections = 1},
	};

	cm_network();
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
		run(&plans[i]);
	return expect_done();
}

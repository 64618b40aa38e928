/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * SIGKILL at random moments, 60 times or as often as the argument says: of the process that listens,
 * of one that connects to it, of one that has nothing to do with either. In each round nobody is left
 * hanging: a client that lives is told how its connection ended, and the port serves a new listener.
 * Nobody keeps anything of the others either: those that live end with the ids and descriptors that
 * they had before they met, and no name is left in the network namespace.
 */
#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_verbs.h>

#include "cm.h"
#include "support/check.h"
#include "support/process.h"

enum {
	PORT = 7320,
	NOBODYS_PORT = 7329,
	ROUNDS = 60,
	VICTIMS = 3,
	MOST_US = 20000,
	LETS_GO_MS = 20000
};
enum { SERVER, CLIENT, BYSTANDER };

/* Ids of connections that the server has; written by it alone, and cleared at its start. */
static _Atomic int *server_ids;

static struct rdma_cm_id *listen_here(struct rdma_event_channel *channel, uint16_t port)
{
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);

	CHECK_SAY(!rdma_bind_addr(id, cm_address("0.0.0.0", port)), "port %u is not free: %s", port,
		  strerror(errno));
	CHECK_ZERO(rdma_listen(id, 16));
	return id;
}

static void connect_once(struct rdma_event_channel *channel, uint16_t port)
{
	struct rdma_conn_param param = {.retry_count = 7};
	struct rdma_cm_id *id = cm_routed(channel, RDMA_PS_TCP, OWN_V4, port);
	struct rdma_cm_event *event;

	cm_make_qp(id);
	CHECK_ZERO(rdma_connect(id, &param));
	CHECK_ZERO(rdma_get_cm_event(channel, &event)); /* whatever it is */
	CHECK_ZERO(rdma_ack_cm_event(event));
	(void)rdma_disconnect(id);
	rdma_destroy_qp(id);
	CHECK_ZERO(rdma_destroy_id(id));
}

/* It has made a queue pair and sent a message: what a process opens for itself is open. */
static void say_ready(int sock, struct rdma_event_channel *channel)
{
	connect_once(channel, NOBODYS_PORT);
	message_say(sock);
}

/* Accepts whatever comes. A client may be gone before it is answered. */
static int serve(int sock, void *unused)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param param = {0};
	struct rdma_cm_event *event;

	(void)unused;
	(void)listen_here(channel, PORT);
	say_ready(sock, channel);
	while (!rdma_get_cm_event(channel, &event)) {
		struct rdma_cm_id *id = event->id;
		const enum rdma_cm_event_type type = event->event;
		bool gone = false;

		if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
			atomic_fetch_add(server_ids, 1);
			cm_make_qp(id);
			gone = rdma_accept(id, &param);
		}
		CHECK_ZERO(rdma_ack_cm_event(event));
		/* Who is gone before it is answered sends nothing more. */
		if (!gone &&
		    (type == RDMA_CM_EVENT_CONNECT_REQUEST || type == RDMA_CM_EVENT_ESTABLISHED))
			continue;
		rdma_destroy_qp(id);
		CHECK_ZERO(rdma_destroy_id(id));
		atomic_fetch_sub(server_ids, 1);
	}
	return 1;
}

/* Goes on until it is killed, or told to stop; ends when it is told so again. */
static int call(int sock, void *unused)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	char byte;

	(void)unused;
	say_ready(sock, channel);
	while (!message_try_receive(sock, &byte, 1, 0))
		connect_once(channel, PORT);
	message_say(sock);
	message_hear(sock);
	_exit(0); /* what the library let go of at the fork is no leak of this process */
}

/* A new client, which is served. */
static int call_once(int sock, void *unused)
{
	(void)sock;
	(void)unused;
	connect_once(rdma_create_event_channel(), PORT);
	_exit(0);
}

static int stand_by(int sock, void *unused)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	(void)unused;
	(void)listen_here(channel, PORT + 1);
	say_ready(sock, channel);
	pause();
	return 1;
}

static int descriptors_of(const struct process *process)
{
	char path[64];
	int count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)process->pid);
	dir = opendir(path);
	CHECK(dir != NULL);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* Returns how many descriptors it has before it meets anybody. */
static int start(struct process *process, process_main run)
{
	process_start(process, run, NULL);
	message_hear(process->sock);
	return descriptors_of(process);
}

/* It lets go of those that it met and that have ended, in a bounded time. */
static void expect_descriptors(const struct process *process, int want, const char *who, int victim)
{
	int got = descriptors_of(process);

	for (int ms = 0; got > want && ms < LETS_GO_MS; ms += 10) {
		usleep(10000);
		got = descriptors_of(process);
	}
	EXPECT_SAY(got <= want,
		   "victim %d: the %s has %d descriptors more than before it met the others",
		   victim, who, got - want);
}

static void expect_no_ids(int victim)
{
	for (int ms = 0; atomic_load(server_ids) && ms < LETS_GO_MS; ms += 10)
		usleep(10000);
	EXPECT_SAY(!atomic_load(server_ids),
		   "victim %d: the server has %d ids of clients that have ended", victim,
		   atomic_load(server_ids));
}

/* Names of the library in this network namespace, where only this test is. */
static void expect_no_names(void)
{
	FILE *f = fopen("/proc/self/net/unix", "re");
	char line[512];

	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f))
		EXPECT_SAY(!strstr(line, "@verbatim/"), "left: %s", line);
	fclose(f);
}

static void new_client(void)
{
	struct process client;

	process_start(&client, call_once, NULL);
	process_expect_success(&client, PROCESS_PATIENCE_MS);
}

/* The client does not hang: it is told to stop, and says so. It stays, and goes when it is told so again. */
static void stop_calling(const struct process *client)
{
	message_say(client->sock);
	message_hear(client->sock);
}

/* All the others end; this one has nothing of them. */
static void expect_nothing_kept(struct process all[VICTIMS], const int before[VICTIMS], int kept,
				int victim)
{
	static const char *const names[VICTIMS] = {"server", "client", "bystander"};

	if (kept != CLIENT && all[CLIENT].pid) {
		message_say(all[CLIENT].sock);
		process_expect_success(&all[CLIENT], PROCESS_PATIENCE_MS);
	}
	for (int i = 0; i < VICTIMS; i++) {
		if (i != kept)
			process_kill(&all[i]);
	}
	if (kept == SERVER)
		expect_no_ids(victim);
	expect_descriptors(&all[kept], before[kept], names[kept], victim);
}

static void round_of(int victim, int kept)
{
	static const process_main run[VICTIMS] = {serve, call, stand_by};
	struct process all[VICTIMS];
	int before[VICTIMS];

	atomic_store(server_ids, 0);
	for (int i = 0; i < VICTIMS; i++)
		before[i] = start(&all[i], run[i]);
	usleep((useconds_t)(random() % MOST_US));
	process_kill(&all[victim]);
	if (victim != SERVER) /* it goes on */
		new_client();
	if (victim != CLIENT)
		stop_calling(&all[CLIENT]);
	expect_nothing_kept(all, before, kept, victim);
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
	server_ids = memory_shared(sizeof(*server_ids));
	expect_case(
		"%d processes killed, nobody hangs or keeps anything of them, and ports are free again",
		rounds);
	for (int i = 0; i < rounds; i++)
		round_of(i % VICTIMS, (i + 1 + i / VICTIMS % 2) % VICTIMS);
	expect_no_names();
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

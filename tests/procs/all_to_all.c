/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: any number of processes may talk with each other at the same time.
 * Six processes, each connected with every other one; every connection carries
 * SENDs both ways, checked in content and order, WRITEs whose words are checked
 * by the SEND behind them, and FETCH_AND_ADDs to a counter per process whose
 * final value every process checks.
 *
 * usage: all_to_all [MESSAGES_PER_CONNECTION]
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PROCESSES = 6, MESSAGE = 192, RECEIVES = 24, WINDOW = 12 };
/* Every side shows its peers the same buffer layout; the counter is side 0's first word. */
enum {
	COUNTER_AT = 0,
	WRITTEN_AT = 1024,
	SEND_AT = 16384,
	RECEIVE_AT = 32768,
	RESULT_AT = 512,
	SIZE = 65536
};
enum { IS_RECEIVE = 1 << 30, IS_SEND = 1 << 29, PEER_MASK = 0xff };

static uint64_t messages;
/* sockets[i][j]: how process i speaks with process j while they connect. */
static int sockets[PROCESSES][PROCESSES];

struct link {
	struct endpoint ep;
	uint64_t sent, done, received;
};

struct member {
	int self;
	struct resources resources;
	struct link links[PROCESSES];
	uint64_t atomics;
};

static void post_one(struct member *member, int peer)
{
	struct link *link = &member->links[peer];
	size_t at = SEND_AT + link->sent % WINDOW * MESSAGE;

	memcpy(link->ep.buffer + at, &link->sent, sizeof(link->sent));
	memcpy(link->ep.buffer + at + MESSAGE - sizeof(link->sent), &link->sent,
	       sizeof(link->sent));
	CHECK_ZERO(ep_write(&link->ep, (uint64_t)peer, at, sizeof(link->sent), WRITTEN_AT, 0));
	CHECK_ZERO(ep_send(&link->ep, IS_SEND | (uint64_t)peer, at, MESSAGE, IBV_SEND_SIGNALED));
	if (link->sent % 8 == 0) {
		CHECK_ZERO(ep_fetch_add(&link->ep, (uint64_t)peer, RESULT_AT, COUNTER_AT, 1, 0));
		member->atomics++;
	}
	link->sent++;
}

static void take_receive(struct link *link, int peer)
{
	size_t at = RECEIVE_AT + link->received % RECEIVES * MESSAGE;
	uint64_t first, last, written;

	memcpy(&first, link->ep.buffer + at, sizeof(first));
	memcpy(&last, link->ep.buffer + at + MESSAGE - sizeof(last), sizeof(last));
	written = __atomic_load_n((uint64_t *)(void *)(link->ep.buffer + WRITTEN_AT),
				  __ATOMIC_ACQUIRE);
	CHECK_SAY(first == link->received && last == link->received,
		  "from %d: message %llu reads %llu...%llu", peer,
		  (unsigned long long)link->received, (unsigned long long)first,
		  (unsigned long long)last);
	/* The WRITE in front of this SEND is there; later ones may be as well. */
	CHECK_SAY(written >= link->received, "from %d: WRITE %llu missing, found %llu", peer,
		  (unsigned long long)link->received, (unsigned long long)written);
	CHECK_ZERO(ep_recv(&link->ep, IS_RECEIVE | (uint64_t)peer, at, MESSAGE));
	link->received++;
}

static bool finished(const struct member *member)
{
	int i;

	for (i = 0; i < PROCESSES; i++)
		if (i != member->self &&
		    (member->links[i].done < messages || member->links[i].received < messages))
			return false;
	return true;
}

static void talk(struct member *member)
{
	struct ibv_wc wc = {0};
	int i;

	while (!finished(member)) {
		for (i = 0; i < PROCESSES; i++)
			if (i != member->self && member->links[i].sent < messages &&
			    member->links[i].sent - member->links[i].done < WINDOW)
				post_one(member, i);
		if (!completion_try(member->resources.cq, &wc, COMPLETION_WAIT_MS))
			check_failed(__FILE__, __LINE__, "process %d stands still", member->self);
		if (wc.status != IBV_WC_SUCCESS)
			completion_print(&wc);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		i = (int)(wc.wr_id & PEER_MASK);
		if (wc.wr_id & IS_RECEIVE)
			take_receive(&member->links[i], i);
		else
			member->links[i].done++;
	}
}

/*
 * All connections in ascending order of pairs, the same in every process, so that no processes wait
 * in a circle.
 */
static void connect_all(struct member *member)
{
	struct ep_config config;
	int i, k;

	config = ep_defaults(IBV_QPT_RC);
	config.cap.max_send_wr = 3 * WINDOW + 8;
	for (i = 0; i < PROCESSES; i++) {
		struct link *link = &member->links[i];

		if (i == member->self)
			continue;
		ep_open_on(&link->ep, &member->resources, &config, NULL, SIZE);
		for (k = 0; k < RECEIVES; k++)
			CHECK_ZERO(ep_recv(&link->ep, IS_RECEIVE | (uint64_t)i,
					   RECEIVE_AT + (size_t)k * MESSAGE, MESSAGE));
		ep_exchange(&link->ep, sockets[member->self][i]);
	}
}

static int run(int sock, void *argument)
{
	static struct member member;
	uint64_t counted, expected = (messages + 7) / 8;
	int i;

	member.self = *(int *)argument;
	promise("six processes talk with each other at the same time");
	resources_open(&member.resources, 2048, false);
	connect_all(&member);
	talk(&member);
	/*
	 * Every process has all its completions: once each queue is drained, no atomic is under
	 * way.
	 */
	for (i = 0; i < PROCESSES; i++)
		if (i != member.self) {
			CHECK_ZERO(ep_write(&member.links[i].ep, 1, 0, 0, 0, IBV_SEND_SIGNALED));
			completion_expect(member.resources.cq, 1, IBV_WC_SUCCESS, NULL);
		}
	message_meet(sock);
	for (i = 0; i < PROCESSES; i++)
		if (i != member.self) {
			memcpy(&counted, member.links[i].ep.buffer + COUNTER_AT, sizeof(counted));
			CHECK_EQ(counted, expected);
		}
	message_meet(sock);
	for (i = 0; i < PROCESSES; i++)
		if (i != member.self)
			ep_close(&member.links[i].ep);
	resources_close(&member.resources);
	return 0;
}

/* Every process waits for every other. */
static void meet_all(const struct process *processes)
{
	char met;
	int i;

	for (i = 0; i < PROCESSES; i++)
		while (!message_try_receive(processes[i].sock, &met, 1, 100))
			processes_check();
	for (i = 0; i < PROCESSES; i++)
		message_send(processes[i].sock, "m", 1);
}

int main(int argc, char **argv)
{
	static struct process processes[PROCESSES];
	static int number[PROCESSES];
	int i, k, pair[2];

	messages = argc > 1 ? strtoull(argv[1], NULL, 0) : 3000;
	watchdog(120);
	promise("six processes talk with each other at the same time");
	for (i = 0; i < PROCESSES; i++)
		for (k = i + 1; k < PROCESSES; k++) {
			CHECK_ZERO(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
			sockets[i][k] = pair[0];
			sockets[k][i] = pair[1];
		}
	for (i = 0; i < PROCESSES; i++) {
		number[i] = i;
		process_start(&processes[i], run, &number[i]);
	}
	meet_all(processes);
	meet_all(processes);
	for (i = 0; i < PROCESSES; i++)
		process_expect_success(&processes[i], PROCESS_PATIENCE_MS);
	return 0;
}

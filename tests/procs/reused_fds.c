/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a program that closes the library's descriptors and uses their numbers for files, pipes,
 * sockets, eventfds, epoll sets and /proc/self/mem of its own finds all of these untouched: not a
 * byte is written to or read from them, none is closed. Traffic that is under way goes on, within
 * the host and between hosts; events are refused with EBADF.
 *
 * usage: reused_fds [MESSAGES [TURNS]]: two processes of this host
 *        reused_fds GID_INDEX NETNS: of two hosts (a path like /proc/PID/ns/net; VB_TEST_DEVICE
 *        names the device in both)
 */
#include "procs/intruders.h"
#include "procs/stream.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/network.h"
#include "support/process.h"
#include "support/threads.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Between hosts the default is half a second for all tries, which a busy machine exceeds; this one
 * is 8.6 s.
 */
enum { BYTE = 0x77, QUIET_MS = 600, HOSTS_TIMEOUT = 18 };
/*
 * Addresses of the buffers of the one process and of the other: a write into the wrong process hits
 * nothing else.
 */
#define HERE  ((unsigned char *)0x200000000000)
#define THERE ((unsigned char *)0x280000000000)

struct plan {
	bool sends; /* the other one receives */
	bool closes;
	unsigned int turn;
	const char *netns; /* NULL: the namespace of the starter */
	int gid_index;     /* -1: the default one */
};

static uint64_t messages = 2000;
static struct plan first, second;

static unsigned char *map_at(unsigned char *at, int byte)
{
	void *map = mmap(at, STREAM_SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	CHECK(map == at);
	memset(map, byte, STREAM_SIZE);
	return map;
}

/* Checks that no write to the other process went to this one instead. */
static void check_own_memory(const unsigned char *memory)
{
	for (int i = 0; i < STREAM_SIZE; i++)
		CHECK_SAY(memory[i] == BYTE, "own memory was written at %d", i);
}

/*
 * In the middle of the traffic, while nothing is under way: numbers that are taken while a thread of the
 * library is between its check of a number and its system call are a race that no check sees. The two
 * sides do so one after the other, since each has to do with what the other one has closed.
 */
static void close_in_traffic(struct stream *stream, uint64_t number)
{
	const struct plan *plan = stream->hook_data;

	if (number != stream->messages / 2)
		return;
	for (int sends = 0; sends < 2; sends++) {
		message_meet(STDIN_FILENO);
		if (plan->closes && plan->sends == sends) {
			threads_rest();
			intruders_take(plan->turn);
		}
	}
	message_meet(STDIN_FILENO);
}

static void check_events(struct resources *resources)
{
	struct ibv_async_event event;
	struct ibv_cq *cq;
	void *context;

	errno = 0;
	CHECK_EQ(ibv_get_cq_event(resources->channel, &cq, &context), -1);
	CHECK_EQ(errno, EBADF);
	errno = 0;
	CHECK_EQ(ibv_get_async_event(resources->context, &event), -1);
	CHECK_EQ(errno, EBADF);
}

static void open_all(struct resources *resources, struct endpoint *ep, const struct plan *plan)
{
	struct ep_config config;

	resources_open(resources, 256, true);
	if (plan->gid_index >= 0) {
		resources_use_gid(resources, plan->gid_index);
	}
	config = ep_defaults(IBV_QPT_RC);
	config.retry_cnt = 7;
	if (plan->gid_index >= 0)
		config.timeout = HOSTS_TIMEOUT;
	ep_open_on(ep, resources, &config, map_at(plan->sends ? HERE : THERE, 0), STREAM_SIZE);
	stream_prepare(ep);
}

static int run(int sock, const struct plan *plan)
{
	unsigned char *elsewhere;
	struct resources resources;
	struct endpoint ep;
	struct stream stream = {.ep = &ep, .messages = messages};

	/* The socket to the other process survives as standard input. */
	CHECK_EQ(dup2(sock, STDIN_FILENO), STDIN_FILENO);
	if (plan->netns) {
		int fd = open(plan->netns, O_RDONLY);

		CHECK(fd >= 0);
		CHECK_ZERO(setns(fd, CLONE_NEWNET));
	}
	elsewhere = map_at(plan->sends ? THERE : HERE, BYTE);
	open_all(&resources, &ep, plan);
	ep_exchange(&ep, STDIN_FILENO);
	CHECK_ZERO(ibv_req_notify_cq(resources.cq, 0));
	stream.hook = close_in_traffic;
	stream.hook_data = (void *)(uintptr_t)plan;
	stream.hook_every = stream.messages / 2;
	if (plan->sends)
		stream_send(&stream);
	else
		stream_receive(&stream);
	intruders_check();
	message_meet(STDIN_FILENO);
	/* Work without a call of the program: the looks of the progress thread. */
	sleep_ms(QUIET_MS);
	intruders_check();
	if (plan->closes)
		check_events(&resources);
	message_meet(STDIN_FILENO);
	ep_close(&ep);
	resources_close(&resources);
	intruders_check();
	check_own_memory(elsewhere);
	return 0;
}

static int first_main(int sock, void *unused)
{
	(void)unused;
	return run(sock, &first);
}

static int second_main(int sock, void *unused)
{
	(void)unused;
	return run(sock, &second);
}

static void play(const char *text, bool sender, bool receiver, unsigned int turn)
{
	struct process a, b;

	promise(text);
	first.sends = true;
	first.closes = sender;
	second.closes = receiver;
	first.turn = turn;
	second.turn = turn + 1;
	process_start_pair(&a, first_main, &b, second_main, NULL);
	process_expect_success(&a, 60000);
	process_expect_success(&b, PROCESS_PATIENCE_MS);
	printf("%s, turn %u\n", text, turn);
}

int main(int argc, char **argv)
{
	unsigned int turns = argc > 2 ? (unsigned int)atoi(argv[2]) : INTRUDERS_TURNS;

	watchdog(280);
	first.gid_index = second.gid_index = -1;
	if (argc > 2 && argv[2][0] == '/') {
		first.gid_index = second.gid_index = atoi(argv[1]);
		second.netns = argv[2];
		turns = 2;
	} else {
		network_apart(); /* or callers of other tests would be among the descriptors that are closed */
		if (argc > 1)
			messages = strtoull(argv[1], NULL, 0);
	}
	for (unsigned int turn = 0; turn < turns; turn++) {
		if (turn % 3 == 0)
			play("the sender's numbers are taken in traffic", true, false, turn);
		else if (turn % 3 == 1)
			play("the receiver's numbers are taken in traffic", false, true, turn);
		play("both sides' numbers are taken in traffic", true, true, turn);
	}
	return 0;
}

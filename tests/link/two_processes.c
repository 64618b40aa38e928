/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * SEND, WRITE, READ and an atomic between two processes whose queue pairs take the link of pipe.c.
 * This process passes the packets on, counts them, and loses some. So what arrives has come this
 * way, and the protocol works as over any link.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/pipe.h"
#include "support/check.h"
#include "support/endpoint.h"
#include "support/process.h"

enum {
	BUFFER = 1 << 20,
	HALF = BUFFER / 2,
	LONG = 300001,
	SHORT_AT = HALF - 64,
	LOSE_EVERY = 41,
	PATIENCE_MS = 60000
};

struct relay {
	int end[2]; /* this process's sockets towards each of the two */
	int given[2];
	_Atomic bool stop;
	uint32_t count[VB_OP_COUNT];
	uint32_t passed, lost;
};

static void pattern(unsigned char *to, size_t length, unsigned int seed)
{
	for (size_t i = 0; i < length; i++)
		to[i] = (unsigned char)(i * 31 + seed);
}

static bool is_pattern(const unsigned char *at, size_t length, unsigned int seed)
{
	for (size_t i = 0; i < length; i++) {
		if (at[i] != (unsigned char)(i * 31 + seed))
			return false;
	}
	return true;
}

static void side_over_pipe(struct endpoint *ep, struct resources *resources, int end, int sock)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", end);
	setenv("VB_TEST_PIPE", text, 1);
	resources_open(resources, 16, false);
	ep_open_on(ep, resources, NULL, NULL, BUFFER);
	/* The second message may arrive while the first is looked at. */
	if (ep_recv(ep, 1, SHORT_AT, 64) || ep_recv(ep, 2, 0, LONG))
		CHECK(!"post_receive");
	ep_exchange(ep, sock);
}

static int initiator(int sock, void *argument)
{
	struct relay *relay = argument;
	struct resources resources;
	struct endpoint ep;
	struct ibv_wc wc;
	uint64_t sum;

	side_over_pipe(&ep, &resources, relay->given[0], sock);
	pattern(ep.buffer, LONG, 1);
	ep_send(&ep, 10, 0, 8, IBV_SEND_SIGNALED);
	completion_expect(resources.cq, 10, IBV_WC_SUCCESS, &wc);
	ep_send(&ep, 11, 0, LONG, IBV_SEND_SIGNALED);
	completion_expect(resources.cq, 11, IBV_WC_SUCCESS, &wc);
	pattern(ep.buffer, LONG, 2);
	ep_write(&ep, 12, 0, LONG, HALF, IBV_SEND_SIGNALED);
	completion_expect(resources.cq, 12, IBV_WC_SUCCESS, &wc);
	/* From here on the other process does not poll. */
	ep_read(&ep, 13, HALF, LONG, HALF, IBV_SEND_SIGNALED);
	completion_expect(resources.cq, 13, IBV_WC_SUCCESS, &wc);
	CHECK_SAY(is_pattern(ep.buffer + HALF, LONG, 2), "what was written is read back");
	for (uint64_t i = 0; i < 3; i++) {
		ep_fetch_add(&ep, 14, 0, BUFFER - 8, 5, IBV_SEND_SIGNALED);
		completion_expect(resources.cq, 14, IBV_WC_SUCCESS, &wc);
		memcpy(&sum, ep.buffer, sizeof(sum));
		CHECK_SAY(sum == 5 * i, "the value before");
	}
	CHECK_SAY(write(sock, "d", 1) == 1, "done");
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

static int target(int sock, void *argument)
{
	struct relay *relay = argument;
	struct resources resources;
	struct endpoint ep;
	struct ibv_wc wc;
	char word;

	side_over_pipe(&ep, &resources, relay->given[1], sock);
	completion_expect(resources.cq, 1, IBV_WC_SUCCESS, &wc);
	CHECK_SAY(wc.byte_len == 8 && is_pattern(ep.buffer + SHORT_AT, 8, 1), "8 bytes");
	completion_expect(resources.cq, 2, IBV_WC_SUCCESS, &wc);
	CHECK_SAY(wc.byte_len == LONG && is_pattern(ep.buffer, LONG, 1), "a long message");
	CHECK_SAY(read(sock, &word, 1) == 1, "the other end is done");
	CHECK_SAY(is_pattern(ep.buffer + HALF, LONG, 2), "a WRITE");
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

static void pass_on(struct relay *relay, int from)
{
	struct vb_pipe_packet packet;
	ssize_t n = recv(relay->end[from], &packet, sizeof(packet), MSG_DONTWAIT);

	if (n < (ssize_t)sizeof(packet.run) || packet.run.op >= VB_OP_COUNT)
		return;
	relay->count[packet.run.op]++;
	if (++relay->passed % LOSE_EVERY == 0)
		relay->lost++;
	else
		(void)send(relay->end[!from], &packet, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void *relay_run(void *argument)
{
	struct relay *relay = argument;

	while (!atomic_load(&relay->stop)) {
		struct pollfd fds[2] = {{relay->end[0], POLLIN, 0}, {relay->end[1], POLLIN, 0}};

		(void)poll(fds, 2, 10);
		for (int i = 0; i < 2; i++) {
			if (fds[i].revents & POLLIN)
				pass_on(relay, i);
		}
	}
	return NULL;
}

int main(void)
{
	static struct relay relay;
	struct process a, b;
	pthread_t thread;

	for (int i = 0; i < 2; i++) {
		int pair[2];

		if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
			CHECK(!"socketpair");
		relay.end[i] = pair[0];
		relay.given[i] = pair[1];
	}
	process_start_pair(&a, initiator, &b, target, &relay);
	if (pthread_create(&thread, NULL, relay_run, &relay))
		CHECK(!"pthread_create");
	process_expect_success(&a, PATIENCE_MS);
	process_expect_success(&b, PATIENCE_MS);
	atomic_store(&relay.stop, true);
	pthread_join(thread, NULL);
	CHECK_SAY(relay.count[VB_OP_SEND] && relay.count[VB_OP_WRITE] &&
			  relay.count[VB_OP_READ_REQUEST] && relay.count[VB_OP_READ_RESPONSE] &&
			  relay.count[VB_OP_FETCH_ADD] >= 3 && relay.count[VB_OP_ACK],
		  "all that was sent has come through the pipe");
	CHECK_SAY(relay.lost > 0, "and some of it was lost");
	printf("%u packets passed on, %u lost\n", relay.passed - relay.lost, relay.lost);
	return 0;
}

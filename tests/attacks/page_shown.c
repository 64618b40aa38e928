/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a process of another user that shows the page of a process as its own changes nothing between
 * that process and others. Pages are shown to every caller, so it can have each. Here it shows each
 * victim the pages of all the others, grants leave to speak, sends nonsense, and ends or stays; then
 * all victims send to each other.
 *
 * usage: page_shown [stays]
 *
 * The attacker speaks the protocol of contact by hand, with the library's message formats.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/control.h"
#include "host/names.h"
#include "host/page.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/intruder.h"
#include "support/process.h"

enum { VICTIMS = 4, LENGTH = 64, ANSWER_MS = 20000, TRIES = 200 };

static bool stays;

struct target {
	uint32_t qpn;
	uint64_t nonce;
	int page;
};

static int call(uint32_t qpn)
{
	struct sockaddr_un addr;
	socklen_t len = vb_name_address(&addr, qpn >> VB_QPN_BLOCK_BITS);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	CHECK_ZERO(connect(fd, (struct sockaddr *)&addr, len));
	return fd;
}

static void say(int sock, enum vb_control_type type, uint64_t nonce, const int *fd)
{
	struct vb_control msg = {.magic = VB_CONTROL_MAGIC,
				 .version = VB_CONTROL_VERSION,
				 .type = type,
				 .nonce = nonce};

	vb_control_send(sock, &msg, fd, fd ? 1 : 0);
}

/* The victim's HELLO on this connection. False: the connection was ended, so that others come in. */
static bool hello(int sock, struct target *t)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	int fds[VB_CONTROL_FDS], n = 0;
	struct vb_control msg;

	CHECK_EQ(poll(&p, 1, ANSWER_MS), 1);
	if (vb_control_receive(sock, &msg, NULL, fds, &n) != 1 || msg.type != VB_CONTROL_HELLO)
		return false;
	CHECK_EQ(n, 1);
	if (t) {
		t->nonce = msg.nonce;
		t->page = fds[0];
	} else {
		close(fds[0]);
	}
	return true;
}

/* Calls a victim until it is greeted: other users' processes come in one after the other. */
static int greeted(uint32_t qpn, struct target *t)
{
	for (int i = 0; i < TRIES; i++) {
		int sock = call(qpn);

		if (hello(sock, t))
			return sock;
		close(sock);
		sleep_ms(20);
	}
	CHECK_SAY(false, "the victim greets nobody");
	return -1;
}

/* A victim has read the attacker's question for memory, and has not heard it. */
static void expect_no_answer(int sock)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	int fds[VB_CONTROL_FDS], n = 0;
	struct vb_control msg;

	while (poll(&p, 1, 0) == 1 && vb_control_receive(sock, &msg, NULL, fds, &n) == 1)
		CHECK_SAY(msg.type == VB_CONTROL_HELLO, "it was answered with message %u",
			  msg.type);
	close(sock);
}

/* One connection to a victim, which is shown the page of another. */
static int show(uint32_t to, const struct target *whose)
{
	int sock = greeted(to, NULL);

	say(sock, VB_CONTROL_HELLO, whose->nonce, &whose->page);
	say(sock, VB_CONTROL_GRANT, 0, NULL);
	say(sock, VB_CONTROL_ASK, 1, NULL);
	if (!stays)
		say(sock, (enum vb_control_type)999, 0, NULL);
	return sock;
}

static int attacker(int sock, void *unused)
{
	struct target targets[VICTIMS];
	int socks[VICTIMS * VICTIMS], n = 0;

	(void)unused;
	promise("a process shows pages of others");
	user_become(INTRUDER_STRANGER);
	message_receive(sock, targets, sizeof(targets));
	for (int i = 0; i < VICTIMS; i++)
		close(greeted(targets[i].qpn, &targets[i]));
	for (int i = 0; i < VICTIMS; i++) {
		for (int j = 0; j < VICTIMS; j++) {
			if (i != j)
				socks[n++] = show(targets[i].qpn, &targets[j]);
		}
	}
	message_say(sock);
	message_hear(sock);
	while (stays && n)
		expect_no_answer(socks[--n]);
	return 0;
}

struct victim {
	int number;
};

static int victim(int sock, void *argument)
{
	int me = ((struct victim *)argument)->number;
	struct endpoint ep[VICTIMS];
	struct resources resources;

	promise("all send to each other");
	resources_open(&resources, 64, false);
	for (int i = 0; i < VICTIMS; i++) {
		if (i == me)
			continue;
		ep_open_on(&ep[i], &resources, NULL, NULL, 4096);
		CHECK_ZERO(ep_recv(&ep[i], 1, 2048, LENGTH));
	}
	message_send(sock, &ep[me ? 0 : 1].local.qpn, sizeof(uint32_t));
	message_meet(sock); /* the attack was made */
	for (int i = 0; i < VICTIMS; i++) {
		if (i != me)
			ep_exchange(&ep[i], sock);
	}
	message_meet(sock);
	for (int i = 0; i < VICTIMS; i++) {
		if (i == me)
			continue;
		memset(ep[i].buffer, 'a' + me, LENGTH);
		CHECK_ZERO(ep_send(&ep[i], 2, 0, LENGTH, IBV_SEND_SIGNALED));
	}
	for (int n = 0; n < 2 * (VICTIMS - 1); n++) {
		struct ibv_wc wc;

		completion_next(resources.cq, &wc);
		CHECK_SAY(wc.status == IBV_WC_SUCCESS, "request %llu ended with status %d",
			  (unsigned long long)wc.wr_id, wc.status);
	}
	for (int i = 0; i < VICTIMS; i++) {
		if (i != me)
			CHECK_EQ(ep[i].buffer[2048], 'a' + i);
	}
	message_meet(sock);
	for (int i = 0; i < VICTIMS; i++) {
		if (i != me)
			ep_close(&ep[i]);
	}
	resources_close(&resources);
	return 0;
}

/* The order in which the victims connect is the same on both sides of each pair. */
static void introduce(const struct process *victims)
{
	for (int i = 0; i < VICTIMS; i++) {
		for (int j = 0; j < i; j++) {
			message_relay(victims[i].sock, victims[j].sock, sizeof(struct peer));
			message_meet(victims[i].sock);
			message_meet(victims[j].sock);
		}
	}
}

static void all_meet(const struct process *victims)
{
	for (int i = 0; i < VICTIMS; i++)
		message_meet(victims[i].sock);
}

int main(int argc, char **argv)
{
	static struct victim who[VICTIMS];
	struct target targets[VICTIMS] = {{.qpn = 0}};
	struct process victims[VICTIMS], stranger;

	stays = argc > 1 && !strcmp(argv[1], "stays");
	watchdog(150);
	network_leave();
	process_start(&stranger, attacker, NULL);
	for (int i = 0; i < VICTIMS; i++) {
		who[i].number = i;
		process_start(&victims[i], victim, &who[i]);
		message_receive(victims[i].sock, &targets[i].qpn, sizeof(uint32_t));
	}
	message_send(stranger.sock, targets, sizeof(targets));
	message_hear(stranger.sock);
	if (!stays) {
		message_say(stranger.sock);
		process_expect_success(&stranger, PROCESS_PATIENCE_MS);
	}
	all_meet(victims);
	introduce(victims);
	all_meet(victims);
	all_meet(victims);
	for (int i = 0; i < VICTIMS; i++)
		process_expect_success(&victims[i], PROCESS_PATIENCE_MS);
	if (stays) {
		message_say(stranger.sock);
		process_expect_success(&stranger, PROCESS_PATIENCE_MS);
	}
	return 0;
}

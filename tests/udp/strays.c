/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Usage: udp-strays GID_INDEX NETNS (a path like /proc/PID/ns/net; VB_TEST_DEVICE names the device
 * in both namespaces)
 *
 * Promise: packets for a process that stands still, which another process's socket gets, hold up no
 * call of that other process: its datagrams arrive meanwhile, and its queue pair, queue and context
 * are destroyed at once. Its exit(3) waits for them, but 100 ms at most.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

/* Packets of others are kept for 2 s (ibv_destroy_cq(3) once waited for that). */
enum { SIZE = 4096, MESSAGE = 64, GRH = 40, STRAYS = 20, MARKER = 7, PROMPT_MS = 1000 };

struct plan {
	const char *netns; /* NULL: the namespace of the starter */
	int gid_index;
};

static void open_side(struct resources *resources, struct endpoint *ep, const struct plan *plan)
{
	struct ep_config config;

	resources_open(resources, 256, false);
	resources_use_gid(resources, plan->gid_index);
	config = ep_defaults(IBV_QPT_UD);
	ep_open_on(ep, resources, &config, NULL, SIZE);
}

/*
 * A queue pair in INIT has a number and no socket: no program steers its packets, and only this
 * process knows of it.
 */
static int bystander(int sock, void *argument)
{
	struct resources resources;
	struct endpoint ep;

	open_side(&resources, &ep, argument);
	message_send(sock, &ep.local, sizeof(ep.local));
	message_meet(sock);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

static void prompt(const char *what, uint64_t begin)
{
	uint64_t took = now_ms() - begin;

	CHECK_SAY(took < PROMPT_MS, "%s took %u ms", what, (unsigned int)took);
}

static int victim(int sock, void *argument)
{
	struct resources resources;
	struct endpoint ep;
	struct peer sender;
	struct ibv_wc wc;
	uint64_t begin;

	promise("the neighbour of a process that stands still");
	open_side(&resources, &ep, argument);
	CHECK_ZERO(ep_recv(&ep, MARKER, 0, GRH + MESSAGE));
	message_send(sock, &ep.local, sizeof(ep.local));
	message_receive(sock, &sender, sizeof(sender));
	ep_connect(&ep, &sender);
	message_meet(sock);
	/*
	 * The last of the sender's datagrams. The others, which came before, are for another queue
	 * pair.
	 */
	completion_expect(resources.cq, MARKER, IBV_WC_SUCCESS, &wc);
	begin = now_ms();
	ep_close(&ep);
	prompt("closing the queue pair", begin);
	begin = now_ms();
	resources_close(&resources);
	prompt("closing its queue and context", begin);
	message_meet(sock);
	return 0;
}

static void send_to(struct endpoint *ep, uint32_t qpn, uint64_t wr_id)
{
	struct ibv_sge sge = {(uintptr_t)ep->buffer, MESSAGE, ep->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr.wr.ud.ah = ep_peer_ah(ep);
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = EP_QKEY;
	CHECK_ZERO(ibv_post_send(ep->qp, &wr, &bad));
	completion_expect(ep->resources->cq, wr_id, IBV_WC_SUCCESS, &wc);
}

static int sender(int sock, void *argument)
{
	const struct plan *plan = argument;
	struct resources resources;
	struct endpoint ep;
	struct peer still, moving;
	int fd = open(plan->netns, O_RDONLY | O_CLOEXEC);

	promise("the sender on the other host");
	CHECK(fd >= 0);
	CHECK_ZERO(setns(fd, CLONE_NEWNET));
	open_side(&resources, &ep, plan);
	message_send(sock, &ep.local, sizeof(ep.local));
	message_receive(sock, &still, sizeof(still));
	message_receive(sock, &moving, sizeof(moving));
	ep_connect(&ep, &moving);
	message_meet(sock);
	for (uint64_t i = 0; i < STRAYS; i++)
		send_to(&ep, still.qpn, i);
	send_to(&ep, moving.qpn, STRAYS);
	message_meet(sock);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

int main(int argc, char **argv)
{
	struct plan here = {NULL, 0}, there = {NULL, 0};
	struct process stands, moves, sends;
	struct peer still, moving, sending;

	if (argc != 3)
		check_skipped("usage: udp-strays GID_INDEX NETNS");
	watchdog(60);
	here.gid_index = there.gid_index = atoi(argv[1]);
	there.netns = argv[2];
	process_start(&stands, bystander, &here);
	process_start(&moves, victim, &here);
	process_start(&sends, sender, &there);
	message_receive(stands.sock, &still, sizeof(still));
	process_stop(&stands);
	message_receive(moves.sock, &moving, sizeof(moving));
	message_receive(sends.sock, &sending, sizeof(sending));
	message_send(moves.sock, &sending, sizeof(sending));
	message_meet(moves.sock);
	message_send(sends.sock, &still, sizeof(still));
	message_send(sends.sock, &moving, sizeof(moving));
	message_meet(sends.sock);
	message_meet(sends.sock);
	message_meet(moves.sock);
	/* The packets would be kept for longer than that. */
	uint64_t begin = now_ms();

	process_expect_success(&moves, PROCESS_PATIENCE_MS);
	prompt("exit(3) of the process that has the packets", begin);
	process_continue(&stands);
	message_meet(stands.sock);
	process_expect_success(&sends, PROCESS_PATIENCE_MS);
	process_expect_success(&stands, PROCESS_PATIENCE_MS);
	printf("packets of a process that stands still hold up nobody: done\n");
	return 0;
}

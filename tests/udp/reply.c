/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Usage: udp-reply GID_INDEX NETNS (a path like /proc/PID/ns/net; VB_TEST_DEVICE names the device
 * in both namespaces)
 *
 * A program that replies at once sends its reply before the acknowledgement of the request.
 * Whatever the program does instead of replying, the acknowledgement is sent all the same: here the
 * requester may not send a second time, so a lost acknowledgement is an error.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"
#include "support/qp_state.h"

enum { REPLIES = 100, BYTES = 64, NO_TRIES = 0, TIMEOUT = 19 /* 2.1 s */ };

enum ending { DESTROY, RESET, EXIT, STOP_POLLING, POLL_ON, ENDINGS };

static const char *const promises[ENDINGS] = {
	[DESTROY] = "a queue pair that is destroyed instead of replying has acknowledged",
	[RESET] = "a queue pair that is reset instead of replying has acknowledged",
	[EXIT] = "a program that ends instead of replying has acknowledged",
	[STOP_POLLING] = "a program that stops polling instead of replying acknowledges",
	[POLL_ON] = "a program that polls on instead of replying acknowledges",
};

struct plan {
	const char *netns;
	int gid_index;
	enum ending ending;
};

static void connect_side(struct resources *resources, struct endpoint *ep, int sock,
			 const struct plan *plan)
{
	struct ep_config config;

	resources_open(resources, 64, false);
	resources_use_gid(resources, plan->gid_index);
	config = ep_defaults(IBV_QPT_RC);
	config.timeout = TIMEOUT;
	config.retry_cnt = NO_TRIES;
	ep_open_on(ep, resources, &config, NULL, 4096);
	for (unsigned int i = 0; i < 4; i++)
		CHECK_ZERO(ep_recv(ep, 1, 0, BYTES));
	ep_exchange(ep, sock);
}

/* Polls until the receive is complete; sends that complete before it are skipped. */
static void await_message(struct endpoint *ep)
{
	struct ibv_wc wc;

	do {
		completion_next(ep->resources->cq, &wc);
		CHECK_SAY(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	} while (!(wc.opcode & IBV_WC_RECV));
	CHECK_ZERO(ep_recv(ep, 1, 0, BYTES));
}

static void end(struct endpoint *ep, enum ending ending, int sock)
{
	uint64_t until = now_ms() + 4000;
	struct ibv_wc wc;

	switch (ending) {
	case DESTROY:
		CHECK_ZERO(ibv_destroy_qp(ep->qp));
		break;
	case RESET:
		qp_move(ep->qp, IBV_QPS_RESET);
		break;
	case EXIT:
		exit(0);
	case POLL_ON:
		while (now_ms() < until && !message_try_receive(sock, &(char){0}, 1, 0))
			ibv_poll_cq(ep->resources->cq, 1, &wc);
		return;
	default:
		break;
	}
	message_meet(sock);
}

static int replier(int sock, void *argument)
{
	const struct plan *plan = argument;
	struct resources resources;
	struct endpoint ep;
	int fd = open(plan->netns, O_RDONLY | O_CLOEXEC);

	promise(promises[plan->ending]);
	CHECK(fd >= 0);
	CHECK_ZERO(setns(fd, CLONE_NEWNET));
	connect_side(&resources, &ep, sock, plan);
	for (unsigned int i = 0; i < REPLIES; i++) {
		await_message(&ep);
		CHECK_ZERO(ep_send(&ep, 2, 0, BYTES, IBV_SEND_SIGNALED));
	}
	await_message(&ep);
	end(&ep, plan->ending, sock);
	return 0;
}

static void requester(int sock, const struct plan *plan)
{
	struct resources resources;
	struct endpoint ep;
	struct ibv_wc wc;

	connect_side(&resources, &ep, sock, plan);
	for (unsigned int i = 0; i < REPLIES; i++) {
		CHECK_ZERO(ep_send(&ep, 2, 0, BYTES, IBV_SEND_SIGNALED));
		await_message(&ep);
	}
	CHECK_ZERO(ep_send(&ep, 3, 0, BYTES, IBV_SEND_SIGNALED));
	do {
		completion_next(resources.cq, &wc);
		CHECK_SAY(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	} while (wc.wr_id != 3);
	if (plan->ending == POLL_ON)
		message_send(sock, "", 1);
	else if (plan->ending != EXIT)
		message_meet(sock);
	ep_close(&ep);
	resources_close(&resources);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		check_skipped("usage: udp-reply GID_INDEX NETNS");
	watchdog(60);
	for (enum ending ending = 0; ending < ENDINGS; ending++) {
		struct plan plan = {argv[2], atoi(argv[1]), ending};
		struct process process;

		promise(promises[ending]);
		process_start(&process, replier, &plan);
		requester(process.sock, &plan);
		process_expect_success(&process, PROCESS_PATIENCE_MS);
		printf("ok %d - %s\n", (int)ending + 1, promises[ending]);
	}
	printf("1..%d\n", ENDINGS);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Usage: udp-reply GID_INDEX NETNS (a path like /proc/PID/ns/net; VB_TEST_DEVICE names the device
 * in both namespaces)
 *
 * A program that replies at once sends its reply before the acknowledgement of the request.
 * Whatever the program does instead of replying, the acknowledgement is sent all the same: here the
 * requester may not send a second time, so a lost acknowledgement is an error. The messages are
 * SENDs, or WRITEs that each side awaits by spinning on its memory.
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

static const char *const promises[2][ENDINGS] = {
	{
		[DESTROY] = "a queue pair that is destroyed instead of replying has acknowledged",
		[RESET] = "a queue pair that is reset instead of replying has acknowledged",
		[EXIT] = "a program that ends instead of replying has acknowledged",
		[STOP_POLLING] = "a program that stops polling instead of replying acknowledges",
		[POLL_ON] = "a program that polls on instead of replying acknowledges",
	},
	{
		[DESTROY] = "the same of a WRITE: destroyed",
		[RESET] = "the same of a WRITE: reset",
		[EXIT] = "the same of a WRITE: ended",
		[STOP_POLLING] = "the same of a WRITE: it stops polling",
		[POLL_ON] = "the same of a WRITE: it polls on",
	},
};

struct plan {
	const char *netns;
	int gid_index;
	bool writes;
	enum ending ending;
};

/* Where the numbers of WRITEs are: sent from the one, received in the other. */
enum { NUMBER_OUT = 1024, NUMBER_IN = 2048 };

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

static void message_post(struct endpoint *ep, const struct plan *plan, uint64_t number,
			 uint64_t wr_id)
{
	if (!plan->writes) {
		CHECK_ZERO(ep_send(ep, wr_id, 0, BYTES, IBV_SEND_SIGNALED));
		return;
	}
	memcpy(ep->buffer + NUMBER_OUT, &number, sizeof(number));
	CHECK_ZERO(ep_write(ep, wr_id, NUMBER_OUT, sizeof(number), NUMBER_IN, IBV_SEND_SIGNALED));
}

/* As ib_write_lat does: polls until its own WRITE is complete, and then looks at the memory alone. */
static void await_write(struct endpoint *ep, uint64_t number, bool posted)
{
	volatile uint64_t *in = (volatile uint64_t *)(void *)(ep->buffer + NUMBER_IN);
	struct ibv_wc wc;

	if (posted) {
		completion_next(ep->resources->cq, &wc);
		CHECK_SAY(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	}
	while (*in != number)
		sched_yield();
}

/* Polls until the receive is complete; sends that complete before it are skipped. */
static void await_send(struct endpoint *ep)
{
	struct ibv_wc wc;

	do {
		completion_next(ep->resources->cq, &wc);
		CHECK_SAY(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	} while (!(wc.opcode & IBV_WC_RECV));
	CHECK_ZERO(ep_recv(ep, 1, 0, BYTES));
}

static void await_message(struct endpoint *ep, const struct plan *plan, uint64_t number,
			  bool posted)
{
	if (plan->writes)
		await_write(ep, number, posted);
	else
		await_send(ep);
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

	promise(promises[plan->writes][plan->ending]);
	CHECK(fd >= 0);
	CHECK_ZERO(setns(fd, CLONE_NEWNET));
	connect_side(&resources, &ep, sock, plan);
	for (unsigned int i = 0; i < REPLIES; i++) {
		await_message(&ep, plan, i + 1, i > 0);
		message_post(&ep, plan, i + 1, 2);
	}
	await_message(&ep, plan, REPLIES + 1, true);
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
		message_post(&ep, plan, i + 1, 2);
		await_message(&ep, plan, i + 1, true);
	}
	message_post(&ep, plan, REPLIES + 1, 3);
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
	for (int number = 0; number < 2 * ENDINGS; number++) {
		struct plan plan = {argv[2], atoi(argv[1]), number >= ENDINGS,
				    (enum ending)(number % ENDINGS)};
		const char *text = promises[plan.writes][plan.ending];
		struct process process;

		promise(text);
		process_start(&process, replier, &plan);
		requester(process.sock, &plan);
		process_expect_success(&process, PROCESS_PATIENCE_MS);
		printf("ok %d - %s\n", number + 1, text);
	}
	printf("1..%d\n", 2 * ENDINGS);
	return 0;
}

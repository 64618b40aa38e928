/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: datagrams to a process with which contact is still being made wait for contact, and then
 * for room, from several queue pairs at the same time. None is dropped while the receiver is only
 * late. They wait no longer than a bound, and once: to a process that stands still, met before or
 * not, hundreds of sends complete in the time of one wait.
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <stdlib.h>
#include <time.h>

/*
 * A ring holds fewer than 500 datagrams of this size, which every path takes, so the queue pairs
 * must wait for each other.
 */
enum { QPS = 16, EACH = 250, SIZE = 1024, GRH = 40, LATE_MS = 400, STILL = 250 };

struct numbers {
	uint32_t qpn[QPS];
};

static void open_sides(struct endpoint *eps, struct resources *resources, unsigned int depth)
{
	struct ep_config config;

	resources_open(resources, 2 * QPS * STILL, false);
	config = ep_defaults(IBV_QPT_UD);
	config.cap.max_recv_wr = config.cap.max_send_wr = depth;
	for (unsigned int i = 0; i < QPS; i++) {
		ep_open_on(&eps[i], resources, &config, NULL, GRH + SIZE);
		ep_connect(&eps[i], &eps[i].local);
	}
}

/* Posts its receives, tells its numbers, and later how many datagrams came. */
static int receiver(int sock, void *unused)
{
	struct resources resources;
	struct endpoint eps[QPS];
	struct numbers numbers;
	struct ibv_wc wc;
	uint32_t got = 0;

	(void)unused;
	open_sides(eps, &resources, STILL);
	for (unsigned int i = 0; i < QPS; i++) {
		numbers.qpn[i] = eps[i].qp->qp_num;
		for (unsigned int k = 0; k < EACH; k++)
			CHECK_ZERO(ep_recv(&eps[i], k, 0, GRH + SIZE));
	}
	message_send(sock, &numbers, sizeof(numbers));
	while (got < QPS * EACH && completion_try(resources.cq, &wc, 5000)) {
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		got++;
	}
	message_send(sock, &got, sizeof(got));
	message_meet(sock);
	return 0;
}

static void send_all(struct endpoint *eps, const struct numbers *to, unsigned int each)
{
	for (unsigned int k = 0; k < each; k++) {
		for (unsigned int i = 0; i < QPS; i++) {
			eps[i].remote.qpn = to->qpn[i];
			CHECK_ZERO(ep_send(&eps[i], k, GRH, SIZE, IBV_SEND_SIGNALED));
		}
	}
}

/* Allows COMPLETION_WAIT_MS for all of them: far less than one wait for each. */
static void sends_complete(struct ibv_cq *cq, unsigned int count)
{
	struct timespec from, now;
	struct ibv_wc wc;

	clock_gettime(CLOCK_MONOTONIC, &from);
	for (unsigned int i = 0; i < count; i++) {
		completion_next(cq, &wc);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	CHECK_SAY(now.tv_sec - from.tv_sec <= COMPLETION_WAIT_MS / 1000, "%u sends took %ld s",
		  count, (long)(now.tv_sec - from.tv_sec));
}

static void late(struct endpoint *eps, struct resources *resources, struct process *process)
{
	struct timespec while_stopped = {0, LATE_MS * 1000000l};
	struct numbers numbers;
	uint32_t got = 0;

	promise("datagrams wait for contact and then for room");
	message_receive(process->sock, &numbers, sizeof(numbers));
	process_stop(process);
	send_all(eps, &numbers, EACH);
	CHECK(!completion_try(resources->cq, &(struct ibv_wc){0}, 1));
	nanosleep(&while_stopped, NULL);
	process_continue(process);
	sends_complete(resources->cq, QPS * EACH);
	message_receive(process->sock, &got, sizeof(got));
	CHECK_EQ(got, QPS * EACH);

	promise("a full ring that nobody empties is waited for once");
	process_stop(process);
	send_all(eps, &numbers, STILL);
	sends_complete(resources->cq, QPS * STILL);
	process_continue(process);
	message_meet(process->sock);
	process_expect_success(process, PROCESS_PATIENCE_MS);
}

static void never(struct endpoint *eps, struct resources *resources, struct process *process)
{
	struct numbers numbers;

	promise("contact that nobody answers is waited for once");
	message_receive(process->sock, &numbers, sizeof(numbers));
	process_stop(process);
	send_all(eps, &numbers, STILL);
	sends_complete(resources->cq, QPS * STILL);
	process_kill(process);
}

int main(void)
{
	struct process first, second;
	struct resources resources;
	struct endpoint eps[QPS];

	watchdog(120);
	process_start(&first, receiver, NULL);
	process_start(&second, receiver, NULL);
	open_sides(eps, &resources, STILL);
	late(eps, &resources, &first);
	never(eps, &resources, &second);
	for (unsigned int i = 0; i < QPS; i++)
		ep_close(&eps[i]);
	resources_close(&resources);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: the cost of a queue pair does not grow with the number of queue pairs, also where each
 * has a completion queue of its own. Many pairs connect, and every queue pair sends and receives in
 * each round, in rounds of all and in an order drawn at random. All of it ends within the time,
 * which costs that grow with the number would exceed many times.
 *
 *   apart   the pairs are between two processes, and each polls its queues in turn
 *   within  both ends are in one process
 *   random  as apart; the pair that sends next is drawn each time, and only the queue that is
 *           waited for is polled
 *
 * usage: many_cqs apart|within|random PAIRS ROUNDS [SECONDS]
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"
#include "support/qp_state.h"
#include "support/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { MESSAGE = 64, SEED = 20261 };

struct one {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint32_t sent, received; /* completions */
	uint32_t rounds;         /* how many of each there are to be */
};

struct crowd {
	struct resources resources;
	struct ep_config config;
	struct ibv_mr *mr;
	unsigned char *buffer;
	struct one *one;
	uint32_t count;
};

static uint32_t pairs, rounds;
static uint64_t begun;

static void tell(const char *who, const char *what)
{
	printf("%s: %s after %llu ms\n", who, what, (unsigned long long)(now_ms() - begun));
	fflush(stdout);
}

static void receive_post(struct crowd *c, uint32_t i)
{
	struct ibv_sge sge = {(uintptr_t)c->buffer, MESSAGE, c->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	CHECK_ZERO(ibv_post_recv(c->one[i].qp, &wr, &bad));
}

static void send_post(struct crowd *c, uint32_t i)
{
	struct ibv_sge sge = {(uintptr_t)c->buffer + MESSAGE, MESSAGE, c->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	CHECK_ZERO(ibv_post_send(c->one[i].qp, &wr, &bad));
}

static void crowd_open(struct crowd *c, uint32_t count)
{
	resources_open(&c->resources, 1, false);
	c->config = ep_defaults(IBV_QPT_RC);
	c->config.cap.max_send_wr = c->config.cap.max_recv_wr = 4;
	c->count = count;
	c->one = calloc(count, sizeof(*c->one));
	c->buffer = calloc(2, MESSAGE);
	CHECK(c->one && c->buffer);
	c->mr = ibv_reg_mr(c->resources.pd, c->buffer, (size_t)2 * MESSAGE, IBV_ACCESS_LOCAL_WRITE);
	CHECK(c->mr);
	for (uint32_t i = 0; i < count; i++) {
		c->one[i].cq = ibv_create_cq(c->resources.context, 8, NULL, NULL, 0);
		CHECK(c->one[i].cq);
		c->config.send_cq = c->config.recv_cq = c->one[i].cq;
		c->one[i].qp = ep_create_qp(&c->resources, &c->config);
		receive_post(c, i);
	}
}

static void crowd_close(struct crowd *c)
{
	for (uint32_t i = 0; i < c->count; i++) {
		CHECK_ZERO(ibv_destroy_qp(c->one[i].qp));
		CHECK_ZERO(ibv_destroy_cq(c->one[i].cq));
	}
	CHECK_ZERO(ibv_dereg_mr(c->mr));
	resources_close(&c->resources);
	free(c->one);
	free(c->buffer);
}

static void connect_one(struct crowd *c, uint32_t i, uint32_t to)
{
	struct peer local = {.psn = 7, .mtu = c->resources.mtu};
	struct peer remote = {
		.gid = c->resources.gid, .qpn = to, .psn = 7, .mtu = c->resources.mtu};
	struct ibv_qp_attr attr = ep_attr(&c->config, &local, &remote);

	CHECK_ZERO(qp_bring_to(c->one[i].qp, &attr, IBV_QPS_RTS));
}

static void look(struct crowd *c, uint32_t i)
{
	struct ibv_wc wc[4];
	int n = ibv_poll_cq(c->one[i].cq, 4, wc);

	CHECK(n >= 0);
	for (int k = 0; k < n; k++) {
		if (wc[k].status)
			completion_print(&wc[k]);
		CHECK_EQ(wc[k].status, IBV_WC_SUCCESS);
		if (wc[k].opcode & IBV_WC_RECV) {
			receive_post(c, i);
			c->one[i].received++;
		} else {
			c->one[i].sent++;
		}
	}
}

static bool behind(const struct one *one)
{
	return one->sent < one->rounds || one->received < one->rounds;
}

/* Every queue pair sends once, then all are polled in turn until each has sent and received. */
static void round_all(struct crowd *c)
{
	uint32_t left = c->count;
	unsigned int turns = 0;

	for (uint32_t i = 0; i < c->count; i++) {
		c->one[i].rounds++;
		send_post(c, i);
	}
	while (left) {
		left = 0;
		for (uint32_t i = 0; i < c->count; i++) {
			if (behind(&c->one[i]))
				look(c, i);
			left += behind(&c->one[i]);
		}
		spin_once(&turns);
	}
}

/* Both processes draw the same numbers: one sends, the other waits for it and answers. */
static void round_random(struct crowd *c, bool first, uint64_t *seed)
{
	for (uint32_t n = 0; n < c->count; n++) {
		uint32_t i = (uint32_t)(random_next(seed) % c->count);
		struct one *one = &c->one[i];
		unsigned int turns = 0;

		one->rounds++;
		if (first)
			send_post(c, i);
		while (one->received < one->rounds) {
			look(c, i);
			spin_once(&turns);
		}
		if (!first)
			send_post(c, i);
		while (one->sent < one->rounds) {
			look(c, i);
			spin_once(&turns);
		}
	}
}

struct meeting {
	bool random;
	uint32_t qpn[];
};

static int apart(int sock, void *argument)
{
	struct meeting *m = argument;
	struct crowd c = {0};
	uint64_t seed = SEED;
	uint32_t first = 0, other = 0;

	crowd_open(&c, pairs);
	message_swap(sock, &c.one[0].qp->qp_num, &other, sizeof(other));
	first = c.one[0].qp->qp_num < other;
	for (uint32_t i = 0; i < pairs; i++)
		m->qpn[first * pairs + i] = c.one[i].qp->qp_num;
	message_meet(sock);
	if (first)
		tell("apart", "queue pairs made");
	for (uint32_t i = 0; i < pairs; i++)
		connect_one(&c, i, m->qpn[!first * pairs + i]);
	message_meet(sock);
	if (first)
		tell("apart", "connected");
	for (uint32_t r = 0; r < rounds; r++) {
		if (m->random && r)
			round_random(&c, first, &seed);
		else
			round_all(&c);
		if (first)
			tell("apart", "a round");
		message_meet(sock);
	}
	crowd_close(&c);
	if (first)
		tell("apart", "closed");
	return 0;
}

static void within(void)
{
	struct crowd c = {0};

	crowd_open(&c, pairs * 2);
	tell("within", "queue pairs made");
	for (uint32_t i = 0; i < pairs * 2; i++)
		connect_one(&c, i, c.one[i ^ 1].qp->qp_num);
	tell("within", "connected");
	for (uint32_t r = 0; r < rounds; r++) {
		round_all(&c);
		tell("within", "a round");
	}
	crowd_close(&c);
	tell("within", "closed");
}

int main(int argc, char **argv)
{
	struct process a, b;
	struct meeting *m;

	promise("what a queue pair costs does not grow with how many there are");
	CHECK(argc >= 4);
	pairs = (uint32_t)strtoul(argv[2], NULL, 0);
	rounds = (uint32_t)strtoul(argv[3], NULL, 0);
	begun = now_ms();
	unsigned int seconds = argc > 4 ? (unsigned int)strtoul(argv[4], NULL, 0) : 90;

	watchdog(seconds);
	if (!strcmp(argv[1], "within")) {
		within();
		return 0;
	}
	m = memory_shared(sizeof(*m) + (size_t)2 * pairs * sizeof(m->qpn[0]));
	m->random = !strcmp(argv[1], "random");
	process_start_pair(&a, apart, &b, apart, m);
	process_expect_success(&a, (int)seconds * 1000);
	process_expect_success(&b, (int)seconds * 1000);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a block of queue pair numbers costs descriptors only while its numbers are in use. A
 * process that had thousands of queue pairs, and destroyed them in any order, has as many
 * descriptors and names as a process with a few. Its peer still reaches the queue pair that stayed,
 * and new ones.
 */
#include "procs/leftovers.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 1024, SIZE = 4096, ROUNDS = 3, PATIENCE_MS = 20000, CALM_MS = 200 };
/*
 * Besides the block that names the process, one may stay: the first that is emptied while no other
 * numbers can rest.
 */
enum { BLOCKS_LEFT = 1, NAMES_A_BLOCK = 2 };
enum order { FIRST_FIRST, LAST_FIRST, SCATTERED, ORDERS };

static struct ibv_qp *make(struct resources *resources)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_UD,
		.send_cq = resources->cq,
		.recv_cq = resources->cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp *qp = ibv_create_qp(resources->pd, &attr);

	CHECK_SAY(qp, "ibv_create_qp: errno %d", errno);
	return qp;
}

/* A number without a common divisor with the count reaches each. */
static int place(enum order order, int i, int count)
{
	if (order == FIRST_FIRST)
		return i;
	return order == LAST_FIRST ? count - 1 - i : (int)((long)i * 1021 % count);
}

static void expect_write(struct endpoint *ep)
{
	CHECK_ZERO(ep_write(ep, 7, 0, 64, 64, IBV_SEND_SIGNALED));
	completion_expect(ep->resources->cq, 7, IBV_WC_SUCCESS, NULL);
}

/*
 * The peer's memory comes a moment after the first message, and stays: what the process has when
 * nothing has come or gone for a while.
 */
static int descriptors_at_rest(void)
{
	int open = descriptors_open();

	for (int i = 0, calm = 0; i < PATIENCE_MS && calm < CALM_MS; i++) {
		int now = descriptors_open();

		calm = now == open ? calm + 1 : 0;
		open = now;
		sleep_ms(1);
	}
	return open;
}

/* The progress thread has a descriptor for a moment now and then. */
static void descriptors_fall_to(int most, int round)
{
	int open = 0;

	for (int i = 0; i < PATIENCE_MS && (open = descriptors_open()) > most; i++)
		sleep_ms(1);
	CHECK_SAY(open <= most, "round %d: %d descriptors, %d are allowed", round, open, most);
}

static int many(int sock, int count)
{
	struct ibv_qp **qp = calloc((size_t)count, sizeof(struct ibv_qp *));
	struct resources resources;
	struct endpoint stays, later;

	CHECK(qp);
	resources_open(&resources, 64, false);
	ep_open_on(&stays, &resources, NULL, NULL, SIZE);
	ep_exchange(&stays, sock);
	expect_write(&stays);
	message_meet(sock);
	int before = descriptors_at_rest();

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < count; i++)
			qp[i] = make(&resources);
		/* Otherwise there is nothing to close. */
		CHECK(descriptors_open() >= before + count / BLOCK);
		for (int i = 0; i < count; i++)
			CHECK_ZERO(ibv_destroy_qp(qp[place(round % ORDERS, i, count)]));
		descriptors_fall_to(before + BLOCKS_LEFT * NAMES_A_BLOCK, round);
		expect_write(&stays);
	}
	ep_open_on(&later, &resources, NULL, NULL, SIZE);
	ep_exchange(&later, sock);
	expect_write(&later);
	message_meet(sock);
	ep_close(&later);
	ep_close(&stays);
	resources_close(&resources);
	free(qp);
	return 0;
}

static int has_many(int sock, void *count)
{
	promise("blocks whose last number was given back are closed");
	return many(sock, *(const int *)count);
}

static int its_peer(int sock, void *unused)
{
	struct resources resources;
	struct endpoint first, second;

	(void)unused;
	promise("a peer reaches what stays and what is made later");
	resources_open(&resources, 64, false);
	ep_open_on(&first, &resources, NULL, NULL, SIZE);
	ep_exchange(&first, sock);
	expect_write(&first);
	message_meet(sock);
	ep_open_on(&second, &resources, NULL, NULL, SIZE);
	ep_exchange(&second, sock);
	expect_write(&second);
	expect_write(&first);
	message_meet(sock);
	ep_close(&second);
	ep_close(&first);
	resources_close(&resources);
	return 0;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 5001;
	struct process a, b;

	watchdog(160);
	process_start_pair(&a, has_many, &b, its_peer, &count);
	process_expect_success(&a, 150000);
	process_expect_success(&b, PROCESS_PATIENCE_MS);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a peer costs few addresses, however many queue pairs and keys a process may have; and
 * queue pairs and keys at the end of a peer's tables are reached like the first ones.
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QPS = 5000, KEYS = 20000, SIZE = 4096, MOST_MB = 16, SETTLED = 300 };

struct far {
	struct peer first, last;
};

static long address_space_mb(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long pages = 0;

	CHECK(f && fscanf(f, "%ld", &pages) == 1);
	fclose(f);
	return pages / 256;
}

/* Thousands of queue pairs and keys; the first and the last of both are the other's. */
static int owner(int sock, void *argument)
{
	static struct ibv_qp *qp[QPS];
	static struct ibv_mr *mr[KEYS];
	struct resources resources;
	struct ep_config config;
	struct endpoint first, last;
	struct far mine, theirs;

	(void)argument;
	resources_open(&resources, 64, false);
	config = ep_defaults(IBV_QPT_RC);
	config.cap.max_send_wr = config.cap.max_recv_wr = 4;
	ep_open_on(&first, &resources, &config, NULL, SIZE);
	for (int i = 0; i < QPS; i++)
		qp[i] = ep_create_qp(&resources, &config);
	for (int i = 0; i < KEYS; i++) {
		mr[i] = ibv_reg_mr(resources.pd, first.buffer, SIZE, EP_ACCESS);
		CHECK(mr[i]);
	}
	ep_open_on(&last, &resources, &config, NULL, SIZE);
	mine = (struct far){first.local, last.local};
	message_swap(sock, &mine, &theirs, sizeof(mine));
	ep_connect(&first, &theirs.first);
	message_meet(sock);
	ep_connect(&last, &theirs.last);
	message_meet(sock);
	message_meet(sock);
	CHECK_EQ(first.buffer[0], 1);
	CHECK_EQ(last.buffer[0], 2);
	ep_close(&last);
	for (int i = 0; i < KEYS; i++)
		CHECK_ZERO(ibv_dereg_mr(mr[i]));
	for (int i = 0; i < QPS; i++)
		CHECK_ZERO(ibv_destroy_qp(qp[i]));
	ep_close(&first);
	resources_close(&resources);
	return 0;
}

/* WRITEs until one has gone by each way: memory is given only after it was asked for. */
static void write_often(struct endpoint *ep, unsigned char value)
{
	struct ibv_wc wc;

	ep->buffer[0] = value;
	for (uint64_t i = 0; i < 200; i++) {
		CHECK_ZERO(ep_write(ep, i, 0, 64, 0, IBV_SEND_SIGNALED));
		completion_expect(ep->resources->cq, i, IBV_WC_SUCCESS, &wc);
		sleep_ms(i < 20 ? 5 : 0);
	}
}

static int writer(int sock, void *argument)
{
	struct resources resources;
	struct endpoint first, last;
	struct far mine, theirs;
	long before, after;

	(void)argument;
	resources_open(&resources, 64, false);
	ep_open_on(&first, &resources, NULL, NULL, SIZE);
	ep_open_on(&last, &resources, NULL, NULL, SIZE);
	mine = (struct far){first.local, last.local};
	sleep_ms(SETTLED); /* the process has made what it makes for itself */
	before = address_space_mb();
	message_swap(sock, &mine, &theirs, sizeof(mine));
	ep_connect(&first, &theirs.first);
	message_meet(sock);
	write_often(&first, 1);
	after = address_space_mb();
	ep_connect(&last, &theirs.last);
	message_meet(sock);
	write_often(&last, 2);
	message_meet(sock);
	CHECK_SAY(getenv("ASAN_OPTIONS") || getenv("TSAN_OPTIONS") || after - before <= MOST_MB,
		  "the peer takes %ld MB of addresses", after - before);
	ep_close(&last);
	ep_close(&first);
	resources_close(&resources);
	return 0;
}

int main(void)
{
	struct process a, b;

	promise("a peer costs few addresses, and all of its tables is reached");
	watchdog(100);
	process_start_pair(&a, owner, &b, writer, NULL);
	process_expect_success(&a, 90000);
	process_expect_success(&b, 90000);
	return 0;
}

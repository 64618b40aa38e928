/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: one-sided means one-sided. While the target process is stopped
 * (SIGSTOP), WRITE, READ, both ATOMICs and ATOMIC_WRITE to its memory finish; a SEND to it
 * waits (10 s here, far longer than timeout times retry count) without an error,
 * and completes after SIGCONT with nothing lost and nothing out of order.
 *
 * usage: stopped_target [SECONDS_A_SEND_WAITS [cold]]
 *   cold  no work request went to the target before it was stopped; connecting
 *         (the move to RTR and RTS) alone must have brought the processes together
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SIZE = 4 * 1024 * 1024,
	COUNTER_AT = 0,
	STORED_AT = 64,
	READ_AT = 4096,
	WRITE_AT = 1024 * 1024
};
enum { MESSAGES = 32, MESSAGE = 1024, MESSAGE_AT = 2 * 1024 * 1024, LARGE = 1024 * 1024 };
enum { COUNTER = 1000, ADDED = 7, SWAPPED = 5555, STORED = 77777 };

/* The target's state as the kernel tells it: 'T' is stopped. */
static char state_of(pid_t pid)
{
	char path[64], line[512] = "";
	const char *after;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	CHECK(file);
	CHECK(fgets(line, sizeof(line), file));
	fclose(file);
	after = strrchr(line, ')');
	CHECK(after);
	return after[2];
}

static unsigned char pattern(size_t i, unsigned int salt)
{
	return (unsigned char)(i * 31 + (i >> 8) + salt);
}

static void fill(unsigned char *at, size_t size, unsigned int salt)
{
	size_t i;

	for (i = 0; i < size; i++)
		at[i] = pattern(i, salt);
}

static void check_filled(const unsigned char *at, size_t size, unsigned int salt)
{
	size_t i;

	for (i = 0; i < size; i++)
		CHECK_SAY(at[i] == pattern(i, salt), "byte %zu of %zu is %u, expected %u", i, size,
			  at[i], pattern(i, salt));
}

/* Two connections: one stays free for one-sided work while the other's SENDs wait. */
static int target(int sock, void *unused)
{
	struct endpoint one_sided, two_sided;
	struct resources resources;
	uint64_t counter = COUNTER;
	int i;

	(void)unused;
	promise("the target finds everything after it went on");
	resources_open(&resources, 256, false);
	ep_open_on(&one_sided, &resources, NULL, NULL, SIZE);
	ep_open_on(&two_sided, &resources, NULL, NULL, SIZE);
	fill(one_sided.buffer + READ_AT, LARGE / 2, 2);
	memcpy(one_sided.buffer + COUNTER_AT, &counter, sizeof(counter));
	for (i = 0; i < MESSAGES; i++)
		CHECK_ZERO(ep_recv(&two_sided, (uint64_t)i, MESSAGE_AT + (size_t)i * MESSAGE,
				   MESSAGE));
	ep_exchange(&one_sided, sock);
	ep_exchange(&two_sided, sock);
	message_meet(sock);
	/* Stopped somewhere here. */
	for (i = 0; i < MESSAGES; i++)
		completion_expect(resources.cq, (uint64_t)i, IBV_WC_SUCCESS, NULL);
	for (i = 0; i < MESSAGES; i++)
		check_filled(two_sided.buffer + MESSAGE_AT + (size_t)i * MESSAGE, MESSAGE,
			     (unsigned int)i);
	check_filled(one_sided.buffer + WRITE_AT, LARGE, 1);
	memcpy(&counter, one_sided.buffer + COUNTER_AT, sizeof(counter));
	CHECK_EQ(counter, SWAPPED);
	memcpy(&counter, one_sided.buffer + STORED_AT, sizeof(counter));
	CHECK_EQ(counter, STORED);
	message_meet(sock);
	ep_close(&one_sided);
	ep_close(&two_sided);
	resources_close(&resources);
	return 0;
}

static uint64_t word_at(const unsigned char *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static void atomic_write(struct endpoint *ep, uint64_t wr_id)
{
	uint64_t value = STORED;
	struct ibv_sge sge = {.addr = (uintptr_t)ep->buffer + STORED_AT,
			      .length = sizeof(value),
			      .lkey = ep->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_ATOMIC_WRITE,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	memcpy(ep->buffer + STORED_AT, &value, sizeof(value));
	wr.wr.rdma.remote_addr = ep->remote.addr + STORED_AT;
	wr.wr.rdma.rkey = ep->remote.rkey;
	CHECK_ZERO(ibv_post_send(ep->qp, &wr, &bad));
	completion_expect(ep->resources->cq, wr_id, IBV_WC_SUCCESS, NULL);
}

static void one_sided_work(struct endpoint *ep)
{
	struct ibv_cq *cq = ep->resources->cq;

	fill(ep->buffer + WRITE_AT, LARGE, 1);
	CHECK_ZERO(ep_write(ep, 1, WRITE_AT, LARGE, WRITE_AT, IBV_SEND_SIGNALED));
	completion_expect(cq, 1, IBV_WC_SUCCESS, NULL);
	CHECK_ZERO(ep_write(ep, 2, WRITE_AT, 8, WRITE_AT, IBV_SEND_SIGNALED));
	completion_expect(cq, 2, IBV_WC_SUCCESS, NULL);
	CHECK_ZERO(ep_read(ep, 3, READ_AT, LARGE / 2, READ_AT, IBV_SEND_SIGNALED));
	completion_expect(cq, 3, IBV_WC_SUCCESS, NULL);
	check_filled(ep->buffer + READ_AT, LARGE / 2, 2);
	CHECK_ZERO(ep_fetch_add(ep, 4, COUNTER_AT, COUNTER_AT, ADDED, IBV_SEND_SIGNALED));
	completion_expect(cq, 4, IBV_WC_SUCCESS, NULL);
	CHECK_EQ(word_at(ep->buffer + COUNTER_AT), COUNTER);
	CHECK_ZERO(ep_compare_swap(ep, 5, COUNTER_AT, COUNTER_AT, COUNTER + ADDED, SWAPPED,
				   IBV_SEND_SIGNALED));
	completion_expect(cq, 5, IBV_WC_SUCCESS, NULL);
	CHECK_EQ(word_at(ep->buffer + COUNTER_AT), COUNTER + ADDED);
	atomic_write(ep, 7);
	/* A comparison that fails changes nothing and still answers. */
	CHECK_ZERO(ep_compare_swap(ep, 6, COUNTER_AT, COUNTER_AT, 1, 2, IBV_SEND_SIGNALED));
	completion_expect(cq, 6, IBV_WC_SUCCESS, NULL);
	CHECK_EQ(word_at(ep->buffer + COUNTER_AT), SWAPPED);
}

static void post_messages(struct endpoint *ep)
{
	int i;

	for (i = 0; i < MESSAGES; i++) {
		size_t at = MESSAGE_AT + (size_t)i * MESSAGE;

		fill(ep->buffer + at, MESSAGE, (unsigned int)i);
		CHECK_ZERO(ep_send(ep, (uint64_t)i, at, MESSAGE, IBV_SEND_SIGNALED));
	}
}

/* An empty WRITE on each connection: no data, no receive, but the processes have met. */
static void first_contact(struct endpoint *one_sided, struct endpoint *two_sided)
{
	CHECK_ZERO(ep_write(one_sided, 0, 0, 0, 0, IBV_SEND_SIGNALED));
	completion_expect(one_sided->resources->cq, 0, IBV_WC_SUCCESS, NULL);
	CHECK_ZERO(ep_write(two_sided, 0, 0, 0, 0, IBV_SEND_SIGNALED));
	completion_expect(two_sided->resources->cq, 0, IBV_WC_SUCCESS, NULL);
}

int main(int argc, char **argv)
{
	unsigned int seconds = argc > 1 ? (unsigned int)atoi(argv[1]) : 10;
	struct endpoint one_sided, two_sided;
	struct resources one, two;
	struct process process;
	int i;

	watchdog(seconds + 90);
	process_start(&process, target, NULL);
	promise("the two processes find each other");
	resources_open(&one, 256, false);
	resources_open(&two, 256, false);
	ep_open_on(&one_sided, &one, NULL, NULL, SIZE);
	ep_open_on(&two_sided, &two, NULL, NULL, SIZE);
	ep_exchange(&one_sided, process.sock);
	ep_exchange(&two_sided, process.sock);
	if (argc <= 2)
		first_contact(&one_sided, &two_sided);
	process_await_memory(&process);
	message_meet(process.sock);
	process_stop(&process);
	CHECK_EQ(state_of(process.pid), 'T');

	promise("WRITE, READ and ATOMIC finish while the target is stopped");
	one_sided_work(&one_sided);
	CHECK_EQ(state_of(process.pid), 'T');

	promise("a SEND to a stopped target waits without an error");
	post_messages(&two_sided);
	completion_none(two.cq, seconds * 500);
	CHECK_ZERO(ep_write(&one_sided, 9, WRITE_AT, 64, WRITE_AT, IBV_SEND_SIGNALED));
	completion_expect(one.cq, 9, IBV_WC_SUCCESS, NULL);
	completion_none(two.cq, seconds * 500);
	CHECK_EQ(state_of(process.pid), 'T');

	promise("after SIGCONT every SEND completes, in order");
	process_continue(&process);
	for (i = 0; i < MESSAGES; i++)
		completion_expect(two.cq, (uint64_t)i, IBV_WC_SUCCESS, NULL);
	message_meet(process.sock);
	ep_close(&one_sided);
	ep_close(&two_sided);
	resources_close(&one);
	resources_close(&two);
	process_expect_success(&process, PROCESS_PATIENCE_MS);
	return 0;
}

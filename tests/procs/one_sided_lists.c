/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a list of WRITEs or READs that are posted by one call does what the requests do one by
 * one: each in order, with its own data, key, range and completion. The target is stopped (SIGSTOP)
 * meanwhile, so the process that posts executes them itself. A list costs fewer system calls than
 * it has requests. An entry with a wrong key fails alone; what was posted before it is done, what
 * was posted behind it is flushed.
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <stdio.h>
#include <string.h>

enum { SIZE = 1024 * 1024, MOST = 100, STRIDE = 4096 + 64, SECOND = SIZE / 2 };

struct list {
	struct ibv_send_wr wr[MOST];
	struct ibv_sge sge[MOST][2];
	int count;
};

static uint8_t value(int i, size_t at, unsigned int salt)
{
	return (uint8_t)(salt + (unsigned int)i * 7 + (unsigned int)at * 13);
}

/* Lengths around a word and a page, at odd places. */
static uint32_t length_of(int i)
{
	static const uint32_t lengths[] = {8, 1, 7, 9, 64, 16, 255, 4096, 13, 24};

	return lengths[i % 10];
}

static size_t place_of(int i)
{
	return (size_t)i * STRIDE + (size_t)(i % 3 ? 0 : i % 8);
}

static struct ibv_send_wr *list_add(struct list *list, const struct endpoint *ep,
				    enum ibv_wr_opcode opcode, size_t at, uint32_t length,
				    size_t remote)
{
	int i = list->count++;
	struct ibv_send_wr *wr = &list->wr[i];

	list->sge[i][0] = (struct ibv_sge){(uintptr_t)ep->buffer + at, length, ep->mr->lkey};
	*wr = (struct ibv_send_wr){.wr_id = (uint64_t)i,
				   .sg_list = list->sge[i],
				   .num_sge = 1,
				   .opcode = opcode,
				   .send_flags = IBV_SEND_SIGNALED};
	wr->wr.rdma.remote_addr = ep->remote.addr + remote;
	wr->wr.rdma.rkey = ep->remote.rkey;
	if (i)
		wr[-1].next = wr;
	return wr;
}

static void list_post(struct list *list, struct endpoint *ep)
{
	struct ibv_send_wr *bad = NULL;

	CHECK_ZERO(ibv_post_send(ep->qp, list->wr, &bad));
}

static void list_expect(const struct list *list, struct endpoint *ep)
{
	for (int i = 0; i < list->count; i++)
		completion_expect(ep->resources->cq, (uint64_t)i, IBV_WC_SUCCESS, NULL);
}

static void fill(struct endpoint *ep, int i, unsigned int salt)
{
	for (size_t k = 0; k < length_of(i); k++)
		ep->buffer[place_of(i) + k] = value(i, k, salt);
}

static void check_filled(const uint8_t *buffer, int i, unsigned int salt)
{
	for (size_t k = 0; k < length_of(i); k++)
		CHECK_SAY(buffer[place_of(i) + k] == value(i, k, salt),
			  "request %d byte %zu is %#x", i, k, buffer[place_of(i) + k]);
}

/* Calls that write files, of which a WRITE by itself is one; -1: the kernel does not count. */
static long file_writes(void)
{
	char line[128];
	long calls = -1;
	FILE *f = fopen("/proc/self/io", "r");

	while (f && fgets(line, sizeof(line), f))
		(void)sscanf(line, "syscw: %ld", &calls);
	if (f)
		fclose(f);
	return calls;
}

static void write_list(struct endpoint *ep, unsigned int salt)
{
	struct list list = {.count = 0};
	long before, calls;

	for (int i = 0; i < MOST; i++) {
		fill(ep, i, salt);
		(void)list_add(&list, ep, IBV_WR_RDMA_WRITE, place_of(i), length_of(i),
			       place_of(i));
	}
	before = file_writes();
	list_post(&list, ep);
	list_expect(&list, ep);
	calls = file_writes() - before;
	if (before >= 0)
		CHECK_SAY(calls < MOST / 2, "%ld system calls for %d requests", calls, MOST);
}

/* Into a cleared buffer come the bytes that write_list() has sent; READs into different places. */
static void read_list(struct endpoint *ep, unsigned int salt)
{
	struct list list = {.count = 0};

	memset(ep->buffer, 0, SIZE);
	for (int i = 0; i < MOST; i++)
		(void)list_add(&list, ep, IBV_WR_RDMA_READ, place_of(i), length_of(i), place_of(i));
	list_post(&list, ep);
	list_expect(&list, ep);
	for (int i = 0; i < MOST; i++)
		check_filled(ep->buffer, i, salt);
}

/* Of several WRITEs to the same place the last one stays; the READ between them sees the one before it. */
static void in_order(struct endpoint *ep)
{
	struct list list = {.count = 0};

	for (int i = 0; i < 30; i++) {
		enum ibv_wr_opcode op = i % 10 == 9 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;

		ep->buffer[i * 8] = (uint8_t)(op == IBV_WR_RDMA_READ ? 0 : i + 1);
		(void)list_add(&list, ep, op, (size_t)i * 8, 8, SECOND);
	}
	list_post(&list, ep);
	list_expect(&list, ep);
	CHECK_EQ(ep->buffer[9 * 8], 9);
	CHECK_EQ(ep->buffer[19 * 8], 19);
	CHECK_EQ(ep->buffer[29 * 8], 29);
}

/*
 * Inline data, two elements, nothing at all, a long request: what a list cannot hold ends it, and
 * is executed alone.
 */
static void mixed(struct endpoint *ep)
{
	struct list list = {.count = 0};
	uint8_t back[64];

	memset(ep->buffer, 0x11, 64);
	for (int i = 0; i < 12; i++) {
		struct ibv_send_wr *wr =
			list_add(&list, ep, IBV_WR_RDMA_WRITE, 0, 8, SECOND + (size_t)i * 8);

		if (i == 3)
			wr->send_flags |= IBV_SEND_INLINE | IBV_SEND_FENCE;
		if (i == 5) {
			wr->sg_list[0].length = 3;
			wr->sg_list[1] = wr->sg_list[0];
			wr->sg_list[1].length = 5;
			wr->num_sge = 2;
		}
		if (i == 7)
			wr->num_sge = 0;
	}
	(void)list_add(&list, ep, IBV_WR_RDMA_WRITE, 0, 100000, 0);
	(void)list_add(&list, ep, IBV_WR_RDMA_WRITE, 8, 8, SECOND + 12 * 8);
	list_post(&list, ep);
	list_expect(&list, ep);
	CHECK_ZERO(ep_read(ep, 99, SECOND, 13 * 8, SECOND, IBV_SEND_SIGNALED));
	completion_expect(ep->resources->cq, 99, IBV_WC_SUCCESS, NULL);
	memset(back, 0x11, sizeof(back));
	CHECK(memcmp(ep->buffer + SECOND, back, 7 * 8) == 0);
	CHECK(memcmp(ep->buffer + SECOND + 64, back, 5 * 8) == 0);
}

static void wrong_key(struct endpoint *ep, int at)
{
	struct list list = {.count = 0};
	struct ibv_wc wc;

	for (int i = 0; i < 20; i++) {
		struct ibv_send_wr *wr =
			list_add(&list, ep, IBV_WR_RDMA_WRITE, 0, 8, SECOND + (size_t)i * 64);

		ep->buffer[0] = 0x77;
		if (i == at)
			wr->wr.rdma.rkey ^= 0x5500;
	}
	list_post(&list, ep);
	for (int i = 0; i < 20; i++) {
		completion_next(ep->resources->cq, &wc);
		CHECK_EQ(wc.wr_id, i);
		CHECK_EQ(wc.status, i < at    ? IBV_WC_SUCCESS
				    : i == at ? IBV_WC_REM_ACCESS_ERR
					      : IBV_WC_WR_FLUSH_ERR);
	}
}

static int target(int sock, void *unused)
{
	struct endpoint good, faulty;
	struct resources resources;

	(void)unused;
	promise("the target has what was written, and nothing more");
	resources_open(&resources, 256, false);
	ep_open_on(&good, &resources, NULL, NULL, SIZE);
	ep_open_on(&faulty, &resources, NULL, NULL, SIZE);
	ep_exchange(&good, sock);
	ep_exchange(&faulty, sock);
	message_meet(sock);
	/* Stopped, and continued. */
	message_meet(sock);
	for (int i = 0; i < 20; i++)
		CHECK_EQ(faulty.buffer[SECOND + i * 64], i < 11 ? 0x77 : 0);
	message_meet(sock);
	ep_close(&good);
	ep_close(&faulty);
	resources_close(&resources);
	return 0;
}

static void open_one(struct endpoint *ep, struct resources *resources, struct ep_config *config)
{
	resources_open(resources, 256, false);
	ep_open_on(ep, resources, config, NULL, SIZE);
}

int main(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct endpoint good, faulty;
	struct resources one, two;
	struct process process;

	watchdog(90);
	config.cap.max_send_wr = MOST;
	config.cap.max_send_sge = 2;
	config.cap.max_inline_data = 64;
	process_start(&process, target, NULL);
	promise("the two processes find each other");
	open_one(&good, &one, &config);
	open_one(&faulty, &two, &config);
	ep_exchange(&good, process.sock);
	ep_exchange(&faulty, process.sock);
	process_await_memory(&process);
	message_meet(process.sock);
	process_stop(&process);

	promise("lists finish while the target is stopped, with their own data each");
	for (unsigned int salt = 1; salt < 4; salt++) {
		write_list(&good, salt);
		read_list(&good, salt);
	}
	promise("the requests of a list are executed in order");
	in_order(&good);
	promise("a list of requests of all kinds");
	process_continue(&process);
	mixed(&good);
	promise("an entry with a wrong key fails at its turn");
	wrong_key(&faulty, 11);
	message_meet(process.sock);
	message_meet(process.sock);
	ep_close(&good);
	ep_close(&faulty);
	resources_close(&one);
	resources_close(&two);
	process_expect_success(&process, PROCESS_PATIENCE_MS);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promises about short READs of another process's memory, where a judgement of the target is kept from
 * one request to the next:
 *
 *   They bring the bytes that are there, of any length and at any place. Each is judged by its own key,
 *   range and right: a key that was read with is refused for a WRITE that it does not allow, and the
 *   other way round.
 *   A READ behind a request that the target itself executes sees what that has written, and what a
 *   READ sees is not older than what the one before it saw.
 *   After ibv_dereg_mr, ibv_rereg_mr, or ibv_modify_qp to ERR or RESET returned, no READ brings what the
 *   target stores then, although the peer goes on reading as fast as it can.
 *
 * usage: short_reads private|mapped [ROUNDS [SEED]]
 *   private  memory of the process
 *   mapped   memory of ibv_alloc_buf(3), which the reader has mapped
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

enum {
	SIZE = 65536,
	HALF = SIZE / 2,
	LONGEST = HALF / 2,
	ORDERED = 3000,
	LIST = 8,
	SECRET = 0xee,
	LATEST_US = 3000
};

enum way { DEREG, REREG_ACCESS, TO_ERROR, TO_RESET, WAYS };
static const char *const way_names[WAYS] = {"ibv_dereg_mr", "ibv_rereg_mr", "ibv_modify_qp to ERR",
					    "ibv_modify_qp to RESET"};

static bool mapped;

/* What the reader tells. */
struct course {
	uint64_t reads;   /* lists that were read to their end */
	uint64_t ordered; /* 1: not_older() is over */
};
static struct course *course;

/* Of the first half: one that may be read, and one that may be written. The second half has none. */
struct keys {
	uint32_t reads, writes;
};

static uint8_t value(size_t at)
{
	return (uint8_t)(at * 7 + at / 251);
}

static int run(struct endpoint *ep, enum ibv_wr_opcode opcode, uint64_t at, uint32_t length,
	       uint32_t rkey)
{
	struct ibv_sge sge = ep_sge(ep, 0, length);
	struct ibv_send_wr wr = ep_wr(opcode, 1, &sge, 1);

	ep_target(&wr, ep->remote.addr + at, rkey);
	return ep_run(ep, &wr);
}

/* When both are done with the connection, which may have failed. */
static void relink(struct endpoint *ep, int sock)
{
	message_meet(sock);
	CHECK_ZERO(ep_move(ep, IBV_QPS_RESET));
	ep_init_qp(ep->qp, &ep->config);
	ep_exchange(ep, sock);
}

static void read_all_lengths(struct endpoint *ep, uint32_t rkey)
{
	promise("short READs bring the bytes of their own place");
	for (uint32_t length = 1; length <= LONGEST; length += 1 + length / 64) {
		uint64_t at = length * 97 % (HALF - LONGEST);

		memset(ep->buffer, 0, LONGEST + 1);
		CHECK_EQ(run(ep, IBV_WR_RDMA_READ, at, length, rkey), IBV_WC_SUCCESS);
		for (size_t i = 0; i < length; i++)
			CHECK_EQ(ep->buffer[i], value(at + i));
		CHECK_EQ(ep->buffer[length], 0);
	}
}

static const struct {
	enum ibv_wr_opcode opcode;
	bool by_writes;
	uint64_t at;
} refused[] = {
	{IBV_WR_RDMA_WRITE, false, 0},       {IBV_WR_RDMA_READ, true, 0},
	{IBV_WR_RDMA_READ, false, HALF - 8}, {IBV_WR_RDMA_READ, false, HALF},
	{IBV_WR_RDMA_WRITE, true, HALF - 8},
};
enum { REFUSED = sizeof(refused) / sizeof(refused[0]) };

/* What each key refuses, after much that it has allowed. */
static void refusals(struct endpoint *ep, int sock, const struct keys *keys)
{
	promise("each request is judged by its own key, range and right");
	for (size_t i = 0; i < REFUSED; i++) {
		uint32_t rkey = refused[i].by_writes ? keys->writes : keys->reads;
		enum ibv_wr_opcode allowed = refused[i].by_writes ? IBV_WR_RDMA_WRITE
								  : IBV_WR_RDMA_READ;

		for (uint64_t k = 0; k < 20; k++) {
			for (size_t b = 0; b < 8; b++)
				ep->buffer[b] = value(k * 8 + b);
			CHECK_EQ(run(ep, allowed, k * 8, 8, rkey), IBV_WC_SUCCESS);
		}
		memset(ep->buffer, 0xff, 16);
		CHECK_EQ(run(ep, refused[i].opcode, refused[i].at, 16, rkey),
			 IBV_WC_REM_ACCESS_ERR);
		if (refused[i].opcode == IBV_WR_RDMA_READ)
			CHECK(ep_is_filled(ep, 0, 0xff, 16));
		relink(ep, sock);
	}
}

/*
 * An immediate makes the target execute the WRITE. The READ of the same word is posted while it is under
 * way.
 */
static void behind_others(struct endpoint *ep, const struct keys *keys)
{
	promise("a READ sees what a request before it has written");
	for (uint64_t i = 1; i <= ORDERED; i++) {
		struct ibv_sge from = ep_sge(ep, 0, 8), to = ep_sge(ep, 64, 8);
		struct ibv_send_wr wr = ep_wr(IBV_WR_RDMA_WRITE_WITH_IMM, 2 * i, &from, 1);
		uint64_t seen;

		memcpy(ep->buffer, &i, sizeof(i));
		ep_target(&wr, ep->remote.addr, keys->writes);
		CHECK_ZERO(ep_post_send(ep, &wr));
		wr = ep_wr(IBV_WR_RDMA_READ, 2 * i + 1, &to, 1);
		ep_target(&wr, ep->remote.addr, keys->reads);
		CHECK_ZERO(ep_post_send(ep, &wr));
		completion_expect(ep->resources->cq, 2 * i, IBV_WC_SUCCESS, NULL);
		completion_expect(ep->resources->cq, 2 * i + 1, IBV_WC_SUCCESS, NULL);
		memcpy(&seen, ep->buffer + 64, sizeof(seen));
		CHECK_EQ(seen, i);
	}
}

/* The target counts two words up, the second before the first: a list reads them in the other order. */
static void not_older(struct endpoint *ep, uint32_t rkey)
{
	promise("what a READ sees is not older than what the one before it saw");
	for (int i = 0; i < ORDERED; i++) {
		struct ibv_sge sge[2] = {ep_sge(ep, 0, 8), ep_sge(ep, 8, 8)};
		struct ibv_send_wr wr[2], *bad;
		uint64_t first, second;

		for (unsigned int k = 0; k < 2; k++) {
			wr[k] = ep_wr(IBV_WR_RDMA_READ, k, &sge[k], 1);
			ep_target(&wr[k], ep->remote.addr + 1024u * k, rkey);
		}
		wr[0].next = &wr[1];
		CHECK_ZERO(ibv_post_send(ep->qp, wr, &bad));
		completion_expect(ep->resources->cq, 0, IBV_WC_SUCCESS, NULL);
		completion_expect(ep->resources->cq, 1, IBV_WC_SUCCESS, NULL);
		memcpy(&first, ep->buffer, sizeof(first));
		memcpy(&second, ep->buffer + 8, sizeof(second));
		CHECK_SAY(second >= first, "%llu, and then %llu", (unsigned long long)first,
			  (unsigned long long)second);
	}
}

/* Short READs, one by one or in lists, until one fails. None of them may bring the secret. */
static void read_until_error(struct endpoint *ep, uint32_t rkey, int count, uint64_t *seed)
{
	enum ibv_wc_status status = IBV_WC_SUCCESS;

	while (status == IBV_WC_SUCCESS) {
		struct ibv_send_wr wr[LIST], *bad;
		struct ibv_sge sge[LIST];

		for (int i = 0; i < count; i++) {
			uint32_t length = 1 + (uint32_t)(random_next(seed) % 64);

			sge[i] = ep_sge(ep, (size_t)i * 64, length);
			wr[i] = ep_wr(IBV_WR_RDMA_READ, (uint64_t)i, &sge[i], 1);
			ep_target(&wr[i], ep->remote.addr + random_next(seed) % (SIZE - 64), rkey);
			wr[i].next = i + 1 < count ? &wr[i + 1] : NULL;
		}
		CHECK_ZERO(ibv_post_send(ep->qp, wr, &bad));
		for (int i = 0; i < count; i++) {
			struct ibv_wc wc = {0};

			completion_next(ep->resources->cq, &wc);
			CHECK_EQ(wc.wr_id, i);
			for (size_t k = 0; k < sge[i].length && wc.status == IBV_WC_SUCCESS; k++)
				CHECK_SAY(ep->buffer[(size_t)i * 64 + k] != SECRET,
					  "a READ brought what was stored after the revocation");
			if (status == IBV_WC_SUCCESS)
				status = wc.status;
		}
		__atomic_fetch_add(&course->reads, 1, __ATOMIC_RELEASE);
	}
}

static int reader(int sock, void *argument)
{
	uint64_t rounds = *(uint64_t *)argument, seed = 77;
	struct resources resources;
	struct endpoint ep;
	struct keys keys;

	resources_open(&resources, 64, false);
	ep_open_on(&ep, &resources, NULL, NULL, SIZE);
	ep_exchange(&ep, sock);
	message_receive(sock, &keys, sizeof(keys));
	read_all_lengths(&ep, keys.reads);
	refusals(&ep, sock, &keys);
	message_meet(sock);
	not_older(&ep, keys.reads);
	__atomic_store_n(&course->ordered, 1, __ATOMIC_RELEASE);
	message_meet(sock);
	behind_others(&ep, &keys);
	message_meet(sock);
	ep.config.timeout = 12; /* nothing answers after a revocation */
	ep.config.retry_cnt = 1;
	for (uint64_t i = 0; i < rounds; i++) {
		relink(&ep, sock);
		message_receive(sock, &keys, sizeof(keys));
		promise("no READ brings what was stored after the revocation");
		read_until_error(&ep, keys.reads, i / WAYS % 2 ? LIST : 1, &seed);
		message_meet(sock);
	}
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

static struct ibv_mr *region(struct endpoint *ep, size_t length, int access)
{
	struct ibv_mr *mr =
		ibv_reg_mr(ep->resources->pd, ep->buffer, length, IBV_ACCESS_LOCAL_WRITE | access);

	CHECK(mr);
	return mr;
}

static void count_up(struct endpoint *ep, int sock)
{
	volatile uint64_t *first = (uint64_t *)(void *)ep->buffer;
	volatile uint64_t *second = (uint64_t *)(void *)(ep->buffer + 1024);
	unsigned int turns = 0;

	*first = *second = 0;
	message_meet(sock);
	while (!__atomic_load_n(&course->ordered, __ATOMIC_ACQUIRE)) {
		*second = *second + 1;
		__atomic_thread_fence(__ATOMIC_RELEASE);
		*first = *second;
		if (*first % 1000 == 0)
			spin_once(&turns);
	}
}

static void take_immediates(struct endpoint *ep)
{
	for (uint64_t i = 0; i < 32; i++)
		CHECK_ZERO(ep_recv(ep, i, HALF, 8));
	for (uint64_t i = 1; i <= ORDERED; i++) {
		completion_expect(ep->resources->cq, (i - 1) % 32, IBV_WC_SUCCESS, NULL);
		CHECK_ZERO(ep_recv(ep, (i - 1) % 32, HALF, 8));
	}
}

static void revoke(struct endpoint *ep, enum way way, struct ibv_mr **mr)
{
	switch (way) {
	case DEREG:
		CHECK_ZERO(ibv_dereg_mr(*mr));
		*mr = NULL;
		break;
	case REREG_ACCESS:
		CHECK_ZERO(ibv_rereg_mr(*mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
					IBV_ACCESS_LOCAL_WRITE));
		break;
	default:
		qp_move(ep->qp, way == TO_ERROR ? IBV_QPS_ERR : IBV_QPS_RESET);
	}
}

/* The test proves something only while the reader is reading. */
static void reads_await(uint64_t more)
{
	uint64_t until = __atomic_load_n(&course->reads, __ATOMIC_ACQUIRE) + more;
	unsigned int turns = 0;

	while (__atomic_load_n(&course->reads, __ATOMIC_ACQUIRE) < until)
		spin_once(&turns);
}

static void play(struct endpoint *ep, int sock, enum way way, uint64_t wait_us)
{
	struct ibv_mr *mr = region(ep, SIZE, IBV_ACCESS_REMOTE_READ);
	struct keys keys = {.reads = mr->rkey};
	unsigned int turns = 0;
	uint64_t until;

	promise(way_names[way]);
	memset(ep->buffer, 0x11, SIZE);
	relink(ep, sock);
	message_send(sock, &keys, sizeof(keys));
	reads_await(3);
	for (until = now_us() + wait_us; now_us() < until;)
		spin_once(&turns);
	revoke(ep, way, &mr);
	memset(ep->buffer, SECRET, SIZE);
	message_meet(sock);
	if (mr)
		CHECK_ZERO(ibv_dereg_mr(mr));
}

static void target_open(struct endpoint *ep, struct resources *resources, struct ibv_buf **buf)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	config.cap.max_recv_wr = 32;
	resources_open(resources, 64, false);
	ep_open_on(ep, resources, &config, mapped ? ibv_alloc_buf(resources->pd, SIZE, buf) : NULL,
		   SIZE);
}

/* The target's part of what precedes the revocations. */
static void serve(struct endpoint *ep, int sock)
{
	struct ibv_mr *to_read = region(ep, HALF, IBV_ACCESS_REMOTE_READ);
	struct ibv_mr *to_write = region(ep, HALF, IBV_ACCESS_REMOTE_WRITE);
	struct keys keys = {to_read->rkey, to_write->rkey};

	for (size_t at = 0; at < SIZE; at++)
		ep->buffer[at] = value(at);
	ep_exchange(ep, sock);
	message_send(sock, &keys, sizeof(keys));
	for (size_t i = 0; i < REFUSED; i++)
		relink(ep, sock);
	count_up(ep, sock);
	message_meet(sock);
	take_immediates(ep);
	message_meet(sock);
	CHECK_ZERO(ibv_dereg_mr(to_read));
	CHECK_ZERO(ibv_dereg_mr(to_write));
}

int main(int argc, char **argv)
{
	uint64_t rounds = argc > 2 ? strtoull(argv[2], NULL, 0) : 200;
	uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : (now_us() | 1);
	struct resources resources;
	struct ibv_buf *buf = NULL;
	struct process process;
	struct endpoint ep;

	printf("seed %llu\n", (unsigned long long)seed);
	watchdog(150);
	mapped = argc > 1 && strcmp(argv[1], "mapped") == 0;
	course = memory_shared(sizeof(*course));
	process_start(&process, reader, &rounds);
	target_open(&ep, &resources, &buf);
	serve(&ep, process.sock);
	for (uint64_t i = 0; i < rounds; i++)
		play(&ep, process.sock, (enum way)(i % WAYS), random_next(&seed) % LATEST_US);
	ep_close(&ep);
	if (buf)
		ibv_free_buf(buf);
	resources_close(&resources);
	process_expect_success(&process, PROCESS_PATIENCE_MS);
	printf("%llu revocations, %llu times read\n", (unsigned long long)rounds,
	       (unsigned long long)course->reads);
	return 0;
}

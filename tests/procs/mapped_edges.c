/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promises about small WRITEs into memory of another process that is mapped here (ibv_alloc_buf(3)),
 * where a judgement of the target is kept from one request to the next: each request is judged by its
 * own key, range and connection.
 *
 * A WRITE whose end lies behind the region fails and changes no byte, after many that lay in it; so
 * does one with the key of another region. Words of a WRITE of several words, inline ones and lists
 * arrive as they were posted. A queue pair that is connected anew, with other keys for the same
 * addresses, writes there only what its new peer allows.
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"
#include "support/words.h"

#include <string.h>

enum { SIZE = 65536, HALF = SIZE / 2, LIST = 32, MANY = 100, ROUNDS = 5 };

struct keys {
	uint32_t first, second; /* of the first and the second half of the buffer */
};

static struct ep_config config_of(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	config.cap.max_inline_data = 64;
	config.timeout = 10;
	config.retry_cnt = 1;
	return config;
}

static struct ibv_mr *region(struct endpoint *ep, size_t at)
{
	struct ibv_mr *mr = ibv_reg_mr(ep->resources->pd, ep->buffer + at, HALF, EP_ACCESS);

	CHECK(mr);
	return mr;
}

static int target(int sock, void *unused)
{
	struct ep_config config = config_of();
	struct resources resources;
	struct ibv_buf *buf;
	uint8_t *memory;

	(void)unused;
	promise("each WRITE is judged by its own key and range");
	resources_open(&resources, 64, false);
	memory = ibv_alloc_buf(resources.pd, SIZE, &buf);
	CHECK(memory);
	for (int i = 0; i < ROUNDS; i++) {
		struct endpoint ep;

		memset(memory, 0, SIZE);
		ep_open_on(&ep, &resources, &config, memory, SIZE);
		struct ibv_mr *first = region(&ep, 0), *second = region(&ep, HALF);
		struct keys keys = {first->rkey, second->rkey};

		ep_exchange(&ep, sock);
		message_send(sock, &keys, sizeof(keys));
		message_meet(sock); /* the first half is written */
		words_check(memory, HALF, (uint32_t)i);
		message_meet(sock); /* what must fail has failed */
		words_check(memory, HALF, (uint32_t)i);
		for (size_t at = HALF; at < SIZE; at++)
			CHECK_EQ(memory[at], 0);
		CHECK_ZERO(ibv_dereg_mr(first));
		CHECK_ZERO(ibv_dereg_mr(second));
		ep_close(&ep);
		message_meet(sock);
	}
	ibv_free_buf(buf);
	resources_close(&resources);
	return 0;
}

static void post(struct endpoint *ep, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	CHECK_ZERO(ibv_post_send(ep->qp, wr, &bad));
}

static struct ibv_send_wr write_of(struct endpoint *ep, struct ibv_sge *sge, size_t at,
				   uint32_t length, uint32_t rkey, uint64_t id)
{
	*sge = ep_sge(ep, at, length);
	struct ibv_send_wr wr = ep_wr(IBV_WR_RDMA_WRITE, id, sge, 1);

	ep_target(&wr, ep->remote.addr + at, rkey);
	return wr;
}

/* The first half: by words one by one, inline, in lists, and by longer WRITEs. */
static void write_half(struct endpoint *ep, uint32_t rkey)
{
	struct ibv_send_wr wr[LIST];
	struct ibv_sge sge[LIST];
	uint64_t id = 0;
	size_t at = 0;

	for (; at < (size_t)MANY * 8; at += 8) {
		wr[0] = write_of(ep, &sge[0], at, 8, rkey, ++id);
		wr[0].send_flags |= at % 16 ? IBV_SEND_INLINE : 0;
		post(ep, wr);
		completion_expect(ep->resources->cq, id, IBV_WC_SUCCESS, NULL);
	}
	while (at < HALF) {
		int n = 0;

		for (; n < LIST && at < HALF; n++) {
			uint32_t length = 8u << (n % 6);

			if (length > HALF - at)
				length = 8;
			wr[n] = write_of(ep, &sge[n], at, length, rkey, ++id);
			wr[n].next = NULL;
			if (n)
				wr[n - 1].next = &wr[n];
			at += length;
		}
		post(ep, wr);
		for (int i = 0; i < n; i++)
			completion_expect(ep->resources->cq, id - (uint64_t)(n - 1 - i),
					  IBV_WC_SUCCESS, NULL);
	}
}

static int initiator(int sock, void *unused)
{
	struct ep_config config = config_of();
	struct resources resources;
	struct endpoint ep;

	(void)unused;
	promise("WRITEs outside of a region fail, whatever was written before");
	resources_open(&resources, 64, false);
	ep_open_on(&ep, &resources, &config, NULL, SIZE);
	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_send_wr wr[2];
		struct ibv_sge sge[2];
		struct keys keys;

		if (i) {
			CHECK_ZERO(ep_move(&ep, IBV_QPS_RESET));
			ep_init_qp(ep.qp, &config);
		}
		words_fill(ep.buffer, SIZE, (uint32_t)i);
		ep_exchange(&ep, sock);
		message_receive(sock, &keys, sizeof(keys));
		write_half(&ep, keys.first);
		message_meet(sock);
		/*
		 * Words behind the end; the other half's key for this one; in a list behind one that
		 * is right.
		 */
		size_t wrong = i % 3 == 0 ? HALF - 8 : i % 3 == 1 ? HALF : 0;

		wr[0] = write_of(&ep, &sge[0], 0, 8, keys.first, 1);
		wr[1] = write_of(&ep, &sge[1], wrong, 16, i % 3 == 2 ? keys.second : keys.first, 2);
		wr[0].next = &wr[1];
		wr[1].next = NULL;
		post(&ep, wr);
		completion_expect(resources.cq, 1, IBV_WC_SUCCESS, NULL);
		completion_expect(resources.cq, 2, IBV_WC_REM_ACCESS_ERR, NULL);
		message_meet(sock);
		message_meet(sock);
	}
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

int main(void)
{
	struct process a, b;

	watchdog(60);
	process_start_pair(&a, initiator, &b, target, NULL);
	process_expect_success(&a, PROCESS_PATIENCE_MS);
	process_expect_success(&b, PROCESS_PATIENCE_MS);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: rings that are full both ways, small receive queues and RNR neither
 * deadlock nor lose nor reorder anything.
 *
 * Two processes, many queue pairs between them on one completion queue each.
 * Both first fill all send queues without polling (far more than a ring holds),
 * then go on both ways. Receives are few and posted late, so that RNR is common.
 * Every message tells its number and length; each pair must see its own in order.
 *
 * usage: ring_pressure [MESSAGES_PER_PAIR]
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 48, WINDOW = 24, RECEIVES = 4, LARGEST = 8192 };
/* Send slots first, receive slots behind them. */
enum { SEND_AT = 0, RECEIVE_AT = WINDOW * LARGEST, SIZE = (WINDOW + RECEIVES) * LARGEST };
enum { SEND_MARK = 1 << 30 };

struct pair {
	struct endpoint ep;
	uint64_t posted, completed, received;
	/* Slots of receives used up and not yet posted again. */
	int late;
	uint64_t late_slot[RECEIVES];
};

static uint64_t messages;

static uint32_t size_of(uint64_t number, int pair)
{
	uint64_t mixed = (number * 2654435761u + (uint64_t)pair * 40503u) >> 4;

	/* Three in four are small. */
	return mixed & 3 ? 16 + mixed / 4 % 200 : 16 + mixed / 4 % (LARGEST - 16);
}

static unsigned char byte_of(uint64_t number, int pair)
{
	return (unsigned char)(number * 3 + (uint64_t)pair);
}

static void send_next(struct pair *pair, int index)
{
	size_t at = SEND_AT + pair->posted % WINDOW * LARGEST;
	uint32_t size = size_of(pair->posted, index);

	memset(pair->ep.buffer + at, byte_of(pair->posted, index), size);
	memcpy(pair->ep.buffer + at, &pair->posted, sizeof(pair->posted));
	CHECK_ZERO(ep_send(&pair->ep, SEND_MARK | (uint64_t)index, at, size, IBV_SEND_SIGNALED));
	pair->posted++;
}

static void check_message(struct pair *pair, int index, uint64_t slot, uint32_t length)
{
	const unsigned char *at = pair->ep.buffer + RECEIVE_AT + slot * LARGEST;
	uint64_t number;
	uint32_t i;

	memcpy(&number, at, sizeof(number));
	CHECK_SAY(number == pair->received, "pair %d: message %llu came as number %llu", index,
		  (unsigned long long)number, (unsigned long long)pair->received);
	CHECK_EQ(length, size_of(number, index));
	for (i = sizeof(number); i < length; i++)
		CHECK_SAY(at[i] == byte_of(number, index), "pair %d: message %llu, byte %u is %u",
			  index, (unsigned long long)number, i, at[i]);
	pair->received++;
}

static void post_slot(struct pair *pair, int index, uint64_t slot)
{
	CHECK_ZERO(ep_recv(&pair->ep, (uint64_t)index | slot << 16, RECEIVE_AT + slot * LARGEST,
			   LARGEST));
}

/* Posts again only when all but one are used up: a queue that is empty half of the time. */
static void repost(struct pair *pair, int index, uint64_t slot)
{
	pair->late_slot[pair->late++] = slot;
	if (pair->late < RECEIVES - 1)
		return;
	while (pair->late)
		post_slot(pair, index, pair->late_slot[--pair->late]);
}

static void take(struct pair *pairs, const struct ibv_wc *wc)
{
	int index = (int)(wc->wr_id & 0xffff);
	struct pair *pair = &pairs[index];

	if (wc->status != IBV_WC_SUCCESS) {
		completion_print(wc);
		check_failed(__FILE__, __LINE__, "pair %d failed", index);
	}
	if (wc->wr_id & SEND_MARK) {
		pair->completed++;
		return;
	}
	check_message(pair, index, wc->wr_id >> 16, wc->byte_len);
	repost(pair, index, wc->wr_id >> 16);
}

static bool finished(const struct pair *pairs)
{
	int i;

	for (i = 0; i < PAIRS; i++)
		if (pairs[i].completed < messages || pairs[i].received < messages)
			return false;
	return true;
}

static void exchange_all(struct pair *pairs, struct ibv_cq *cq)
{
	struct ibv_wc wc = {0};
	int i;

	do {
		for (i = 0; i < PAIRS; i++)
			while (pairs[i].posted < messages &&
			       pairs[i].posted - pairs[i].completed < WINDOW)
				send_next(&pairs[i], i);
		completion_next(cq, &wc);
		take(pairs, &wc);
		while (ibv_poll_cq(cq, 1, &wc) == 1)
			take(pairs, &wc);
	} while (!finished(pairs));
}

static int run(int sock, void *unused)
{
	static struct pair pairs[PAIRS];
	struct ep_config config;
	struct resources resources;
	uint64_t slot;
	int i;

	(void)unused;
	promise("full rings and RNR neither deadlock, lose nor reorder");
	resources_open(&resources, PAIRS * (WINDOW + RECEIVES + 4), false);
	config = ep_defaults(IBV_QPT_RC);
	config.cap.max_recv_wr = RECEIVES;
	for (i = 0; i < PAIRS; i++) {
		ep_open_on(&pairs[i].ep, &resources, &config, NULL, SIZE);
		for (slot = 0; slot < RECEIVES; slot++)
			post_slot(&pairs[i], i, slot);
		ep_exchange(&pairs[i].ep, sock);
	}
	exchange_all(pairs, resources.cq);
	message_meet(sock);
	for (i = 0; i < PAIRS; i++)
		ep_close(&pairs[i].ep);
	resources_close(&resources);
	return 0;
}

int main(int argc, char **argv)
{
	struct process a, b;

	messages = argc > 1 ? strtoull(argv[1], NULL, 0) : 400;
	watchdog(120);
	process_start_pair(&a, run, &b, run, NULL);
	process_expect_success(&a, 110000);
	process_expect_success(&b, PROCESS_PATIENCE_MS);
	printf("%llu messages each way\n", (unsigned long long)messages * PAIRS);
	return 0;
}

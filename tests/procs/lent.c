/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promises about long SENDs between two processes, whose payload the receiver fetches and the sender
 * stores, each a part.
 *
 * whole: messages of many lengths arrive whole into receives of one and of several elements, each
 * before its completion; no byte of a receive changes after that. They also arrive while the sender
 * is stopped.
 * flushed: what a program writes to the memory of a request that was flushed is in no message that
 * is received.
 * failed: no byte of a receive changes after it was flushed.
 *
 * usage: lent whole|flushed|failed ROUNDS
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"
#include "support/random.h"
#include "support/words.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum {
	PLACE = 1 << 20,
	PLACES = 8,
	SIZE = PLACE * PLACES,
	WINDOW = 4,
	LATEST = 99,
	QUIET_MS = 30,
	CONTACT_MS = 200,
	HALF = 262144,
};

static unsigned int rounds;

static const uint32_t lengths[] = {32768,  65536,  65537,  36864, 100001, 262144,
				   262145, 300001, 524288, 40960, 917503, 8};

static uint32_t length_of(unsigned int i)
{
	return lengths[i % (sizeof(lengths) / sizeof(lengths[0]))];
}

/* Into the place, at an odd address now and then. */
static size_t place_of(unsigned int i)
{
	return (size_t)(i % PLACES) * PLACE + (i % 3 ? 0 : i % 64);
}

/* In one element, or in three of odd lengths. */
static void receive(struct endpoint *ep, unsigned int i)
{
	uint32_t length = length_of(i), cut = i % 5 == 4 ? length / 3 : 0;
	struct ibv_sge sge[3] = {
		ep_sge(ep, place_of(i), cut ? cut : length),
		ep_sge(ep, place_of(i) + cut, cut + 1),
		ep_sge(ep, place_of(i) + 2 * (size_t)cut + 1, length - 2 * cut - 1),
	};

	CHECK_ZERO(ep_post_recv(ep, i, sge, cut ? 3 : 1));
}

static struct ep_config config_of(void)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);

	config.cap.max_recv_sge = 3;
	/* A queue pair that has failed is asked for some milliseconds. */
	config.timeout = 10;
	config.retry_cnt = 3;
	return config;
}

static void open_and_exchange(struct endpoint *ep, struct resources *resources, int sock)
{
	struct ep_config config = config_of();

	ep_open_on(ep, resources, &config, NULL, SIZE);
	ep_exchange(ep, sock);
}

static void send_next(struct endpoint *ep, unsigned int i)
{
	words_fill(ep->buffer + place_of(i), length_of(i), i);
	CHECK_ZERO(ep_send(ep, i, place_of(i), length_of(i), IBV_SEND_SIGNALED));
}

/*
 * The sender polls seldom, at moments that the receiver does not expect: it finds offers early, late,
 * and when they were withdrawn.
 */
static void polled_seldom(struct endpoint *ep, unsigned int wr_id, uint64_t *seed)
{
	struct ibv_wc wc;
	int n;

	do {
		volatile unsigned int spins = (unsigned int)(random_next(seed) % 8192);

		while (spins)
			spins = spins - 1;
		n = ibv_poll_cq(ep->resources->cq, 1, &wc);
	} while (!n);
	CHECK_EQ(n, 1);
	CHECK_EQ(wc.wr_id, wr_id);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
}

/*
 * The messages leave the send queue, also where the progress thread has the engine for a moment: a message
 * that is still there cannot reach anybody once its process is stopped.
 */
static void polled_often(struct endpoint *ep, unsigned int *done)
{
	struct ibv_wc wc;

	for (unsigned int i = 0; i < 256; i++) {
		if (ibv_poll_cq(ep->resources->cq, 1, &wc) == 1) {
			CHECK_EQ(wc.wr_id, *done);
			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
			(*done)++;
		}
		sched_yield();
	}
}

static int whole_sender(int sock, void *unused)
{
	struct resources resources;
	struct endpoint ep;
	unsigned int done = 0;
	uint64_t seed = 815;

	(void)unused;
	promise("long messages are sent");
	resources_open(&resources, 64, false);
	open_and_exchange(&ep, &resources, sock);
	sleep_ms(CONTACT_MS);
	for (unsigned int i = 0; i < rounds; i++) {
		if (i >= WINDOW)
			polled_seldom(&ep, done++, &seed);
		send_next(&ep, i);
	}
	while (done < rounds)
		polled_seldom(&ep, done++, &seed);
	/*
	 * The receives are posted: a message that came before its receive is sent a second time
	 * (RNR NAK), and a stopped process sends nothing.
	 */
	message_meet(sock);
	for (unsigned int i = rounds; i < rounds + WINDOW; i++)
		send_next(&ep, i);
	polled_often(&ep, &done);
	message_meet(sock); /* stopped about here */
	while (done < rounds + WINDOW)
		completion_expect(resources.cq, done++, IBV_WC_SUCCESS, NULL);
	message_meet(sock);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

/* The program writes behind the completion, and looks at it when the place is about to be used again. */
static void take_next(struct endpoint *ep, unsigned int i)
{
	completion_expect(ep->resources->cq, i, IBV_WC_SUCCESS, NULL);
	words_check(ep->buffer + place_of(i), length_of(i), i);
	words_fill(ep->buffer + place_of(i), length_of(i), i + LATEST);
}

static void whole(void)
{
	struct ep_config config = config_of();
	struct resources resources;
	struct process sender;
	struct endpoint ep;

	promise("long messages arrive whole, and nothing changes behind their completion");
	process_start(&sender, whole_sender, NULL);
	resources_open(&resources, 64, false);
	ep_open_on(&ep, &resources, &config, NULL, SIZE);
	for (unsigned int i = 0; i < WINDOW; i++)
		receive(&ep, i);
	ep_exchange(&ep, sender.sock);
	for (unsigned int i = 0; i < rounds; i++) {
		take_next(&ep, i);
		if (i >= WINDOW)
			words_check(ep.buffer + place_of(i - WINDOW), length_of(i - WINDOW),
				    i - WINDOW + LATEST);
		receive(&ep, i + WINDOW);
	}
	message_meet(sender.sock);
	message_meet(sender.sock);
	process_stop(&sender);
	for (unsigned int i = rounds; i < rounds + WINDOW; i++)
		take_next(&ep, i);
	process_continue(&sender);
	message_meet(sender.sock);
	process_expect_success(&sender, PROCESS_PATIENCE_MS);
	ep_close(&ep);
	resources_close(&resources);
}

static int flushed_receiver(int sock, void *unused)
{
	struct resources resources;

	(void)unused;
	promise("what is written behind a flush is in no message");
	resources_open(&resources, 64, false);
	for (unsigned int i = 0; i < rounds; i++) {
		struct endpoint ep;
		struct ibv_wc wc;

		open_and_exchange(&ep, &resources, sock);
		sleep_ms(CONTACT_MS);
		CHECK_ZERO(ep_recv(&ep, i, 0, HALF));
		message_meet(sock); /* stopped about here */
		if (completion_try(resources.cq, &wc, QUIET_MS) && wc.status == IBV_WC_SUCCESS)
			words_check(ep.buffer, HALF, i);
		message_meet(sock);
		ep_close(&ep);
	}
	resources_close(&resources);
	return 0;
}

static void flushed(void)
{
	struct process receiver;
	struct resources resources;

	promise("a flushed request leaves the program its memory");
	process_start(&receiver, flushed_receiver, NULL);
	resources_open(&resources, 64, false);
	for (unsigned int i = 0; i < rounds; i++) {
		struct endpoint ep;

		open_and_exchange(&ep, &resources, receiver.sock);
		sleep_ms(CONTACT_MS);
		words_fill(ep.buffer, HALF, i);
		message_meet(receiver.sock);
		process_stop(&receiver);
		CHECK_ZERO(ep_send(&ep, i, 0, HALF, IBV_SEND_SIGNALED));
		if (i % 2) { /* it may as well be done before */
			CHECK_ZERO(ep_move(&ep, IBV_QPS_ERR));
			completion_expect(resources.cq, i, IBV_WC_WR_FLUSH_ERR, NULL);
			memset(ep.buffer, 0xff, HALF);
		}
		process_continue(&receiver);
		message_meet(receiver.sock);
		ep_close(&ep);
	}
	resources_close(&resources);
	process_expect_success(&receiver, PROCESS_PATIENCE_MS);
}

static int failed_sender(int sock, void *unused)
{
	struct resources resources;

	(void)unused;
	promise("messages are sent to a queue pair that fails");
	resources_open(&resources, 64, false);
	for (unsigned int i = 0; i < rounds; i++) {
		unsigned int open = 2 * WINDOW;
		struct endpoint ep;
		struct ibv_wc wc;

		open_and_exchange(&ep, &resources, sock);
		memset(ep.buffer, 0x11, HALF);
		for (unsigned int k = 0; k < open; k++)
			CHECK_ZERO(ep_send(&ep, k, 0, HALF, IBV_SEND_SIGNALED));
		for (; open; open--)
			completion_next(resources.cq, &wc);
		message_meet(sock);
		ep_close(&ep);
	}
	resources_close(&resources);
	return 0;
}

static void failed_round(struct endpoint *ep, int sock, uint64_t *seed)
{
	unsigned int took = 0, spins = (unsigned int)(random_next(seed) % 60000);
	struct ibv_wc wc;

	for (unsigned int k = 0; k < WINDOW; k++)
		CHECK_ZERO(ep_recv(ep, k, (size_t)k * PLACE, HALF));
	ep_exchange(ep, sock);
	while (spins--) {
		if (ibv_poll_cq(ep->resources->cq, 1, &wc) == 1 && ++took == WINDOW - 1)
			break;
	}
	CHECK_ZERO(ep_move(ep, IBV_QPS_ERR));
	for (; took < WINDOW; took++)
		completion_next(ep->resources->cq, &wc);
	for (unsigned int k = 0; k < WINDOW; k++)
		memset(ep->buffer + (size_t)k * PLACE, 0xee, HALF);
	message_meet(sock);
	for (unsigned int k = 0; k < WINDOW; k++)
		CHECK(ep_is_filled(ep, (size_t)k * PLACE, 0xee, HALF));
}

static void failed(void)
{
	struct ep_config config = config_of();
	struct process sender;
	struct resources resources;
	uint64_t seed = 4711;

	promise("nothing comes behind a flushed receive");
	process_start(&sender, failed_sender, NULL);
	resources_open(&resources, 64, false);
	for (unsigned int i = 0; i < rounds; i++) {
		struct endpoint ep;

		ep_open_on(&ep, &resources, &config, NULL, SIZE);
		failed_round(&ep, sender.sock, &seed);
		ep_close(&ep);
	}
	resources_close(&resources);
	process_expect_success(&sender, PROCESS_PATIENCE_MS);
}

int main(int argc, char **argv)
{
	CHECK(argc == 3);
	rounds = (unsigned int)strtoul(argv[2], NULL, 0);
	watchdog(150);
	if (!strcmp(argv[1], "whole"))
		whole();
	else if (!strcmp(argv[1], "flushed"))
		flushed();
	else
		failed();
	return 0;
}

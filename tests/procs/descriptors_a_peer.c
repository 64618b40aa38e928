/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a peer costs a process two descriptors at most, and a few peers a third, by which their
 * end is noticed; whichever side called, with one-sided access in both directions. All are closed
 * when the peer ends.
 */
#include "procs/leftovers.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PEERS = 50, WATCHED = 8 };
enum { TIMEOUT = 16, RETRIES = 3, BOUND_MS = 10000, SIZE = 4096 };

static struct process process[PEERS];
static struct resources resources;
static struct endpoint ep[PEERS];

static void config_make(struct ep_config *config)
{
	*config = ep_defaults(IBV_QPT_RC);
	config->timeout = TIMEOUT;
	config->retry_cnt = RETRIES;
}

static int peer(int sock, void *unused)
{
	struct ep_config config;
	struct resources own;
	struct endpoint mine;
	struct ibv_wc wc;
	char word;

	(void)unused;
	message_receive(sock, &word, 1);
	if (word == 'q')
		return 0;
	config_make(&config);
	resources_open(&own, 64, false);
	ep_open_on(&mine, &own, &config, NULL, SIZE);
	for (uint64_t i = 0; i < 8; i++)
		CHECK_ZERO(ep_recv(&mine, i, 0, 64));
	ep_exchange(&mine, sock);
	for (message_receive(sock, &word, 1); word != 'q'; message_receive(sock, &word, 1)) {
		CHECK_ZERO(ep_write(&mine, 100, 64, 64, 64, IBV_SEND_SIGNALED));
		do {
			completion_next(own.cq, &wc);
		} while (wc.wr_id != 100);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		message_send(sock, &word, 1);
	}
	ep_close(&mine);
	resources_close(&own);
	return 0;
}

/* A SEND, a WRITE before it. */
static void speak(int i)
{
	struct ibv_wc wc;

	CHECK_ZERO(ep_write(&ep[i], 1000, 0, 64, 0, 0));
	CHECK_ZERO(ep_send(&ep[i], (uint64_t)i, 0, 64, IBV_SEND_SIGNALED));
	completion_expect(resources.cq, (uint64_t)i, IBV_WC_SUCCESS, &wc);
}

static void tell(int i, char word)
{
	message_send(process[i].sock, &word, 1);
	if (word != 'q')
		message_receive(process[i].sock, &word, 1);
}

static void meet(int i)
{
	struct ep_config config;
	char word = 's';

	config_make(&config);
	ep_open_on(&ep[i], &resources, &config, NULL, SIZE);
	message_send(process[i].sock, &word, 1);
	ep_exchange(&ep[i], process[i].sock);
	speak(i);
	tell(i, 'w');
}

/* Descriptors that greetings need for a moment are closed one by one. */
static void expect_at_most(int most, const char *what)
{
	uint64_t until = now_ms() + BOUND_MS;

	while (descriptors_open() > most) {
		CHECK_SAY(now_ms() < until, "%s: %d descriptors, not %d", what, descriptors_open(),
			  most);
		sleep_ms(10);
	}
}

int main(void)
{
	int before;

	watchdog(170);
	for (int i = 0; i < PEERS; i++)
		process_start(&process[i], peer, NULL);
	promise("two descriptors a peer");
	resources_open(&resources, 1024, false);
	meet(0);
	sleep_ms(100);
	before = descriptors_open();
	for (int i = 1; i < PEERS; i++)
		meet(i);
	expect_at_most(before + 2 * (PEERS - 1) + WATCHED - 1, "with all peers");
	printf("%d descriptors for %d peers\n", descriptors_open() - before, PEERS - 1);
	for (int i = 0; i < PEERS; i++)
		speak(i);
	for (int i = 1; i < PEERS; i++) {
		tell(i, 'q');
		process_expect_success(&process[i], PROCESS_PATIENCE_MS);
	}
	/* The program's sockets to these processes are still open. */
	expect_at_most(before, "when they have ended");
	speak(0);
	tell(0, 'q');
	process_expect_success(&process[0], PROCESS_PATIENCE_MS);
	for (int i = 0; i < PEERS; i++)
		ep_close(&ep[i]);
	resources_close(&resources);
	return 0;
}

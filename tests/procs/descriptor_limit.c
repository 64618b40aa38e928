/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a process that reaches its limit of descriptors (RLIMIT_NOFILE) goes on with the peers
 * that it has. Requests to and from a further peer end with RETRY_EXC and the reason, within the
 * time of all tries. When descriptors are free again, new contact is made. Argument: the side that
 * asks first, "calling" (the process at its limit) or "called" (its peers); or "taken": the program
 * takes every number that is left. Then no memory can be passed, and rings serve; and the rings of
 * one more completion queue are refused.
 */
#include "procs/leftovers.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PEERS = 20, ROOM = 46, LEAVING = 6, SIZE = 4096 };
/* All tries of a request: 8 * 67 ms. Of the request that is awaited asleep: 8 * 537 ms. */
enum { TIMEOUT = 14, LONG_TIMEOUT = 17, RETRIES = 7, BOUND_MS = 8000 };
enum { ASLEEP_MS = 1500, BUSY_MS = 600 };
/* base/reason.h */
enum { PEER_SHORT = 0x709, DESCRIPTORS_SHORT = 0x70c };

struct outcome {
	uint32_t status;
	uint32_t reason;
	uint64_t ms;
	uint64_t cpu_ms;
};

static struct process process[PEERS];
static struct resources resources;
static struct endpoint ep[PEERS];
static bool met[PEERS];
static bool calling;

static uint64_t cpu_ms(void)
{
	struct rusage u;

	CHECK_ZERO(getrusage(RUSAGE_SELF, &u));
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

static void open_to(struct endpoint *s, struct resources *r, struct ibv_cq *cq, int sock, char how)
{
	struct ep_config config;

	config = ep_defaults(how == 'd' ? IBV_QPT_UD : IBV_QPT_RC);
	config.send_cq = config.recv_cq = cq;
	config.timeout = how == 'l' ? LONG_TIMEOUT : TIMEOUT;
	config.retry_cnt = RETRIES;
	ep_open_on(s, r, &config, NULL, SIZE);
	for (uint64_t i = 0; i < 8; i++)
		CHECK_ZERO(ep_recv(s, i, 0, 64));
	ep_exchange(s, sock);
}

/* A WRITE and a SEND; sleeps for so long before it looks for the completion. */
static struct outcome speak(struct endpoint *s, unsigned int asleep_ms)
{
	uint64_t since = now_ms(), cpu = cpu_ms();
	struct outcome o = {0};
	struct ibv_wc wc;

	CHECK_ZERO(ep_write(s, 1001, 64, 64, 64, IBV_SEND_SIGNALED));
	if (asleep_ms) {
		sleep_ms(asleep_ms);
		o.cpu_ms = cpu_ms() - cpu;
	}
	do {
		completion_next(s->config.send_cq, &wc);
	} while (wc.wr_id != 1001);
	o.ms = now_ms() - since;
	o.status = wc.status;
	o.reason = wc.vendor_err;
	return o;
}

static int peer(int sock, void *unused)
{
	struct resources own;
	struct endpoint mine;
	struct outcome o;
	bool open = false;
	char word;

	(void)unused;
	resources_open(&own, 64, false);
	for (message_receive(sock, &word, 1); word != 'q'; message_receive(sock, &word, 1)) {
		if (strchr("old", word)) {
			if (open)
				ep_close(&mine);
			open_to(&mine, &own, own.cq, sock, word);
			open = true;
		} else {
			o = speak(&mine, word == 'z' ? ASLEEP_MS : 0);
			message_send(sock, &o, sizeof(o));
		}
	}
	if (open)
		ep_close(&mine);
	resources_close(&own);
	return 0;
}

static struct outcome peer_speaks(int i, char word)
{
	struct outcome o;

	message_send(process[i].sock, &word, 1);
	message_receive(process[i].sock, &o, sizeof(o));
	return o;
}

static void connect_to(int i, char word)
{
	message_send(process[i].sock, &word, 1);
	open_to(&ep[i], &resources, resources.cq, process[i].sock, word);
}

static struct outcome first_request(int i, bool asleep)
{
	if (calling)
		return speak(&ep[i], asleep ? ASLEEP_MS : 0);
	return peer_speaks(i, asleep ? 'z' : 's');
}

static void expect_reason(int i, struct outcome o, uint64_t most_ms)
{
	/* Either end may be the first to find none. */
	CHECK_SAY(o.status == IBV_WC_RETRY_EXC_ERR &&
			  (o.reason == PEER_SHORT || o.reason == DESCRIPTORS_SHORT),
		  "peer %d: status %u, reason %#x", i, o.status, o.reason);
	CHECK_SAY(o.ms <= most_ms, "peer %d: the error came after %llu ms", i,
		  (unsigned long long)o.ms);
}

/* In both directions, with each peer that was met. */
static void all_speak(void)
{
	for (int i = 0; i < PEERS; i++) {
		if (!met[i])
			continue;
		CHECK_EQ(speak(&ep[i], 0).status, IBV_WC_SUCCESS);
		CHECK_EQ(peer_speaks(i, 's').status, IBV_WC_SUCCESS);
	}
}

static int meet_all(void)
{
	int within = 0;
	uint64_t slowest = 0;

	for (int i = 0; i < PEERS; i++) {
		connect_to(i, 'o');
		struct outcome o = first_request(i, false);

		met[i] = o.status == IBV_WC_SUCCESS;
		if (met[i]) {
			within++;
			continue;
		}
		expect_reason(i, o, BOUND_MS);
		slowest = o.ms > slowest ? o.ms : slowest;
		for (int k = 0; k < i; k += 7) {
			if (met[k])
				CHECK_EQ(speak(&ep[k], 0).status, IBV_WC_SUCCESS);
		}
	}
	printf("%s: %d of %d peers within %d descriptors, the last error after %llu ms\n",
	       calling ? "calling" : "called", within, PEERS, descriptors_open(),
	       (unsigned long long)slowest);
	return within;
}

static int one_that(bool was_met)
{
	int i = PEERS - 1;

	while (i > 0 && met[i] != was_met)
		i--;
	CHECK_EQ(met[i], was_met);
	return i;
}

static void expect_at_most(int most)
{
	uint64_t until = now_ms() + BOUND_MS;

	while (descriptors_open() > most) {
		CHECK_SAY(now_ms() < until, "%d descriptors, not %d", descriptors_open(), most);
		sleep_ms(10);
	}
}

static void reconnect(int i, char word)
{
	ep_close(&ep[i]);
	connect_to(i, word);
}

static void end(int i)
{
	char word = 'q';

	message_send(process[i].sock, &word, 1);
	process_expect_success(&process[i], PROCESS_PATIENCE_MS);
	close(process[i].sock);
	met[i] = false;
}

static void limit_set(void)
{
	struct rlimit limit;

	CHECK_ZERO(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = (rlim_t)descriptors_open() + ROOM;
	CHECK_ZERO(setrlimit(RLIMIT_NOFILE, &limit));
}

static void crowd(void)
{
	struct outcome o;
	int late, full;

	promise("those within the limit are met, one more is told why not");
	int within = meet_all();

	CHECK(within >= 4 && within < PEERS);
	all_speak();

	promise("waiting for a descriptor costs little");
	late = one_that(false);
	reconnect(late, 'l');
	o = first_request(late, true);
	expect_reason(late, o, BOUND_MS + 8 * 537);
	printf("%llu ms of processor time in %d ms\n", (unsigned long long)o.cpu_ms, ASLEEP_MS);
	CHECK(o.cpu_ms <= BUSY_MS);
	all_speak();

	promise("when others have gone, it is met");
	full = descriptors_open();
	for (int n = 0; n < LEAVING; n++)
		end(one_that(true));
	expect_at_most(full - 2 * LEAVING);
	reconnect(late, 'l');
	CHECK_EQ(first_request(late, false).status, IBV_WC_SUCCESS);
	met[late] = true;
	all_speak();
}

static void speak_both_ways(int i)
{
	CHECK_EQ(speak(&ep[i], 0).status, IBV_WC_SUCCESS);
	CHECK_EQ(peer_speaks(i, 's').status, IBV_WC_SUCCESS);
}

static void refused_both_ways(int i)
{
	expect_reason(i, speak(&ep[i], 0), BOUND_MS);
	expect_reason(i, peer_speaks(i, 's'), BOUND_MS);
}

/* An engine of its own on this side. */
static void connect_by(struct ibv_cq *cq, int i)
{
	char word = 'o';

	ep_close(&ep[i]);
	message_send(process[i].sock, &word, 1);
	open_to(&ep[i], &resources, cq, process[i].sock, word);
}

enum { MET, DATAGRAMS, MORE_RINGS, NEW };

static int numbers_free(void)
{
	struct rlimit limit;
	int n = 0;

	CHECK_ZERO(getrlimit(RLIMIT_NOFILE, &limit));
	for (rlim_t fd = 0; fd < limit.rlim_cur; fd++)
		n += fcntl((int)fd, F_GETFD) < 0;
	return n;
}

static void taken(void)
{
	struct ibv_cq *cq = ibv_create_cq(resources.context, 64, NULL, NULL, 0);
	static int mine[4096];
	static struct endpoint datagrams;
	int count = 0;
	struct ibv_wc wc;

	CHECK(cq);
	connect_to(MET, 'o');
	connect_to(MORE_RINGS, 'o');
	speak_both_ways(MET);
	speak_both_ways(MORE_RINGS);
	message_send(process[DATAGRAMS].sock, "d", 1);
	open_to(&datagrams, &resources, resources.cq, process[DATAGRAMS].sock, 'd');
	CHECK_ZERO(ep_send(&datagrams, 1, 0, 64, IBV_SEND_SIGNALED));
	completion_expect(resources.cq, 1, IBV_WC_SUCCESS, &wc);
	sleep_ms(200);
	while (count < 4096 && (mine[count] = dup(0)) >= 0)
		count++;
	CHECK(count < 4096);

	promise("without a number left, those that were met are served");
	speak_both_ways(MET);
	promise("also one whose memory cannot be passed any more");
	connect_to(DATAGRAMS, 'o');
	speak_both_ways(DATAGRAMS);
	sleep_ms(100);
	CHECK_EQ(numbers_free(), 0); /* no connection was ended */
	promise("rings and peers that are new are refused with the reason");
	connect_by(cq, MORE_RINGS);
	refused_both_ways(MORE_RINGS);
	connect_to(NEW, 'o');
	refused_both_ways(NEW);
	speak_both_ways(MET);
	speak_both_ways(DATAGRAMS);

	promise("with numbers again both work");
	while (count)
		close(mine[--count]);
	connect_by(cq, MORE_RINGS);
	speak_both_ways(MORE_RINGS);
	reconnect(NEW, 'o');
	speak_both_ways(NEW);
	ep_close(&ep[MORE_RINGS]);
	connect_to(MORE_RINGS, 'o');
	CHECK_ZERO(ibv_destroy_cq(cq));
	ep_close(&datagrams);
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	bool all = !strcmp(argv[1], "taken");
	int peers = all ? NEW + 1 : PEERS;

	calling = !strcmp(argv[1], "calling");
	watchdog(170);
	for (int i = 0; i < peers; i++)
		process_start(&process[i], peer, NULL);
	limit_set();
	resources_open(&resources, 1024, false);
	if (all)
		taken();
	else
		crowd();
	for (int i = 0; i < peers; i++) {
		if (process[i].pid)
			end(i);
		ep_close(&ep[i]);
	}
	resources_close(&resources);
	return 0;
}

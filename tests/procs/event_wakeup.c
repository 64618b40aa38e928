/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a process that sleeps on an armed completion queue is woken by every
 * message, never misses one, and an idle process uses no CPU time.
 *
 * The sender waits a random while (0 to 8 ms: inside and outside of the polling
 * lease) before each message; the receiver arms, polls once more, and blocks, in
 * turn for any and for solicited completions. Each message must be answered in
 * time; then both processes stand still and their CPU time is looked at.
 *
 * The same where membarrier(2) is refused to one of the two, by which a receiver that
 * falls asleep spares its senders a fence.
 *
 * usage: event_wakeup [MESSAGES [all|no-sender|no-receiver [SEED]]]
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/filter.h"
#include "support/process.h"
#include "support/random.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { MESSAGE = 64, RECEIVES = 8, SIZE = 4096, LONGEST_US = 8000 };
/* No event in this time at all: missed for good. */
enum { PATIENCE_MS = 20000 };
/*
 * A wake-up takes some 40 us. One that comes this late was not a wake-up but a
 * repair that noticed the loss; a busy machine may cause a few in a thousand, and
 * in a short run, which takes seconds, as many as it stalls in seconds.
 */
enum { LATE_US = 200000, LATE_PER_THOUSAND = 3, LATE_ANYWAY = 2 };
enum { IDLE_MS = 1000, IDLE_CPU_US = 5000 };

static uint64_t messages, seed;
static const char *may = "all"; /* who may call membarrier(2) */

static void refuse_barrier(const char *to)
{
	if (strcmp(may, to) != 0)
		return;
	if (!filter_refuse(SYS_membarrier, EPERM))
		SKIP("seccomp(2) is not to be had");
}

static uint64_t cpu_us(void)
{
	struct rusage usage;

	CHECK_ZERO(getrusage(RUSAGE_SELF, &usage));
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000u +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void check_idle(int sock)
{
	uint64_t before, used;

	promise("an idle process uses no CPU time");
	message_meet(sock);
	sleep_ms(100);
	before = cpu_us();
	sleep_ms(IDLE_MS);
	used = cpu_us() - before;
	CHECK_SAY(used < IDLE_CPU_US, "%llu us of CPU time in %d ms of nothing",
		  (unsigned long long)used, IDLE_MS);
	message_meet(sock);
}

static int sender(int sock, void *unused)
{
	struct resources resources;
	struct endpoint ep;
	uint64_t i;
	char answer;

	(void)unused;
	promise("every message wakes the sleeping receiver");
	refuse_barrier("no-sender");
	resources_open(&resources, 64, false);
	ep_open_on(&ep, &resources, NULL, NULL, SIZE);
	ep_exchange(&ep, sock);
	for (i = 0; i < messages; i++) {
		uint64_t until = now_us() + random_next(&seed) % LONGEST_US;

		if (i % 4 == 0)
			sleep_ms((unsigned int)(random_next(&seed) % 8));
		else
			while (now_us() < until)
				CHECK_EQ(ibv_poll_cq(resources.cq, 0, NULL), 0);
		until = now_us();
		memcpy(ep.buffer, &until, sizeof(until));
		CHECK_ZERO(ep_send(&ep, i, 0, MESSAGE,
				   IBV_SEND_SIGNALED | (i % 2 ? IBV_SEND_SOLICITED : 0)));
		completion_expect(resources.cq, i, IBV_WC_SUCCESS, NULL);
		message_receive(sock, &answer, 1);
	}
	check_idle(sock);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

/* Blocks until the armed queue says something. */
static void wait_event(struct resources *resources, uint64_t number)
{
	struct pollfd readable = {.fd = resources->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	CHECK_SAY(poll(&readable, 1, PATIENCE_MS) == 1, "message %llu: no event within %d ms",
		  (unsigned long long)number, PATIENCE_MS);
	CHECK_ZERO(ibv_get_cq_event(resources->channel, &cq, &context));
	CHECK(cq == resources->cq);
	ibv_ack_cq_events(cq, 1);
}

/* How long ago the message in the buffer was posted. */
static uint64_t age_us(const struct endpoint *ep)
{
	uint64_t posted;

	memcpy(&posted, ep->buffer, sizeof(posted));
	return now_us() - posted;
}

static int receiver(int sock, void *unused)
{
	struct ibv_wc wc = {0};
	struct resources resources;
	struct endpoint ep;
	uint64_t late = 0;
	uint64_t i;

	(void)unused;
	promise("every message wakes the sleeping receiver");
	refuse_barrier("no-receiver");
	resources_open(&resources, 64, true);
	ep_open_on(&ep, &resources, NULL, NULL, SIZE);
	for (i = 0; i < RECEIVES; i++)
		CHECK_ZERO(ep_recv(&ep, i, 0, MESSAGE));
	CHECK_ZERO(ibv_req_notify_cq(resources.cq, 0));
	ep_exchange(&ep, sock);
	for (i = 0; i < messages; i++) {
		wait_event(&resources, i);
		CHECK_EQ(ibv_poll_cq(resources.cq, 1, &wc), 1);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		late += age_us(&ep) > LATE_US;
		CHECK_ZERO(ep_recv(&ep, i, 0, MESSAGE));
		/* The next one is solicited when its number is odd. */
		CHECK_ZERO(ibv_req_notify_cq(resources.cq, (i + 1) % 2));
		CHECK_EQ(ibv_poll_cq(resources.cq, 1, &wc), 0);
		message_send(sock, "a", 1);
	}
	CHECK_SAY(late <= LATE_ANYWAY + messages * LATE_PER_THOUSAND / 1000,
		  "%llu of %llu messages were noticed late", (unsigned long long)late,
		  (unsigned long long)messages);
	check_idle(sock);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

int main(int argc, char **argv)
{
	struct process a, b;

	messages = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000;
	may = argc > 2 ? argv[2] : may;
	seed = argc > 3 ? strtoull(argv[3], NULL, 0) : (now_us() | 1);
	printf("seed %llu\n", (unsigned long long)seed);
	watchdog(90);
	process_start_pair(&a, sender, &b, receiver, NULL);
	process_expect_success(&a, 80000);
	process_expect_success(&b, PROCESS_PATIENCE_MS);
	return 0;
}

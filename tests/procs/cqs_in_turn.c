/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: an engine whose completion queue no thread polls at the moment holds up no other. Queue
 * pairs have a completion queue each. The queues are polled in turn, each for long enough that its
 * engine stays awake. What a poller waits for depends on an engine that is not polled meanwhile:
 *
 *   turns    one thread sends to itself and waits for the completion before it polls the queue of
 *            the other end
 *   apart    two processes, each with two queue pairs; each waits for one completion that needs the
 *            other's other engine
 *   threads  another thread polls the queue of the other end, and waits for this one meanwhile
 *   found    as turns, but each queue is polled only for what has come by then
 *
 * A message that waited until the progress thread takes over (2 ms and more) would cost its poller
 * thousands of polls that find nothing. They are counted, not the time: on a busy machine a message
 * also waits for a processor, but most messages pass while all threads that they need have one. So
 * the median counts. Two threads help each other often by chance: there nine messages of ten count.
 * A machine may be busy for a while: the messages are looked at in PARTS parts, and the best counts.
 * Of two processes, a poll counts only if the other one has polled as well since the last that
 * counted: whom it waits for may have no processor for as long as this one has.
 *
 * usage: cqs_in_turn turns|apart|threads|found [MESSAGES]
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGE = 32, SIZE = 4096, AWAKE_POLLS = 40, LINES = 2 };
/* Most polls in vain for a message: of one thread alone, and where there are other threads. */
enum { EMPTY_MOST = 30, EMPTY_MOST_OTHERS = 2000, SECONDS = 100, PARTS = 10, YIELD_EVERY = 20000 };
enum { SLOW_MS = 5000 };

static uint32_t messages;
static uint32_t *empty; /* of each message: how many polls found nothing */

/* Polls in vain of the two processes, in memory of both. Both NULL: what is waited for needs no other process. */
struct polls {
	_Alignas(64) _Atomic uint32_t in_vain;
};
static struct polls *mine, *others;

/* After a poll that found nothing. Whether it counts. */
static bool counts(void)
{
	static uint32_t seen;

	if (!others)
		return true;
	atomic_fetch_add(&mine->in_vain, 1);
	uint32_t now = atomic_load(&others->in_vain);
	bool moved = now != seen;

	seen = now;
	return moved;
}

/* Returns how many polls found nothing. */
static uint32_t await(struct ibv_cq *cq, uint32_t count)
{
	uint32_t in_vain = 0, counted = 0;
	struct ibv_wc wc;

	while (count) {
		int n = ibv_poll_cq(cq, 1, &wc);

		CHECK(n >= 0);
		if (!n) {
			/* Who is waited for may want this processor. */
			if (++in_vain % YIELD_EVERY == 0)
				sched_yield();
			counted += counts();
			continue;
		}
		if (wc.status)
			completion_print(&wc);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		count--;
	}
	return counted;
}

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Of so many percent of a part's messages the most polls in vain. */
static uint32_t of_part(uint32_t part, unsigned int percent)
{
	uint32_t each = messages / PARTS, *first = empty + (size_t)part * each;

	CHECK(each);
	qsort(first, each, sizeof(*first), ascending);
	return first[each * percent / 100];
}

static void judge(uint32_t parts, unsigned int percent, uint32_t most)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i < parts; i++) {
		uint32_t polls = of_part(i, percent);

		if (polls < best)
			best = polls;
	}
	CHECK_SAY(best <= most, "%u polls in vain for the message at %u %%", best, percent);
}

/* Polls an empty queue, as programs do that poll steadily. */
static void keep_awake(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	for (int i = 0; i < AWAKE_POLLS; i++)
		CHECK_EQ(ibv_poll_cq(cq, 1, &wc), 0);
}

struct pair {
	struct resources end[LINES];
	struct endpoint ep[LINES];
};

static void pair_open(struct pair *p)
{
	for (int i = 0; i < LINES; i++) {
		resources_open(&p->end[i], 64, false);
		ep_open_on(&p->ep[i], &p->end[i], NULL, NULL, SIZE);
	}
}

static void pair_close(struct pair *p)
{
	for (int i = 0; i < LINES; i++) {
		ep_close(&p->ep[i]);
		resources_close(&p->end[i]);
	}
}

static void turns(void)
{
	struct pair p = {0};

	pair_open(&p);
	ep_link(&p.ep[0], &p.ep[1]);
	for (uint32_t i = 0; i < messages; i++) {
		struct endpoint *from = &p.ep[i % 2], *to = &p.ep[!(i % 2)];

		keep_awake(to->resources->cq);
		CHECK_ZERO(ep_recv(to, i, 0, MESSAGE));
		CHECK_ZERO(ep_send(from, i, 0, MESSAGE, IBV_SEND_SIGNALED));
		empty[i] = await(from->resources->cq, 1);
		await(to->resources->cq, 1);
	}
	judge(PARTS, 50, EMPTY_MOST);
	pair_close(&p);
}

static void found(void)
{
	struct pair p = {0};

	pair_open(&p);
	ep_link(&p.ep[0], &p.ep[1]);
	for (uint32_t i = 0; i < messages; i++) {
		CHECK_ZERO(ep_recv(&p.ep[1], i, 0, MESSAGE));
		CHECK_ZERO(ep_send(&p.ep[0], i, 0, MESSAGE, IBV_SEND_SIGNALED));
		empty[i] = await(p.end[0].cq, 1);
		empty[i] += await(p.end[1].cq, 1);
	}
	judge(PARTS, 50, EMPTY_MOST);
	pair_close(&p);
}

/* Where the two seldom have a processor at once, they need not go on after a good part. */
static bool is_enough(int sock, uint32_t parts, uint64_t begun)
{
	char enough = now_ms() - begun > SLOW_MS && of_part(parts - 1, 50) <= EMPTY_MOST_OTHERS;
	char theirs = 0;

	message_swap(sock, &enough, &theirs, 1);
	return enough && theirs;
}

/*
 * Both send on one connection and wait for that completion, then take what came on the other one.
 */
static int apart(int sock, void *argument)
{
	uint64_t name = (uint64_t)getpid(), other = 0;
	uint32_t parts = 0, sent = 0;
	struct polls *polls = argument;
	struct pair p = {0};

	message_swap(sock, &name, &other, sizeof(name));
	bool first = name < other;

	mine = &polls[first];
	others = &polls[!first];

	pair_open(&p);
	for (int i = 0; i < LINES; i++)
		ep_exchange(&p.ep[i], sock);
	for (uint32_t k = 0; k < 4; k++)
		CHECK_ZERO(ep_recv(&p.ep[!first], k, 0, MESSAGE));
	message_meet(sock);
	uint64_t begun = now_ms();

	do {
		for (uint32_t k = 0; k < messages / PARTS; k++, sent++) {
			keep_awake(p.end[first].cq);
			CHECK_ZERO(ep_send(&p.ep[first], sent, 0, MESSAGE, IBV_SEND_SIGNALED));
			empty[sent] = await(p.end[first].cq, 1);
			empty[sent] += await(p.end[!first].cq, 1);
			CHECK_ZERO(ep_recv(&p.ep[!first], sent, 0, MESSAGE));
		}
	} while (++parts < PARTS && !is_enough(sock, parts, begun));
	judge(parts, 50, EMPTY_MOST_OTHERS);
	message_meet(sock);
	pair_close(&p);
	return 0;
}

static sem_t to_take, taken;

static void *taker(void *argument)
{
	struct endpoint *ep = argument;

	for (uint32_t i = 0; i < messages; i++) {
		CHECK_ZERO(sem_wait(&to_take));
		await(ep->resources->cq, 1);
		keep_awake(ep->resources->cq);
		CHECK_ZERO(sem_post(&taken));
	}
	return NULL;
}

static void threads(void)
{
	struct pair p = {0};
	pthread_t thread;

	pair_open(&p);
	ep_link(&p.ep[0], &p.ep[1]);
	CHECK_ZERO(sem_init(&to_take, 0, 0));
	CHECK_ZERO(sem_init(&taken, 0, 0));
	CHECK_ZERO(pthread_create(&thread, NULL, taker, &p.ep[1]));
	for (uint32_t i = 0; i < messages; i++) {
		CHECK_ZERO(ep_recv(&p.ep[1], i, 0, MESSAGE));
		CHECK_ZERO(ep_send(&p.ep[0], i, 0, MESSAGE, IBV_SEND_SIGNALED));
		empty[i] = await(p.end[0].cq, 1);
		CHECK_ZERO(sem_post(&to_take));
		CHECK_ZERO(sem_wait(&taken));
	}
	CHECK_ZERO(pthread_join(thread, NULL));
	judge(PARTS, 90, EMPTY_MOST_OTHERS);
	pair_close(&p);
}

int main(int argc, char **argv)
{
	struct process a, b;

	promise("an engine whose completion queue nobody polls now holds up nobody");
	CHECK(argc >= 2);
	messages = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 20000;
	uint64_t begun = now_ms();

	empty = calloc(messages, sizeof(*empty));
	CHECK(empty);
	watchdog(SECONDS);
	if (!strcmp(argv[1], "turns")) {
		turns();
	} else if (!strcmp(argv[1], "found")) {
		found();
	} else if (!strcmp(argv[1], "threads")) {
		threads();
	} else {
		process_start_pair(&a, apart, &b, apart, memory_shared(2 * sizeof(struct polls)));
		process_expect_success(&a, SECONDS * 1000);
		process_expect_success(&b, SECONDS * 1000);
	}
	printf("%s: %u messages in %llu ms\n", argv[1], messages,
	       (unsigned long long)(now_ms() - begun));
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Half the round trip of an 8-byte RDMA WRITE between two processes that spin on their memory, and
 * the time that one WRITE takes to post: for memory of the program, which is reached through a
 * descriptor, and for buffers of ibv_alloc_buf(3), which both processes have mapped.
 *
 * usage: mapped [ROUND_TRIPS]       ninja -C build bench/mapped; each process needs a core of its
 * own
 */
#include "support/check.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIZE = 4096, SEND_AT = 1024, BATCH = 16, WARM_UP = 1000, SAMPLES = 31 };

struct way {
	const char *name;
	bool mapped;
};

static const struct way ways[] = {{"memory of the program", false}, {"mapped by both", true}};
enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

static uint64_t trips;

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void reap(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n = 0;

	while (!n)
		n = ibv_poll_cq(cq, 1, &wc);
	CHECK_EQ(n, 1);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
}

static void write_word(struct side *side, uint64_t value)
{
	memcpy(side->buffer + SEND_AT, &value, sizeof(value));
	CHECK_ZERO(post_write(side, value, SEND_AT, sizeof(value), 0,
			      value % BATCH ? 0 : IBV_SEND_SIGNALED));
	if (value % BATCH == 0)
		reap(side->endpoint->cq);
}

static void await_word(const struct side *side, uint64_t value)
{
	const volatile uint64_t *word = (const volatile uint64_t *)(const void *)side->buffer;

	while (*word != value) {
#if defined(__x86_64__)
		__builtin_ia32_pause();
#endif
	}
}

static void play(struct side *side, bool first, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i <= to; i++) {
		if (first)
			write_word(side, i);
		await_word(side, i);
		if (!first)
			write_word(side, i);
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v)
{
	qsort(v, SAMPLES, sizeof(*v), compare);
	return v[SAMPLES / 2];
}

/* The time of a post when no process waits for its result. */
static double post_ns(struct side *side)
{
	double sample[SAMPLES];

	for (int s = 0; s < SAMPLES; s++) {
		double start = now_ns();

		for (uint64_t i = 1; i <= 1024; i++)
			write_word(side, i);
		sample[s] = (now_ns() - start) / 1024;
	}
	return median(sample);
}

static void one_way(const struct way *way, int sock, bool first)
{
	struct endpoint endpoint;
	struct ibv_buf *buf = NULL;
	void *memory = NULL;
	double sample[SAMPLES];
	struct side side;
	uint64_t at = WARM_UP;

	endpoint_open(&endpoint, 256, false);
	if (way->mapped)
		memory = ibv_alloc_buf(endpoint.pd, SIZE, &buf);
	CHECK(!way->mapped || memory);
	side_open(&side, &endpoint, NULL, memory, SIZE);
	side_exchange(&side, sock);
	play(&side, first, 1, at);
	for (int s = 0; s < SAMPLES; s++) {
		double start = now_ns();

		play(&side, first, at + 1, at + trips);
		at += trips;
		sample[s] = (now_ns() - start) / (double)trips / 2;
	}
	message_meet(sock);
	if (first)
		printf("%-22s half round trip %6.0f ns, post %6.0f ns\n", way->name, median(sample),
		       post_ns(&side));
	message_meet(sock);
	side_close(&side);
	ibv_free_buf(buf);
	endpoint_close(&endpoint);
}

static int other(int sock, void *argument)
{
	(void)argument;
	for (int w = 0; w < WAYS; w++)
		one_way(&ways[w], sock, false);
	return 0;
}

int main(int argc, char **argv)
{
	struct process process;

	trips = argc > 1 ? strtoull(argv[1], NULL, 0) : 2000;
	promise("a WRITE is seen");
	process_start(&process, other, NULL);
	for (int w = 0; w < WAYS; w++)
		one_way(&ways[w], process.sock, true);
	process_expect_success(&process, PROCESS_PATIENCE_MS);
	return 0;
}

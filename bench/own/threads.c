/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages per second of 1 and 2 threads, each with a queue pair and a CQ of its own: without
 * thread domains, both on one thread domain, and each on its own. A message is an 8-byte SEND to a
 * second queue pair of the same thread, with both completions polled.
 *
 * The processor time of a message says more than the rate when other programs run, too.
 *
 * usage: threads [SECONDS [ROUNDS]]     medians of ROUNDS interleaved rounds
 */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"

enum { MOST_ROUNDS = 99, THREADS = 2 };
enum domains { NO_DOMAIN, ONE_DOMAIN, ONE_EACH, DOMAINS };

static const char *const label[DOMAINS] = {"no thread domain", "one thread domain", "one each"};

struct worker {
	struct resources resources; /* those that all share, but for the CQ and the domain */
	struct endpoint from, to;
	uint64_t messages, cpu_ns;
	pthread_t thread;
};

static struct worker worker[THREADS];
static atomic_bool stop;
static pthread_barrier_t barrier;

static struct ibv_td *td_make(struct ibv_context *context)
{
	struct ibv_td_init_attr attr = {.comp_mask = 0};
	struct ibv_td *td = ibv_alloc_td(context, &attr);

	CHECK(td);
	return td;
}

/* Makes all objects of the worker on one context. td NULL: no thread domain. */
static void worker_open(struct worker *w, const struct resources *shared, struct ibv_td *td)
{
	struct ibv_parent_domain_init_attr parent = {.pd = shared->pd, .td = td};
	struct ibv_cq_init_attr_ex cq = {
		.cqe = 256,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = td ? IBV_CQ_INIT_ATTR_MASK_PD : 0,
	};
	struct ibv_cq_ex *cq_ex;

	w->resources = *shared;
	if (td) {
		w->resources.pd = ibv_alloc_parent_domain(shared->context, &parent);
		CHECK(w->resources.pd);
		cq.parent_domain = w->resources.pd;
	}
	cq_ex = ibv_create_cq_ex(shared->context, &cq);
	CHECK(cq_ex);
	w->resources.cq = ibv_cq_ex_to_cq(cq_ex);
	ep_open_on(&w->from, &w->resources, NULL, NULL, 4096);
	ep_open_on(&w->to, &w->resources, NULL, NULL, 4096);
	ep_link(&w->from, &w->to);
	w->messages = 0;
}

static void worker_close(struct worker *w, const struct resources *shared)
{
	ep_close(&w->from);
	ep_close(&w->to);
	CHECK_ZERO(ibv_destroy_cq(w->resources.cq));
	if (w->resources.pd != shared->pd)
		CHECK_ZERO(ibv_dealloc_pd(w->resources.pd));
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct ibv_wc wc[2];

	pthread_barrier_wait(&barrier);
	uint64_t start = cpu_ns();

	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		int missing = 2;

		CHECK_ZERO(ep_recv(&w->to, 1, 0, 8));
		CHECK_ZERO(ep_send(&w->from, 2, 0, 8, IBV_SEND_SIGNALED));
		while (missing) {
			int n = ibv_poll_cq(w->resources.cq, 2, wc);

			CHECK(n >= 0);
			for (int i = 0; i < n; i++)
				CHECK_EQ(wc[i].status, IBV_WC_SUCCESS);
			missing -= n;
		}
		w->messages++;
	}
	w->cpu_ns = cpu_ns() - start;
	return NULL;
}

struct figures {
	double rate[MOST_ROUNDS]; /* millions of messages per second, of all threads */
	double cost[MOST_ROUNDS]; /* ns of processor time for a message */
};

static void measure(const struct resources *shared, int threads, enum domains domains,
		    double seconds, struct figures *figures, int round)
{
	struct timespec pause = {(time_t)seconds,
				 (long)((seconds - (double)(time_t)seconds) * 1e9)};
	struct ibv_td *td[THREADS] = {NULL};
	uint64_t sum = 0, cpu = 0;

	for (int i = 0; i < threads; i++) {
		if (domains == ONE_EACH || (domains == ONE_DOMAIN && i == 0))
			td[i] = td_make(shared->context);
		worker_open(&worker[i], shared, domains == ONE_DOMAIN ? td[0] : td[i]);
	}
	atomic_store(&stop, false);
	CHECK_ZERO(pthread_barrier_init(&barrier, NULL, (unsigned int)threads + 1));
	for (int i = 0; i < threads; i++)
		CHECK_ZERO(pthread_create(&worker[i].thread, NULL, work, &worker[i]));
	pthread_barrier_wait(&barrier);
	uint64_t start = now_us();

	nanosleep(&pause, NULL);
	atomic_store(&stop, true);
	uint64_t took = now_us() - start;

	for (int i = 0; i < threads; i++) {
		CHECK_ZERO(pthread_join(worker[i].thread, NULL));
		sum += worker[i].messages;
		cpu += worker[i].cpu_ns;
		worker_close(&worker[i], shared);
	}
	for (int i = 0; i < threads; i++) {
		if (td[i])
			CHECK_ZERO(ibv_dealloc_td(td[i]));
	}
	pthread_barrier_destroy(&barrier);
	figures->rate[round] = (double)sum / (double)took;
	figures->cost[round] = (double)cpu / (double)(sum ? sum : 1);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static struct figures figures[THREADS][DOMAINS];
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 0.5;
	int rounds = argc > 2 ? atoi(argv[2]) : 7;
	struct resources shared;

	CHECK(seconds > 0 && rounds > 0 && rounds <= MOST_ROUNDS);
	resources_open(&shared, 16, false);
	for (int r = 0; r < rounds; r++) {
		for (int t = 0; t < THREADS; t++) {
			for (int d = 0; d < DOMAINS; d++)
				measure(&shared, t + 1, (enum domains)d, seconds, &figures[t][d],
					r);
		}
	}
	for (int t = 0; t < THREADS; t++) {
		for (int d = 0; d < DOMAINS; d++) {
			struct figures *f = &figures[t][d];

			qsort(f->rate, (size_t)rounds, sizeof(double), ascending);
			qsort(f->cost, (size_t)rounds, sizeof(double), ascending);
			printf("%d thread%s, %-18s %7.3f M messages/s (%.3f .. %.3f), %4.0f ns each (%.0f .. %.0f)\n",
			       t + 1, t ? "s" : " ", label[d], f->rate[rounds / 2], f->rate[0],
			       f->rate[rounds - 1], f->cost[rounds / 2], f->cost[0],
			       f->cost[rounds - 1]);
		}
	}
	resources_close(&shared);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: a thread that is cancelled (pthread_cancel(3), deferred) while it is in a verb ends
 * after the call, or in the wait of ibv_get_cq_event, and leaves nothing: no lock, no half-made
 * object, no event lost. A signal may come at any instruction.
 *
 * Thousands of threads, one after the other, each do one kind of work with objects of the process
 * and are cancelled at a random moment, while a timer interrupts the process every 300 us. A
 * cancellation point inside a verb ends the thread there. Between its calls a thread says where it
 * is; with cancellation enabled during the call alone (pthread_setcancelstate(3)) it may be
 * cancelled nowhere else, so that a call which ended the thread is named. After each thread the
 * process uses the same objects itself. The other process answers messages and lends its memory.
 *
 * usage: cancelled [THREADS [SEED]]
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"
#include "support/random.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum { SIZE = 64 * 1024, MESSAGE = 64, LONGEST_US = 400, TICK_US = 300, RECEIVES = 16 };
enum { BYE = 0xffff };

static uint64_t threads, seed;
static struct resources resources;
static struct endpoint ep;
static struct ibv_cq *event_cq;
static struct ibv_comp_channel *channel;

/* The call that the thread is in; NULL between calls. Written by the thread alone. */
static _Atomic(const char *) doing;
static atomic_bool stop;
static _Atomic uint64_t rounds;

static void on_tick(int number)
{
	(void)number;
}

/* The thread can be cancelled in this call only. */
#define CALL(expression)                                              \
	do {                                                          \
		atomic_store(&doing, #expression);                    \
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);  \
		expression;                                           \
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL); \
		atomic_store(&doing, NULL);                           \
	} while (0)

static void send_one(void)
{
	struct ibv_wc wc;
	int err = 0, n = 0;

	CALL(err = ep_send(&ep, 1, 0, MESSAGE, IBV_SEND_SIGNALED));
	CHECK_ZERO(err);
	while (!n)
		CALL(n = ibv_poll_cq(resources.cq, 1, &wc));
	CHECK_EQ(n, 1);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
}

static void write_some(void)
{
	struct ibv_wc wc;
	int err = 0, n = 0;
	size_t length = atomic_load(&rounds) % 2 ? 8 : SIZE / 2;

	CALL(err = ep_write(&ep, 2, 0, length, 0, IBV_SEND_SIGNALED));
	CHECK_ZERO(err);
	while (!n)
		CALL(n = ibv_poll_cq(resources.cq, 1, &wc));
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
}

static void read_and_add(void)
{
	struct ibv_wc wc;
	int err = 0, n = 0;

	CALL(err = ep_read(&ep, 3, 0, 4096, 0, IBV_SEND_SIGNALED));
	CHECK_ZERO(err);
	while (!n)
		CALL(n = ibv_poll_cq(resources.cq, 1, &wc));
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CALL(err = ep_fetch_add(&ep, 4, 0, 8, 1, IBV_SEND_SIGNALED));
	CHECK_ZERO(err);
	for (n = 0; !n;)
		CALL(n = ibv_poll_cq(resources.cq, 1, &wc));
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
}

static void make_and_destroy(void)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_pd *pd = NULL;
	struct ibv_mr *mr = NULL;
	struct ibv_cq *cq = NULL;
	struct ibv_qp *qp = NULL;
	int err = 0;

	CALL(pd = ibv_alloc_pd(resources.context));
	CHECK(pd);
	CALL(mr = ibv_reg_mr(pd, ep.buffer, SIZE, IBV_ACCESS_LOCAL_WRITE));
	CHECK(mr);
	CALL(cq = ibv_create_cq(resources.context, 8, NULL, NULL, 0));
	CHECK(cq);
	attr.send_cq = attr.recv_cq = cq;
	CALL(qp = ibv_create_qp(pd, &attr));
	CHECK(qp);
	CALL(err = ibv_destroy_qp(qp));
	CHECK_ZERO(err);
	CALL(err = ibv_destroy_cq(cq));
	CHECK_ZERO(err);
	CALL(err = ibv_dereg_mr(mr));
	CHECK_ZERO(err);
	CALL(err = ibv_dealloc_pd(pd));
	CHECK_ZERO(err);
}

static void open_and_query(void)
{
	struct ibv_context *context = NULL;
	struct ibv_port_attr port;
	struct ibv_dm *dm = NULL;
	struct ibv_alloc_dm_attr dm_attr = {.length = 4096};
	struct ibv_device **list = NULL;
	int err = 0;

	CALL(list = ibv_get_device_list(NULL));
	CHECK(list);
	ibv_free_device_list(list);
	CALL(context = ibv_open_device(resources.context->device));
	CHECK(context);
	CALL(err = ibv_query_port(context, EP_PORT, &port));
	CHECK_ZERO(err);
	CALL(dm = ibv_alloc_dm(context, &dm_attr));
	CHECK(dm);
	CALL(err = ibv_free_dm(dm));
	CHECK_ZERO(err);
	CALL(err = ibv_close_device(context));
	CHECK_ZERO(err);
}

/* No event is raised: the thread ends in the wait, as the contract says. */
static void wait_for_event(void)
{
	struct ibv_cq *cq = NULL;
	void *context;
	int err = 0;

	do {
		CALL(err = ibv_get_cq_event(channel, &cq, &context));
	} while (err && errno == EINTR);
	check_failed(__FILE__, __LINE__, "an event that nobody raised");
}

static void (*const work[])(void) = {
	send_one, write_some, read_and_add, make_and_destroy, open_and_query, wait_for_event,
};

enum { KINDS = sizeof(work) / sizeof(work[0]), WAITER = KINDS - 1 };

static void *victim(void *argument)
{
	size_t kind = *(const size_t *)argument;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	while (kind == WAITER || !atomic_load(&stop)) {
		work[kind]();
		atomic_fetch_add(&rounds, 1);
	}
	return NULL;
}

static void cancel_one(size_t kind)
{
	uint64_t until, begun = atomic_load(&rounds);
	pthread_t thread;
	void *result;
	unsigned int turns = 0;

	atomic_store(&stop, false);
	CHECK_ZERO(pthread_create(&thread, NULL, victim, &kind));
	until = now_us() + random_next(&seed) % LONGEST_US;
	/* Until now the first calls of a thread may have waited for a processor. */
	while (now_us() < until || (kind != WAITER && atomic_load(&rounds) == begun))
		spin_once(&turns);
	CHECK_ZERO(pthread_cancel(thread));
	atomic_store(&stop, true);
	CHECK_ZERO(pthread_join(thread, &result));
	if (kind == WAITER)
		CHECK(result == PTHREAD_CANCELED);
	else
		CHECK_SAY(result != PTHREAD_CANCELED, "a thread ended inside of %s",
			  atomic_load(&doing));
	atomic_store(&doing, NULL);
}

/* Takes an event without acknowledging it. */
static void take_event(struct endpoint *loop)
{
	struct ibv_cq *cq;
	void *context;

	CHECK_ZERO(ibv_req_notify_cq(event_cq, 0));
	CHECK_ZERO(ep_write(loop, 9, 0, 8, 8, IBV_SEND_SIGNALED));
	while (ibv_get_cq_event(channel, &cq, &context))
		CHECK_EQ(errno, EINTR);
	CHECK(cq == event_cq);
	completion_expect(event_cq, 9, IBV_WC_SUCCESS, NULL);
}

/* The event that the cancelled thread waited for comes to the next thread that asks. */
static void check_event(struct endpoint *loop)
{
	take_event(loop);
	ibv_ack_cq_events(event_cq, 1);
}

static void *destroyer(void *unused)
{
	int err = 0;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	CALL(err = ibv_destroy_cq(event_cq));
	CHECK_ZERO(err);
	return unused;
}

/*
 * A destroy that waits for the acknowledgement of an event ends when the acknowledgement comes, and
 * not before.
 */
static void check_destroy(struct endpoint *loop)
{
	pthread_t thread;
	void *result;

	take_event(loop);
	ep_close(loop);
	CHECK_ZERO(pthread_create(&thread, NULL, destroyer, NULL));
	while (!atomic_load(&doing))
		sleep_ms(1);
	sleep_ms(5);
	CHECK_ZERO(pthread_cancel(thread));
	sleep_ms(5);
	ibv_ack_cq_events(event_cq, 1);
	CHECK_ZERO(pthread_join(thread, &result));
	CHECK_SAY(result != PTHREAD_CANCELED, "a thread ended inside of ibv_destroy_cq");
}

static void check_use(void)
{
	CHECK_ZERO(ep_send(&ep, 5, 0, MESSAGE, IBV_SEND_SIGNALED));
	completion_expect(resources.cq, 5, IBV_WC_SUCCESS, NULL);
	CHECK_ZERO(ep_write(&ep, 6, 0, 256, 0, IBV_SEND_SIGNALED));
	completion_expect(resources.cq, 6, IBV_WC_SUCCESS, NULL);
}

static void loop_open(struct endpoint *loop)
{
	struct ep_config config;

	channel = ibv_create_comp_channel(resources.context);
	CHECK(channel);
	event_cq = ibv_create_cq(resources.context, 16, NULL, channel, 0);
	CHECK(event_cq);
	config = ep_defaults(IBV_QPT_RC);
	config.send_cq = config.recv_cq = event_cq;
	ep_open_on(loop, &resources, &config, NULL, SIZE);
	ep_connect(loop, &loop->local);
}

static void tick(long us)
{
	struct itimerval interval = {{0, us}, {0, us}};
	struct sigaction action = {.sa_handler =
					   on_tick}; /* no SA_RESTART: calls are interrupted */

	CHECK_ZERO(sigaction(SIGALRM, &action, NULL));
	CHECK_ZERO(setitimer(ITIMER_REAL, &interval, NULL));
}

static int canceller(int sock, void *unused)
{
	struct endpoint loop;
	uint32_t bye = BYE;

	(void)unused;
	promise("a cancelled thread leaves no lock and nothing half made");
	resources_open(&resources, 64, false);
	ep_open_on(&ep, &resources, NULL, NULL, SIZE);
	loop_open(&loop);
	ep_exchange(&ep, sock);
	tick(TICK_US);
	for (uint64_t i = 0; i < threads; i++) {
		size_t kind = i % KINDS;

		cancel_one(kind);
		check_use();
		if (kind == WAITER)
			check_event(&loop);
	}
	tick(0);
	memcpy(ep.buffer, &bye, sizeof(bye));
	CHECK_ZERO(ep_send(&ep, 7, 0, MESSAGE, IBV_SEND_SIGNALED));
	completion_expect(resources.cq, 7, IBV_WC_SUCCESS, NULL);
	message_meet(sock);
	check_destroy(&loop);
	CHECK_ZERO(ibv_destroy_comp_channel(channel));
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

static int answerer(int sock, void *unused)
{
	struct ibv_wc wc;
	uint32_t word = 0;

	(void)unused;
	resources_open(&resources, 64, false);
	ep_open_on(&ep, &resources, NULL, NULL, SIZE);
	for (uint64_t i = 0; i < RECEIVES; i++)
		CHECK_ZERO(ep_recv(&ep, i, SIZE / 2 + i * MESSAGE, MESSAGE));
	ep_exchange(&ep, sock);
	while (word != BYE) {
		if (!completion_try(resources.cq, &wc, PROCESS_PATIENCE_MS))
			check_failed(__FILE__, __LINE__, "no message for a long time");
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		memcpy(&word, ep.buffer + SIZE / 2 + wc.wr_id * MESSAGE, sizeof(word));
		CHECK_ZERO(ep_recv(&ep, wc.wr_id, SIZE / 2 + wc.wr_id * MESSAGE, MESSAGE));
	}
	message_meet(sock);
	ep_close(&ep);
	resources_close(&resources);
	return 0;
}

int main(int argc, char **argv)
{
	struct process a, b;

	threads = argc > 1 ? strtoull(argv[1], NULL, 0) : 3000;
	seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 20261122;
	watchdog(280);
	process_start_pair(&a, canceller, &b, answerer, NULL);
	process_expect_success(&a, 270000);
	process_expect_success(&b, PROCESS_PATIENCE_MS);
	printf("%llu threads were cancelled, seed %llu\n", (unsigned long long)threads,
	       (unsigned long long)seed);
	return 0;
}

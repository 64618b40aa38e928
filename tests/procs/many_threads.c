/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: any thread may use any object at any time (the verbs are thread-safe).
 * In each of two processes, at the same time,
 *   - threads with a connection and completion queue of their own talk,
 *   - threads that share one queue pair and one completion queue post and poll,
 *   - a thread makes, uses and destroys objects of every kind.
 * Nothing is lost, nothing comes twice. Meant above all for the thread sanitizer.
 *
 * usage: many_threads [MESSAGES_PER_THREAD]
 */
#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/process.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	OWNERS = 2,
	SHARERS = 2,
	MESSAGE = 128,
	RECEIVES = 32,
	SIZE = 64 * 1024,
	SEND_AT = 32 * 1024
};
enum { IS_RECEIVE = 1 << 30 };

struct owner {
	struct resources resources;
	struct endpoint ep;
};

static struct {
	struct resources resources;
	struct endpoint ep;
	uint64_t sent, done, received;
} common;

static uint64_t messages;
static bool stop_churn;

/* A connection of one thread: as many in flight each way as there are receives. */
static void *own_connection(void *argument)
{
	struct owner *owner = argument;
	uint64_t posted = 0, done = 0, received = 0;
	struct ibv_wc wc = {0};

	while (done < messages || received < messages) {
		while (posted < messages && posted - done < RECEIVES / 2) {
			size_t at = SEND_AT + posted % RECEIVES * MESSAGE;

			memcpy(owner->ep.buffer + at, &posted, sizeof(posted));
			CHECK_ZERO(ep_send(&owner->ep, posted++, at, MESSAGE, IBV_SEND_SIGNALED));
		}
		completion_next(owner->resources.cq, &wc);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		if (wc.wr_id & IS_RECEIVE) {
			size_t at = received % RECEIVES * MESSAGE;

			CHECK(memcmp(owner->ep.buffer + at, &received, sizeof(received)) == 0);
			CHECK_ZERO(ep_recv(&owner->ep, IS_RECEIVE, at, MESSAGE));
			received++;
		} else {
			CHECK_EQ(wc.wr_id, done);
			done++;
		}
	}
	return NULL;
}

static uint64_t load(uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/* Posts one if the window allows. The posting thread counts the window before the post. */
static void share_post(uint64_t total)
{
	uint64_t sent = load(&common.sent);

	if (sent >= total || sent - load(&common.done) >= RECEIVES / 2)
		return;
	if (!__atomic_compare_exchange_n(&common.sent, &sent, sent + 1, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return;
	CHECK_ZERO(ep_send(&common.ep, sent, SEND_AT, MESSAGE, IBV_SEND_SIGNALED));
}

/* One queue pair, one completion queue, several threads. */
static void *shared_connection(void *unused)
{
	uint64_t total = messages * SHARERS;
	uint64_t until = now_ms() + 60000;
	struct ibv_wc wc = {0};
	unsigned int turns = 0;

	(void)unused;
	while (load(&common.done) < total || load(&common.received) < total) {
		share_post(total);
		spin_once(&turns);
		CHECK_SAY(turns % 1024 || now_ms() < until, "%llu of %llu done, %llu received",
			  (unsigned long long)load(&common.done), (unsigned long long)total,
			  (unsigned long long)load(&common.received));
		if (ibv_poll_cq(common.resources.cq, 1, &wc) != 1)
			continue;
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		if (wc.wr_id & IS_RECEIVE) {
			CHECK_ZERO(ep_recv(&common.ep, IS_RECEIVE, 0, MESSAGE));
			__atomic_fetch_add(&common.received, 1, __ATOMIC_RELAXED);
		} else {
			__atomic_fetch_add(&common.done, 1, __ATOMIC_RELAXED);
		}
	}
	return NULL;
}

/* Objects come and go beside the traffic, on a context of their own and on a shared one. */
static void *churn(void *unused)
{
	struct resources resources;
	(void)unused;
	while (!__atomic_load_n(&stop_churn, __ATOMIC_RELAXED)) {
		struct ibv_mr *extra = ibv_reg_mr(common.resources.pd, common.ep.buffer, SIZE,
						  IBV_ACCESS_LOCAL_WRITE);

		CHECK(extra);
		resources_open(&resources, 16, true);
		resources_try(&resources);
		resources_close(&resources);
		CHECK_ZERO(ibv_dereg_mr(extra));
	}
	return NULL;
}

static void open_and_connect(struct resources *resources, struct endpoint *ep, int sock)
{
	int i;

	resources_open(resources, 256, false);
	ep_open_on(ep, resources, NULL, NULL, SIZE);
	for (i = 0; i < RECEIVES; i++)
		CHECK_ZERO(ep_recv(ep, IS_RECEIVE, (size_t)i * MESSAGE, MESSAGE));
	ep_exchange(ep, sock);
}

static int run(int sock, void *unused)
{
	pthread_t threads[OWNERS + SHARERS], churner;
	static struct owner owners[OWNERS];
	int i;

	(void)unused;
	promise("threads use objects of their own and shared ones at the same time");
	for (i = 0; i < OWNERS; i++)
		open_and_connect(&owners[i].resources, &owners[i].ep, sock);
	open_and_connect(&common.resources, &common.ep, sock);
	for (i = 0; i < OWNERS; i++)
		CHECK_ZERO(pthread_create(&threads[i], NULL, own_connection, &owners[i]));
	for (; i < OWNERS + SHARERS; i++)
		CHECK_ZERO(pthread_create(&threads[i], NULL, shared_connection, NULL));
	CHECK_ZERO(pthread_create(&churner, NULL, churn, NULL));
	for (i = 0; i < OWNERS + SHARERS; i++)
		CHECK_ZERO(pthread_join(threads[i], NULL));
	__atomic_store_n(&stop_churn, true, __ATOMIC_RELAXED);
	CHECK_ZERO(pthread_join(churner, NULL));
	message_meet(sock);
	for (i = 0; i < OWNERS; i++) {
		ep_close(&owners[i].ep);
		resources_close(&owners[i].resources);
	}
	ep_close(&common.ep);
	resources_close(&common.resources);
	return 0;
}

int main(int argc, char **argv)
{
	struct process a, b;

	messages = argc > 1 ? strtoull(argv[1], NULL, 0) : 20000;
	watchdog(120);
	process_start_pair(&a, run, &b, run, NULL);
	process_expect_success(&a, 110000);
	process_expect_success(&b, PROCESS_PATIENCE_MS);
	return 0;
}

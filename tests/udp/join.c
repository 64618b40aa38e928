/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Usage: udp-join GID_INDEX PEER_GID, in a network namespace whose loopback interface is down
 * (VB_TEST_DEVICE names the device)
 *
 * Promise: while a process finds out which socket the kernel steers its packets to, which takes
 * 20 ms where no answer comes, the same engine goes on: what is posted completes.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "support/check.h"
#include "support/endpoint.h"
#include "support/qp_state.h"
#include "support/clock.h"

/*
 * Messages that complete in the middle half of the call which searches. With the engine's lock held
 * for the time of the search there are none, but for rounds in which the caller does not run before it
 * has taken the lock. A busy machine can also keep the sender from running. So the rounds with some
 * are counted: one of four has to be.
 */
enum { SIZE = 64, ROUNDS = 48, ENOUGH = ROUNDS / 4, SEARCH_MS = 10, STAMPS = 1 << 17 };

static struct {
	struct endpoint a, b;
	_Atomic uint64_t stamp[STAMPS]; /* when a message was done */
	_Atomic uint64_t done;
	_Atomic bool stop;
} traffic;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *traffic_run(void *arg)
{
	(void)arg;
	for (uint64_t i = 0; !atomic_load(&traffic.stop); i++) {
		CHECK_ZERO(ep_write(&traffic.a, i, 0, SIZE, 0, IBV_SEND_SIGNALED));
		completion_expect(traffic.a.resources->cq, i, IBV_WC_SUCCESS, NULL);
		atomic_store(&traffic.stamp[i % STAMPS], now_ns());
		atomic_store(&traffic.done, i + 1);
	}
	return NULL;
}

static unsigned int done_between(uint64_t from, uint64_t to, uint64_t begin, uint64_t end)
{
	unsigned int count = 0;

	for (uint64_t i = from; i < to; i++) {
		uint64_t at = atomic_load(&traffic.stamp[i % STAMPS]);

		count += at > begin && at < end;
	}
	return count;
}

/* Messages done in the middle of the time in which a queue pair of the engine gets its sockets. */
static unsigned int join_once(struct resources *resources, const struct peer *there)
{
	struct peer here = {.gid = resources->gid, .mtu = IBV_MTU_1024};
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	uint64_t first = atomic_load(&traffic.done), begin, took;
	struct ibv_qp *qp = ep_create_qp(resources, &config);

	config.sgid_index = (uint8_t)resources->gid_index;
	struct ibv_qp_attr attr = ep_attr(&config, &here, there);

	ep_init_qp(qp, &config);
	while (atomic_load(&traffic.done) < first + 2)
		;
	first = atomic_load(&traffic.done);
	begin = now_ns();
	CHECK_ZERO(qp_step(qp, &attr, IBV_QPS_RTR));
	took = now_ns() - begin;
	CHECK_SAY(took >= SEARCH_MS * 1000000ull,
		  "the search took %u us: has the loopback interface answered?",
		  (unsigned int)(took / 1000));
	unsigned int count = done_between(first, atomic_load(&traffic.done), begin + took / 4,
					  begin + took / 4 * 3);

	CHECK_ZERO(ibv_destroy_qp(qp));
	return count;
}

int main(int argc, char **argv)
{
	struct peer there = {.qpn = 17, .mtu = IBV_MTU_1024};
	struct resources resources;
	pthread_t thread;
	int rounds = 0, lively = 0;

	if (argc != 3)
		SKIP("usage: udp-join GID_INDEX PEER_GID");
	watchdog(60);
	promise("messages go on while steering is joined");
	CHECK_EQ(inet_pton(AF_INET6, argv[2], there.gid.raw), 1);
	resources_open(&resources, 256, false);
	resources_use_gid(&resources, atoi(argv[1]));
	ep_open_on(&traffic.a, &resources, NULL, NULL, SIZE);
	ep_open_on(&traffic.b, &resources, NULL, NULL, SIZE);
	ep_link(&traffic.a, &traffic.b);
	CHECK_ZERO(pthread_create(&thread, NULL, traffic_run, NULL));
	for (; rounds < ROUNDS && lively < ENOUGH; rounds++)
		lively += join_once(&resources, &there) > 0;
	atomic_store(&traffic.stop, true);
	pthread_join(thread, NULL);
	CHECK_SAY(lively == ENOUGH, "messages were done meanwhile in %d of %d rounds only", lively,
		  rounds);
	ep_close(&traffic.a);
	ep_close(&traffic.b);
	resources_close(&resources);
	printf("messages while steering is joined, in %d of %d rounds: done\n", lively, rounds);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections up and down, 300 (or the argument) of them: no descriptor is left, and memory does not
 * grow with their number.
 */
#include <dirent.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include <rdma/rdma_verbs.h>

#include "cm.h"
#include "support/check.h"
#include "support/clock.h"

enum { PORT = 7310, WARM = 50, ROUNDS = 300, GROWTH_PER_ROUND = 64, GROWTH = 65536 };
/*
 * A connection is kept for 0.2 s after its end (timewait): that is a tenth of what is usual. A peer
 * is given up after ten seconds.
 */
#define CM_TIMES "100"
enum { STILL_MS = 600, STEP_MS = 20, PATIENCE_MS = 20000 };

static void end(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	CHECK_ZERO(rdma_destroy_id(id));
}

static void connect_once(struct rdma_event_channel *channel)
{
	struct rdma_conn_param param = {.retry_count = 7};
	struct rdma_cm_id *active = cm_routed(channel, RDMA_PS_TCP, OWN_V4, PORT), *passive;
	struct rdma_cm_event *event;

	cm_make_qp(active);
	CHECK_ZERO(rdma_connect(active, &param));
	event = cm_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	passive = event->id;
	cm_make_qp(passive);
	CHECK_ZERO(rdma_accept(passive, &param));
	CHECK_ZERO(rdma_ack_cm_event(event));
	CHECK_ZERO(cm_pass(channel, RDMA_CM_EVENT_ESTABLISHED));
	CHECK_ZERO(cm_pass(channel, RDMA_CM_EVENT_ESTABLISHED));
	CHECK_ZERO(rdma_disconnect(active));
	CHECK_ZERO(cm_pass(channel, RDMA_CM_EVENT_DISCONNECTED));
	end(passive);
	end(active);
}

static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	CHECK(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static size_t memory(void)
{
	const struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* The memory that is in use when no connection is kept any more: it has not become less for a while. */
static size_t memory_at_rest(void)
{
	const uint64_t until = now_ms() + PATIENCE_MS;
	size_t least = memory();

	for (int still = 0; still < STILL_MS && now_ms() < until; still += STEP_MS) {
		sleep_ms(STEP_MS);
		if (memory() < least) {
			least = memory();
			still = 0;
		}
	}
	return least;
}

static void expect_nothing_left(int fds, size_t before, size_t most)
{
	const uint64_t until = now_ms() + PATIENCE_MS;

	while ((descriptors() > fds || memory() >= most) && now_ms() < until)
		sleep_ms(STEP_MS);
	EXPECT_EQ(descriptors(), fds);
	EXPECT_SAY(memory() < most, "%zu bytes before, %zu after", before, memory());
}

int main(int argc, char **argv)
{
	const int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	size_t before;
	int fds;

	cm_network();
	CHECK_ZERO(setenv("VERBATIM_CM_TIMES", CM_TIMES, 1));
	channel = rdma_create_event_channel();
	CHECK(channel);
	listener = cm_id(channel, RDMA_PS_TCP);
	CHECK_ZERO(rdma_bind_addr(listener, cm_address("0.0.0.0", PORT)));
	CHECK_ZERO(rdma_listen(listener, 4));
	expect_case("%d connections leave nothing", rounds);
	for (int i = 0; i < WARM; i++)
		connect_once(channel);
	before = memory_at_rest();
	fds = descriptors();
	for (int i = 0; i < rounds; i++)
		connect_once(channel);
	expect_nothing_left(fds, before, before + GROWTH + (size_t)rounds * GROWTH_PER_ROUND);
	CHECK_ZERO(rdma_destroy_id(listener));
	rdma_destroy_event_channel(channel);
	return expect_done();
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An interface is deleted: every id of its device has DEVICE_REMOVAL, once, whatever its state; a
 * synchronous call that waits ends with ENODEV; ids of no device go on; all can be destroyed, and an
 * interface of the same name serves new ones.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rdma/rdma_verbs.h>

#include "cm.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/network.h"

enum { PORT = 7300, IDS = 6, PAUSE_US = 50000, ASLEEP_LOOKS = 3, PATIENCE_MS = 20000 };

static struct rdma_cm_id *listen_on(struct rdma_event_channel *channel, const char *own,
				    uint16_t port)
{
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);

	CHECK_ZERO(rdma_bind_addr(id, cm_address(own, port)));
	CHECK_ZERO(rdma_listen(id, 4));
	return id;
}

/* Bound, listening, address resolved, route resolved, and both sides of a connection. */
static void make_ids(struct rdma_event_channel *channel, struct rdma_cm_id *ids[IDS])
{
	ids[0] = cm_id(channel, RDMA_PS_UDP);
	CHECK_ZERO(rdma_bind_addr(ids[0], cm_address(OWN_V6, 0)));
	ids[1] = listen_on(channel, OWN_V4, PORT);
	ids[2] = cm_id(channel, RDMA_PS_TCP);
	CHECK_ZERO(rdma_resolve_addr(ids[2], NULL, cm_address(OTHER_V4, PORT), 1000));
	CHECK_ZERO(cm_pass(channel, RDMA_CM_EVENT_ADDR_RESOLVED));
	ids[3] = cm_routed(channel, RDMA_PS_TCP, OWN_V4, PORT);
	cm_connect_pair(channel, PORT, &ids[4]);
}

static _Atomic pid_t caller;

/* Connects to nobody, and waits. */
static void *wait_in_call(void *id)
{
	struct rdma_conn_param param = {.retry_count = 7};

	atomic_store(&caller, (pid_t)syscall(SYS_gettid));
	EXPECT_MINUS1(rdma_connect(id, &param), ENODEV);
	return NULL;
}

static bool sleeps(pid_t thread)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
	f = fopen(path, "re");
	CHECK(f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1);
	fclose(f);
	return state == 'S';
}

/* The call waits: its thread sleeps, and goes on sleeping. */
static void wait_for_caller(void)
{
	const uint64_t until = now_ms() + PATIENCE_MS;

	for (int looks = 0; looks < ASLEEP_LOOKS; sleep_ms(10)) {
		CHECK_SAY(now_ms() < until, "the call does not wait");
		looks = atomic_load(&caller) && sleeps(caller) ? looks + 1 : 0;
	}
}

static void collect(struct rdma_event_channel *channel, struct rdma_cm_id *ids[IDS])
{
	int told[IDS] = {0};

	expect_case("each id of the device has DEVICE_REMOVAL, once");
	for (int i = 0; i < IDS; i++) {
		struct rdma_cm_event *event = cm_event(channel, RDMA_CM_EVENT_DEVICE_REMOVAL);

		for (int k = 0; k < IDS; k++)
			told[k] += event->id == ids[k];
		EXPECT_EQ(event->status, 0);
		CHECK_ZERO(rdma_ack_cm_event(event));
	}
	for (int k = 0; k < IDS; k++)
		EXPECT_SAY(told[k] == 1, "id %d was told %d times", k, told[k]);
	usleep(PAUSE_US);
	EXPECT(!cm_waits(channel));
}

static void leave(struct rdma_event_channel *channel, struct rdma_cm_id *ids[IDS])
{
	expect_case("afterwards calls refuse, and ids can be destroyed");
	EXPECT_MINUS1(rdma_listen(ids[0], 1), EINVAL);
	EXPECT_MINUS1(rdma_resolve_route(ids[2], 1000), EINVAL);
	EXPECT_MINUS1(rdma_connect(ids[3], NULL), EINVAL);
	EXPECT_EQ(rdma_disconnect(ids[4]), 0);
	EXPECT_EQ(rdma_disconnect(ids[5]), 0);
	for (int k = 0; k < IDS; k++) {
		if (ids[k]->qp)
			rdma_destroy_qp(ids[k]);
		EXPECT_EQ(rdma_destroy_id(ids[k]), 0);
	}
	EXPECT(!cm_waits(channel));
}

/* A wildcard listener has no device of its own, and covers those that come later. */
static void begin_again(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *pair[2];

	expect_case("a new interface of the name serves new ids and the old wildcard listener");
	CHECK(ip("link add v0 type veth peer name v1"));
	CHECK(ip("addr add %s/24 dev v0", OWN_V4));
	CHECK(ip("link set v0 up") && ip("link set v1 up"));
	cm_connect_pair(channel, PORT + 1, pair);
	for (int i = 0; i < 2; i++) {
		rdma_destroy_qp(pair[i]);
		EXPECT_EQ(rdma_destroy_id(pair[i]), 0);
	}
}

int main(void)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *ids[IDS], *everywhere, *waiting;
	pthread_t thread;

	cm_network();
	channel = rdma_create_event_channel();
	CHECK(channel);
	make_ids(channel, ids);
	everywhere = listen_on(channel, "0.0.0.0", PORT + 1);
	waiting = cm_routed(NULL, RDMA_PS_TCP, OTHER_V4, PORT);
	cm_make_qp(waiting);
	expect_case("a call that waits ends with ENODEV");
	CHECK_ZERO(pthread_create(&thread, NULL, wait_in_call, waiting));
	wait_for_caller();
	CHECK(ip("link del v0"));
	CHECK_ZERO(pthread_join(thread, NULL));
	collect(channel, ids);
	leave(channel, ids);
	rdma_destroy_qp(waiting);
	EXPECT_EQ(rdma_destroy_id(waiting), 0);
	begin_again(channel);
	EXPECT_EQ(rdma_destroy_id(everywhere), 0);
	rdma_destroy_event_channel(channel);
	return expect_done();
}

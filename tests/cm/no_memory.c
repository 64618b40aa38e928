/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program that has run out of memory is told of the end of its connections all the same, and of the
 * end of its device. The allocator here refuses when it is told to; it stands before that of the C
 * library.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include <rdma/rdma_verbs.h>

#include "cm.h"
#include "support/check.h"
#include "support/network.h"

enum { PORT = 7240, PAIRS = 8 };

static atomic_bool empty;
static _Atomic unsigned int refused;

void *__libc_calloc(size_t count, size_t size);

__attribute__((visibility("default"))) void *calloc(size_t count, size_t size)
{
	if (!atomic_load(&empty))
		return __libc_calloc(count, size);
	atomic_fetch_add(&refused, 1);
	return NULL;
}

static void end(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	CHECK_ZERO(rdma_destroy_id(id));
}

int main(void)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *pair[PAIRS][2];

	cm_network();
	channel = rdma_create_event_channel();
	CHECK(channel);
	listener = cm_id(channel, RDMA_PS_TCP);
	CHECK_ZERO(rdma_bind_addr(listener, cm_address("0.0.0.0", PORT)));
	CHECK_ZERO(rdma_listen(listener, 4));
	for (int i = 0; i < PAIRS; i++)
		cm_connect_pair(channel, PORT, pair[i]);

	expect_case("the ends of connections");
	atomic_store(&empty, true);
	for (int i = 0; i < PAIRS / 2; i++)
		CHECK_ZERO(rdma_disconnect(pair[i][0]));
	for (int i = 0; i < PAIRS / 2; i++) {
		EXPECT_EQ(cm_pass(channel, RDMA_CM_EVENT_DISCONNECTED), 0);
		CHECK_ZERO(rdma_disconnect(pair[i][1]));
		EXPECT_EQ(cm_pass(channel, RDMA_CM_EVENT_DISCONNECTED), 0);
	}
	EXPECT(atomic_load(&refused) >= PAIRS);
	atomic_store(&empty, false);
	for (int i = 0; i < PAIRS / 2; i++) {
		end(pair[i][0]);
		end(pair[i][1]);
	}

	expect_case("the end of the device");
	atomic_store(&refused, 0);
	CHECK_ZERO(rdma_destroy_id(listener));
	atomic_store(&empty, true);
	CHECK(ip("link del v0"));
	for (int i = PAIRS / 2; i < PAIRS; i++) {
		EXPECT_EQ(cm_pass(channel, RDMA_CM_EVENT_DEVICE_REMOVAL), 0);
		EXPECT_EQ(cm_pass(channel, RDMA_CM_EVENT_DEVICE_REMOVAL), 0);
	}
	atomic_store(&empty, false);
	EXPECT(atomic_load(&refused) >= PAIRS);
	for (int i = PAIRS / 2; i < PAIRS; i++) {
		end(pair[i][0]);
		end(pair[i][1]);
	}
	rdma_destroy_event_channel(channel);
	return expect_done();
}

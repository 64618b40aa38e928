/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ADDR_CHANGE: the interface gets another hardware address, or the address of an id leaves it or
 * moves to another interface. Each id that is bound there is told, once for each change; ids of other
 * addresses, and those of no device, are not.
 */
#include <stdlib.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "cm.h"
#include "support/check.h"
#include "support/network.h"

enum { PORT = 7250, PAUSE_US = 200000 };

#define MOVING_V4 "192.0.2.7"

static struct rdma_event_channel *channel;

static struct rdma_cm_id *bound(const char *address, uint16_t port)
{
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);

	CHECK_ZERO(rdma_bind_addr(id, cm_address(address, port)));
	CHECK_ZERO(rdma_listen(id, 1));
	return id;
}

static void told(struct rdma_cm_id *id)
{
	struct rdma_cm_event *event = cm_event(channel, RDMA_CM_EVENT_ADDR_CHANGE);

	EXPECT(event->id == id);
	EXPECT_EQ(event->status, 0);
	CHECK_ZERO(rdma_ack_cm_event(event));
}

static void nobody_told(void)
{
	usleep(PAUSE_US);
	EXPECT(!cm_waits(channel));
}

int main(void)
{
	struct rdma_cm_id *fixed, *moving, *everywhere, *again;

	cm_network();
	CHECK_ZERO(setenv("VERBATIM_DEVICES", "vb_v0,vb_v1", 1));
	CHECK(ip("addr add %s/32 dev v0", MOVING_V4));
	channel = rdma_create_event_channel();
	CHECK(channel);
	fixed = bound(OWN_V4, PORT);
	moving = bound(MOVING_V4, PORT);
	everywhere = bound("0.0.0.0", PORT + 1);
	nobody_told();

	expect_case("an address vanishes: its ids are told, once");
	CHECK(ip("addr del %s/32 dev v0", MOVING_V4));
	told(moving);
	nobody_told();

	expect_case("it comes back, which is none of the program's business, and moves");
	CHECK(ip("addr add %s/32 dev v0", MOVING_V4));
	nobody_told();
	CHECK(ip("addr del %s/32 dev v0", MOVING_V4));
	CHECK(ip("addr add %s/32 dev v1", MOVING_V4));
	told(moving);
	nobody_told();

	expect_case("a listener can be made anew where the address is now");
	CHECK_ZERO(rdma_destroy_id(moving));
	again = bound(MOVING_V4, PORT);
	nobody_told();

	expect_case("another hardware address: the interface's ids are told");
	CHECK(ip("link set dev v0 address 02:00:00:00:00:77"));
	told(fixed);
	nobody_told();
	CHECK(ip("link set dev v1 address 02:00:00:00:00:78"));
	told(again);
	nobody_told();

	CHECK_ZERO(rdma_destroy_id(fixed));
	CHECK_ZERO(rdma_destroy_id(again));
	CHECK_ZERO(rdma_destroy_id(everywhere));
	rdma_destroy_event_channel(channel);
	return expect_done();
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The device list, the GID table and the port follow the network interfaces: in a network namespace
 * of its own the test adds and removes addresses and takes the link down, and waits for the events.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "support/check.h"
#include "support/endpoint.h"
#include "support/network.h"

static void devices(void)
{
	struct ibv_device **list;
	int n;

	expect_case("devices: those that are up and have an address, lo last");
	list = ibv_get_device_list(&n);
	CHECK(list);
	EXPECT_EQ(n, 2);
	EXPECT(n > 0 && !strcmp(ibv_get_device_name(list[0]), "vb_v0"));
	EXPECT(n > 1 && !strcmp(ibv_get_device_name(list[1]), "vb_lo"));
	ibv_free_device_list(list);
}

static void get_gid(const char *address, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[10] = gid->raw[11] = 0xff;
	CHECK(inet_pton(AF_INET, address, gid->raw + 12) == 1);
}

/* The index of an address in the table, or -1. */
static int find(struct ibv_context *ctx, const char *address)
{
	struct ibv_port_attr port;
	union ibv_gid gid, shown;

	get_gid(address, &gid);
	CHECK(ibv_query_port(ctx, 1, &port) == 0);
	for (int i = 0; i < port.gid_tbl_len; i++) {
		CHECK(ibv_query_gid(ctx, 1, i, &shown) == 0);
		if (!memcmp(&gid, &shown, sizeof(gid)))
			return i;
	}
	return -1;
}

static enum ibv_port_state state(struct ibv_context *ctx)
{
	struct ibv_port_attr port;

	CHECK(ibv_query_port(ctx, 1, &port) == 0);
	return port.state;
}

/* Waits for an event of this type at port 1; others on the way are taken too. */
static bool wait_event(struct ibv_context *ctx, enum ibv_event_type type)
{
	struct pollfd poller = {.fd = ctx->async_fd, .events = POLLIN};
	struct ibv_async_event event;

	while (poll(&poller, 1, EP_WAIT_MS) == 1 && !ibv_get_async_event(ctx, &event)) {
		ibv_ack_async_event(&event);
		if (event.event_type == type)
			return EXPECT_EQ(event.element.port_num, 1);
	}
	return false;
}

/* Asks first, polls then: with no queue pair there, asking makes the library watch the links. */
static void drain(struct ibv_context *ctx)
{
	struct pollfd poller = {.fd = ctx->async_fd, .events = POLLIN};
	struct ibv_async_event event;

	do {
		while (!ibv_get_async_event(ctx, &event))
			ibv_ack_async_event(&event);
	} while (poll(&poller, 1, EP_QUIET_MS) == 1);
}

static void addresses(struct ibv_context *ctx)
{
	struct ibv_gid_entry entry;
	int first, second;

	expect_case("an address added");
	first = find(ctx, "192.0.2.1");
	CHECK(first >= 0);
	EXPECT_EQ(find(ctx, "198.51.100.1"), -1);
	CHECK(ip("addr add 198.51.100.1/24 dev v0"));
	EXPECT(wait_event(ctx, IBV_EVENT_GID_CHANGE));
	second = find(ctx, "198.51.100.1");
	EXPECT(second > 0);
	drain(ctx);

	expect_case("an address removed leaves a hole");
	CHECK(ip("addr del 192.0.2.1/24 dev v0"));
	EXPECT(wait_event(ctx, IBV_EVENT_GID_CHANGE));
	EXPECT_EQ(find(ctx, "192.0.2.1"), -1);
	EXPECT_EQ(find(ctx, "198.51.100.1"), second);
	EXPECT_EQ(ibv_query_gid_ex(ctx, 1, (uint32_t)first, &entry, 0), ENODATA);
	drain(ctx);

	expect_case("an address comes back, the other stays where it was");
	CHECK(ip("addr add 192.0.2.1/24 dev v0"));
	EXPECT(wait_event(ctx, IBV_EVENT_GID_CHANGE));
	EXPECT(find(ctx, "192.0.2.1") >= 0);
	EXPECT_EQ(find(ctx, "198.51.100.1"), second);
	CHECK(ip("addr del 198.51.100.1/24 dev v0"));
	EXPECT(wait_event(ctx, IBV_EVENT_GID_CHANGE));
	drain(ctx);
}

static void link_state(struct ibv_context *ctx)
{
	expect_case("link down");
	EXPECT_EQ(state(ctx), IBV_PORT_ACTIVE);
	CHECK(ip("link set v0 down"));
	EXPECT(wait_event(ctx, IBV_EVENT_PORT_ERR));
	EXPECT_EQ(state(ctx), IBV_PORT_DOWN);
	drain(ctx);
	expect_case("link up");
	CHECK(ip("link set v0 up"));
	EXPECT(wait_event(ctx, IBV_EVENT_PORT_ACTIVE));
	EXPECT_EQ(state(ctx), IBV_PORT_ACTIVE);
}

/* A connection over the port goes on through all of it: packets of one host need no link. */
static void traffic(struct endpoint *ep, const char *when)
{
	struct ibv_send_wr wr = ep_wr(IBV_WR_SEND, 1, NULL, 0);
	struct ibv_wc wc;

	expect_case("traffic %s", when);
	CHECK(ep_post_recv(ep, 1, NULL, 0) == 0);
	CHECK(ep_post_send(ep, &wr) == 0);
	EXPECT_STATUS(ep_poll_one(ep, EP_SEND_CQ, &wc), IBV_WC_SUCCESS);
	EXPECT_STATUS(ep_poll_one(ep, EP_RECV_CQ, &wc), IBV_WC_SUCCESS);
}

int main(int argc, char **argv)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct ibv_context *ctx;
	struct endpoint ep;

	ep_main(argc, argv);
	network_with_pair();
	devices();
	CHECK(setenv("VB_TEST_DEVICE", "vb_v0", 1) == 0);
	ctx = device_open();
	CHECK(fcntl(ctx->async_fd, F_SETFL, O_NONBLOCK) == 0);
	/* First without any queue pair, as ibv_asyncwatch does, then beside one. */
	drain(ctx);
	addresses(ctx);
	link_state(ctx);
	ep_open(&ep, &config, EP_HERE);
	ep_link(&ep, &ep);
	traffic(&ep, "before");
	addresses(ctx);
	traffic(&ep, "after the addresses changed");
	link_state(ctx);
	traffic(&ep, "after the link was down");
	ep_close(&ep);
	expect_case("close");
	EXPECT_EQ(ibv_close_device(ctx), 0);
	return expect_done();
}

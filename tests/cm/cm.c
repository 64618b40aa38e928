/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "cm.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"
#include "support/network.h"

enum { PATIENCE_MS = 20000, TIMEOUT_MS = 20000 };

void cm_network(void)
{
	unsetenv("VB_TEST_DEVICE");
	CHECK_ZERO(setenv("VERBATIM_DEVICES", "vb_v0", 1)); /* lo has none then */
	network_with_pair();
	CHECK(ip("addr add %s/64 dev v0 nodad", OWN_V6));
}

struct sockaddr *cm_address(const char *text, uint16_t port)
{
	static struct sockaddr_storage kept[8];
	static unsigned int next;
	struct sockaddr_storage *addr = &kept[next++ % 8];
	struct sockaddr_in *v4 = (struct sockaddr_in *)addr;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)addr;

	memset(addr, 0, sizeof(*addr));
	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
	} else {
		CHECK_EQ(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
	}
	return (struct sockaddr *)addr;
}

struct rdma_cm_id *cm_id(struct rdma_event_channel *channel, enum rdma_port_space ps)
{
	struct rdma_cm_id *id = NULL;

	CHECK_ZERO(rdma_create_id(channel, &id, NULL, ps));
	return id;
}

static bool wait_for(struct rdma_event_channel *channel, int ms)
{
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};

	return poll(&fd, 1, ms) == 1;
}

bool cm_waits(struct rdma_event_channel *channel)
{
	return wait_for(channel, 0);
}

struct rdma_cm_event *cm_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = NULL;

	CHECK_SAY(wait_for(channel, PATIENCE_MS), "no event came; wanted %s", rdma_event_str(type));
	CHECK_ZERO(rdma_get_cm_event(channel, &event));
	CHECK_SAY(event->event == type, "the event is %s (status %d), wanted %s",
		  rdma_event_str(event->event), event->status, rdma_event_str(type));
	return event;
}

int cm_pass(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = cm_event(channel, type);
	int status = event->status;

	CHECK_ZERO(rdma_ack_cm_event(event));
	return status;
}

struct rdma_cm_id *cm_routed(struct rdma_event_channel *channel, enum rdma_port_space ps,
			     const char *to, uint16_t port)
{
	struct rdma_cm_id *id = cm_id(channel, ps);

	CHECK_ZERO(rdma_resolve_addr(id, NULL, cm_address(to, port), TIMEOUT_MS));
	if (channel)
		CHECK_ZERO(cm_pass(channel, RDMA_CM_EVENT_ADDR_RESOLVED));
	CHECK_ZERO(rdma_resolve_route(id, TIMEOUT_MS));
	if (channel)
		CHECK_ZERO(cm_pass(channel, RDMA_CM_EVENT_ROUTE_RESOLVED));
	return id;
}

void cm_make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	CHECK_ZERO(rdma_create_qp(id, NULL, &attr));
}

void cm_connect_pair(struct rdma_event_channel *channel, uint16_t port, struct rdma_cm_id *pair[2])
{
	struct rdma_conn_param param = {.retry_count = 7};
	struct rdma_cm_event *event;

	pair[0] = cm_routed(channel, RDMA_PS_TCP, OWN_V4, port);
	cm_make_qp(pair[0]);
	CHECK_ZERO(rdma_connect(pair[0], &param));
	event = cm_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	pair[1] = event->id;
	cm_make_qp(pair[1]);
	CHECK_ZERO(rdma_accept(pair[1], &param));
	CHECK_ZERO(rdma_ack_cm_event(event));
	CHECK_ZERO(cm_pass(channel, RDMA_CM_EVENT_ESTABLISHED));
	CHECK_ZERO(cm_pass(channel, RDMA_CM_EVENT_ESTABLISHED));
}

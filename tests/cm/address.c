/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdma_bind_addr(3), ports, rdma_resolve_addr(3), rdma_resolve_route(3), options: what they fill in,
 * and what they refuse, in each state before a connection.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/ib.h>

#include "cm.h"
#include "support/check.h"
#include "support/network.h"

enum { MS = 2000 };

static struct rdma_event_channel *channel;

static void test_bind(void)
{
	static const struct {
		const char *address;
		uint16_t port;
		int err;
		bool device; /* the id has it afterwards */
	} rows[] = {
		{OWN_V4, 0, 0, true},
		{OWN_V6, 0, 0, true},
		{OWN_V4, 7000, 0, true},
		{"0.0.0.0", 0, 0, false},
		{"::", 7001, 0, false},
		{"127.0.0.1", 7002, 0, false},
		{"::1", 0, 0, false},
		{OTHER_V4, 0, EADDRNOTAVAIL, false},
		{"2001:db8::1", 0, EADDRNOTAVAIL, false},
		{"fe80::1", 0, EINVAL, false}, /* without its interface */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);
		struct sockaddr *addr = cm_address(rows[i].address, rows[i].port);

		expect_case("bind_addr %s, port %u", rows[i].address, rows[i].port);
		EXPECT_EQ(rdma_get_local_addr(id)->sa_family, AF_UNSPEC);
		if (rows[i].err) {
			EXPECT_MINUS1(rdma_bind_addr(id, addr), rows[i].err);
			EXPECT_EQ(rdma_get_local_addr(id)->sa_family, AF_UNSPEC);
		} else {
			EXPECT_EQ(rdma_bind_addr(id, addr), 0);
			EXPECT_EQ(rdma_get_local_addr(id)->sa_family, addr->sa_family);
			EXPECT(rdma_get_src_port(id) != 0);
			EXPECT(!rows[i].port || ntohs(rdma_get_src_port(id)) == rows[i].port);
			EXPECT_MINUS1(rdma_bind_addr(id, addr), EINVAL);
		}
		EXPECT_EQ(id->verbs != NULL, rows[i].device);
		EXPECT_EQ(id->pd != NULL, rows[i].device);
		EXPECT_EQ(id->port_num, rows[i].device);
		EXPECT_EQ(rdma_get_dst_port(id), 0);
		CHECK_ZERO(rdma_destroy_id(id));
	}
}

static void test_bind_other(void)
{
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);
	struct sockaddr_ib ib = {.sib_family = AF_IB, .sib_addr.ib_u.uib_addr8 = {0xfe, 0x80}};
	struct sockaddr strange = {.sa_family = AF_UNIX};

	expect_case("bind_addr of other families");
	EXPECT_MINUS1(rdma_bind_addr(id, (struct sockaddr *)&ib), ENODEV);
	EXPECT_MINUS1(rdma_bind_addr(id, &strange), EINVAL);
	EXPECT_MINUS1(rdma_bind_addr(id, NULL), EINVAL);
	EXPECT_MINUS1(rdma_bind_addr(NULL, &strange), EINVAL);
	CHECK_ZERO(rdma_destroy_id(id));
	CHECK(ip("addr add 198.51.100.1/24 dev lo"));
	id = cm_id(channel, RDMA_PS_TCP);
	expect_case("bind_addr of an interface without a device");
	EXPECT_MINUS1(rdma_bind_addr(id, cm_address("198.51.100.1", 0)), ENODEV);
	CHECK_ZERO(rdma_destroy_id(id));
}

static int bind_with(enum rdma_port_space ps, const char *address, int reuse, int afonly,
		     struct rdma_cm_id **id)
{
	*id = cm_id(channel, ps);
	if (reuse)
		CHECK_ZERO(rdma_set_option(*id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &reuse,
					   sizeof(reuse)));
	if (afonly)
		CHECK_ZERO(rdma_set_option(*id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &afonly,
					   sizeof(afonly)));
	errno = 0;
	return rdma_bind_addr(*id, cm_address(address, 7010)) ? errno : 0;
}

/* The rules themselves are tests/unit/cm/port_rule.c. */
static void test_ports(void)
{
	static const struct {
		const char *first, *second;
		enum rdma_port_space ps; /* of the second */
		int reuse, afonly;
		int bind, listen; /* of the second, while the first listens */
	} rows[] = {
		{OWN_V4, OWN_V4, RDMA_PS_TCP, 0, 0, EADDRINUSE, 0},
		{OWN_V4, OWN_V4, RDMA_PS_UDP, 0, 0, 0, 0},
		{OWN_V4, "0.0.0.0", RDMA_PS_TCP, 0, 0, EADDRNOTAVAIL, 0},
		{OWN_V4, OWN_V6, RDMA_PS_TCP, 0, 0, 0, 0},
		{OWN_V4, OWN_V4, RDMA_PS_TCP, 1, 0, 0, EADDRINUSE},
		{"0.0.0.0", "::", RDMA_PS_TCP, 0, 0, EADDRNOTAVAIL, 0},
		{"0.0.0.0", "::", RDMA_PS_TCP, 0, 1, 0, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rdma_cm_id *a, *b;

		expect_case("port of %s wanted by %s, space 0x%x%s%s", rows[i].first,
			    rows[i].second, rows[i].ps, rows[i].reuse ? ", REUSEADDR" : "",
			    rows[i].afonly ? ", AFONLY" : "");
		CHECK_ZERO(bind_with(RDMA_PS_TCP, rows[i].first, rows[i].reuse, 0, &a));
		if (!rows[i].reuse)
			CHECK_ZERO(rdma_listen(a, 1));
		EXPECT_EQ(bind_with(rows[i].ps, rows[i].second, rows[i].reuse, rows[i].afonly, &b),
			  rows[i].bind);
		if (!rows[i].bind && rows[i].listen)
			EXPECT_MINUS1(rdma_listen(b, 1), rows[i].listen);
		else if (!rows[i].bind)
			EXPECT_EQ(rdma_listen(b, 1), 0);
		CHECK_ZERO(rdma_destroy_id(b));
		CHECK_ZERO(rdma_destroy_id(a));
		expect_case("the port is free again");
		EXPECT_EQ(bind_with(RDMA_PS_TCP, rows[i].first, 0, 0, &a), 0);
		CHECK_ZERO(rdma_destroy_id(a));
	}
}

static void test_resolve(void)
{
	static const struct {
		const char *source, *destination;
		int err;                       /* of the call */
		enum rdma_cm_event_type event; /* if there is none */
		int status;
	} rows[] = {
		{NULL, OTHER_V4, 0, RDMA_CM_EVENT_ADDR_RESOLVED, 0},
		{OWN_V4, OTHER_V4, 0, RDMA_CM_EVENT_ADDR_RESOLVED, 0},
		{NULL, OWN_V4, 0, RDMA_CM_EVENT_ADDR_RESOLVED, 0},
		{NULL, OWN_V6, 0, RDMA_CM_EVENT_ADDR_RESOLVED, 0},
		{"0.0.0.0", OWN_V4, 0, RDMA_CM_EVENT_ADDR_RESOLVED, 0},
		{NULL, "127.0.0.1", 0, RDMA_CM_EVENT_ADDR_RESOLVED, 0},
		{NULL, "::1", 0, RDMA_CM_EVENT_ADDR_RESOLVED, 0},
		{OWN_V4, "0.0.0.0", 0, RDMA_CM_EVENT_ADDR_RESOLVED, 0},
		{OWN_V4, "230.1.2.3", 0, RDMA_CM_EVENT_ADDR_RESOLVED, 0},
		{NULL, "203.0.113.5", ENETUNREACH, 0, 0},
		{NULL, "198.51.100.1", 0, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV}, /* of lo */
		{OWN_V4, OWN_V6, EINVAL, 0, 0},
		{NULL, "fe80::9", EINVAL, 0, 0},
		{OTHER_V4, OWN_V4, EADDRNOTAVAIL, 0, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *from = rows[i].source;
		struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);
		struct sockaddr *to = cm_address(rows[i].destination, 7020);
		struct sockaddr *source = from ? cm_address(from, 0) : NULL;
		const struct rdma_ib_addr *gids = &id->route.addr.addr.ibaddr;

		expect_case("resolve_addr from %s to %s", from ? from : "NULL",
			    rows[i].destination);
		if (rows[i].err) {
			EXPECT_MINUS1(rdma_resolve_addr(id, source, to, MS), rows[i].err);
			CHECK_ZERO(rdma_destroy_id(id));
			continue;
		}
		EXPECT_EQ(rdma_resolve_addr(id, source, to, MS), 0);
		EXPECT_EQ(cm_pass(channel, rows[i].event), rows[i].status);
		EXPECT_EQ(id->verbs != NULL, !rows[i].status);
		if (!rows[i].status) {
			EXPECT_EQ(rdma_get_local_addr(id)->sa_family, to->sa_family);
			EXPECT(rdma_get_src_port(id) != 0);
			EXPECT_EQ(ntohs(rdma_get_dst_port(id)), 7020);
			EXPECT(id->pd && id->port_num == 1);
			EXPECT(gids->sgid.global.interface_id != 0);
			EXPECT(gids->dgid.global.interface_id != 0);
			EXPECT_EQ(ntohs(gids->pkey), 0xffff);
			EXPECT_MINUS1(rdma_resolve_addr(id, NULL, to, MS), EINVAL);
		} else { /* it may be tried again */
			EXPECT_EQ(rdma_resolve_addr(id, NULL, cm_address(OWN_V4, 1), MS), 0);
			EXPECT_EQ(cm_pass(channel, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
		}
		CHECK_ZERO(rdma_destroy_id(id));
	}
}

static void test_loopback(void)
{
	struct rdma_cm_id *id = cm_routed(channel, RDMA_PS_TCP, "127.0.0.1", 7020);

	expect_case("a loopback destination means the device's address on both sides");
	EXPECT(!memcmp(&id->route.addr.src_sin.sin_addr,
		       &((struct sockaddr_in *)cm_address(OWN_V4, 0))->sin_addr, 4));
	EXPECT(!memcmp(&id->route.addr.dst_sin.sin_addr, &id->route.addr.src_sin.sin_addr, 4));
	CHECK_ZERO(rdma_destroy_id(id));
}

static void test_route(void)
{
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);
	const struct ibv_sa_path_rec *path;
	uint8_t tos = 0x48, timeout = 21;

	expect_case("resolve_route in the wrong state");
	EXPECT_MINUS1(rdma_resolve_route(id, MS), EINVAL);
	CHECK_ZERO(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)));
	CHECK_ZERO(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
				   sizeof(timeout)));
	CHECK_ZERO(rdma_resolve_addr(id, NULL, cm_address(OTHER_V4, 7020), MS));
	EXPECT_EQ(cm_pass(channel, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	EXPECT_MINUS1(rdma_resolve_route(id, 0), EINVAL);
	EXPECT(!id->route.path_rec && !id->route.num_paths);

	expect_case("the path record");
	EXPECT_EQ(rdma_resolve_route(id, MS), 0);
	EXPECT_EQ(cm_pass(channel, RDMA_CM_EVENT_ROUTE_RESOLVED), 0);
	CHECK_EQ(id->route.num_paths, 1);
	path = id->route.path_rec;
	EXPECT(!memcmp(&path->sgid, &id->route.addr.addr.ibaddr.sgid, 16));
	EXPECT(!memcmp(&path->dgid, &id->route.addr.addr.ibaddr.dgid, 16));
	EXPECT_EQ(path->hop_limit, 64);
	EXPECT_EQ(path->reversible, 1);
	EXPECT_EQ(ntohs(path->pkey), 0xffff);
	EXPECT_EQ(path->traffic_class, tos);
	EXPECT_EQ(path->mtu, IBV_MTU_1024); /* of an interface with 1500 bytes */
	EXPECT_EQ(path->mtu_selector, 2);
	EXPECT_EQ(path->packet_life_time, timeout - 1);
	EXPECT_EQ(ntohl(path->flow_label), (ntohs(rdma_get_src_port(id)) * 31u + 7020) & 0xfffff);
	EXPECT(path->rate != 0);
	EXPECT_MINUS1(rdma_resolve_route(id, MS), EINVAL);
	CHECK_ZERO(rdma_destroy_id(id));
}

static void test_options(void)
{
	static const struct {
		int level, name;
		size_t length;
		enum rdma_port_space ps;
		uint8_t value;
		int err;
	} rows[] = {
		{RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 1, RDMA_PS_TCP, 1, 0},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 4, RDMA_PS_TCP, 1, EINVAL},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 4, RDMA_PS_TCP, 1, 0},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 1, RDMA_PS_TCP, 1, EINVAL},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 4, RDMA_PS_TCP, 1, 0},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 8, RDMA_PS_TCP, 1, EINVAL},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 1, RDMA_PS_TCP, 31, 0},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 1, RDMA_PS_TCP, 32, EINVAL},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 1, RDMA_PS_UDP, 14, EINVAL},
		{RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 2, RDMA_PS_TCP, 14, EINVAL},
		{RDMA_OPTION_ID, 4, 4, RDMA_PS_TCP, 1, ENOSYS},
		{RDMA_OPTION_ID, -1, 4, RDMA_PS_TCP, 1, ENOSYS},
		{RDMA_OPTION_IB, 0, 4, RDMA_PS_TCP, 1, ENOSYS},
		{2, 0, 4, RDMA_PS_TCP, 1, ENOSYS},
		{RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, 71, RDMA_PS_TCP, 0, EINVAL},
		{RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, 0, RDMA_PS_TCP, 0, EINVAL},
		{RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, 72, RDMA_PS_TCP, 0, EINVAL}, /* idle */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rdma_cm_id *id = cm_id(channel, rows[i].ps);
		uint8_t value[80] = {rows[i].value};

		expect_case("set_option level %d, option %d, %zu bytes, value %u, space 0x%x",
			    rows[i].level, rows[i].name, rows[i].length, rows[i].value, rows[i].ps);
		if (rows[i].err)
			EXPECT_MINUS1(rdma_set_option(id, rows[i].level, rows[i].name, value,
						      rows[i].length),
				      rows[i].err);
		else
			EXPECT_EQ(rdma_set_option(id, rows[i].level, rows[i].name, value,
						  rows[i].length),
				  0);
		EXPECT_MINUS1(rdma_set_option(id, rows[i].level, rows[i].name, NULL, 4), EINVAL);
		CHECK_ZERO(rdma_destroy_id(id));
	}
}

static void test_path_option(void)
{
	struct rdma_cm_id *id = cm_id(channel, RDMA_PS_TCP);
	struct ibv_path_data data = {.path = {.mtu = 2 << 6 | IBV_MTU_512, .tclass = 7}};

	CHECK_ZERO(rdma_resolve_addr(id, NULL, cm_address(OTHER_V4, 7020), MS));
	CHECK_ZERO(cm_pass(channel, RDMA_CM_EVENT_ADDR_RESOLVED));
	data.path.sgid = id->route.addr.addr.ibaddr.sgid;
	data.path.dgid = id->route.addr.addr.ibaddr.dgid;
	data.path.pkey = htons(0xffff);
	data.path.flowlabel_hoplimit = htonl(0x12345u << 8 | 9);
	expect_case("a path of the program takes the place of resolve_route");
	EXPECT_MINUS1(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &data, sizeof(data)),
		      EINVAL);
	data.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
	EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &data, sizeof(data)), 0);
	EXPECT_EQ(cm_pass(channel, RDMA_CM_EVENT_ROUTE_RESOLVED), 0);
	CHECK_EQ(id->route.num_paths, 1);
	EXPECT_EQ(id->route.path_rec->mtu, IBV_MTU_512);
	EXPECT_EQ(id->route.path_rec->hop_limit, 9);
	EXPECT_EQ(ntohl(id->route.path_rec->flow_label), 0x12345);
	EXPECT_EQ(id->route.path_rec->traffic_class, 7);
	CHECK_ZERO(rdma_destroy_id(id));
}

static void test_shared_device(void)
{
	struct rdma_cm_id *a = cm_routed(channel, RDMA_PS_TCP, OWN_V4, 1);
	struct rdma_cm_id *b = cm_routed(channel, RDMA_PS_UDP, OWN_V6, 1);
	int count = -1;
	struct ibv_context **list = rdma_get_devices(&count);

	expect_case("one context and one protection domain for each device");
	EXPECT(a->verbs == b->verbs && a->pd == b->pd);
	CHECK(list && count >= 1);
	EXPECT(list[0] == a->verbs && !list[count]);
	rdma_free_devices(list);
	list = rdma_get_devices(NULL);
	CHECK(list);
	EXPECT(list[0] == a->verbs);
	rdma_free_devices(list);
	CHECK_ZERO(rdma_destroy_id(a));
	CHECK_ZERO(rdma_destroy_id(b));
}

static void test_synchronous(void)
{
	struct rdma_cm_id *id = cm_id(NULL, RDMA_PS_TCP);

	expect_case("synchronous ids have the event of the last call");
	EXPECT(id->channel && !id->event);
	EXPECT_EQ(rdma_resolve_addr(id, NULL, cm_address(OWN_V4, 1), MS), 0);
	CHECK(id->event);
	EXPECT_EQ(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	EXPECT_EQ(rdma_resolve_route(id, MS), 0);
	EXPECT_EQ(id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	CHECK_ZERO(rdma_destroy_id(id));
	id = cm_id(NULL, RDMA_PS_TCP);
	EXPECT_MINUS1(rdma_resolve_addr(id, NULL, cm_address("198.51.100.1", 1), MS), ENODEV);
	EXPECT_EQ(id->event->event, RDMA_CM_EVENT_ADDR_ERROR);
	CHECK_ZERO(rdma_destroy_id(id));
}

int main(void)
{
	cm_network();
	channel = rdma_create_event_channel();
	CHECK(channel);
	test_bind();
	test_bind_other();
	test_ports();
	test_resolve();
	test_loopback();
	test_route();
	test_options();
	test_path_option();
	test_shared_device();
	test_synchronous();
	rdma_destroy_event_channel(channel);
	return expect_done();
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The ICRC covers the IPv4 identification, which the kernel fills in and no socket shows: each
 * packet on the wire, of a burst and sent singly, must carry the one that its ICRC was made with.
 * The interface is told to take no bursts, so that the kernel cuts them, and the packets are read
 * with their IPv4 headers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "udp/send.h"
#include "udp/socket.h"
#include "unit/udp/net.h"
#include "wire/icrc.h"
#include "wire/packet.h"

#define LOOPBACK 1 /* interface */
#define MTU      1024u
#define SEGMENTS 40u
#define TAIL     7u

static bool netlink_ok(const void *request, size_t length)
{
	struct {
		struct nlmsghdr header;
		struct nlmsgerr answer;
		uint8_t rest[256];
	} in;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	bool ok = fd >= 0 && send(fd, request, length, 0) == (ssize_t)length &&
		  recv(fd, &in, sizeof(in), 0) > 0 && in.header.nlmsg_type == NLMSG_ERROR &&
		  in.answer.error == 0;

	if (fd >= 0)
		close(fd);
	return ok;
}

/* The interface takes single packets only. */
static void refuse_bursts(void)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg link;
		struct rtattr attribute;
		uint32_t segments;
	} request = {
		.header = {.nlmsg_len = sizeof(request),
			   .nlmsg_type = RTM_NEWLINK,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
		.link = {.ifi_index = LOOPBACK},
		.attribute = {.rta_len = RTA_LENGTH(sizeof(uint32_t)),
			      .rta_type = IFLA_GSO_MAX_SEGS},
		.segments = 1,
	};

	if (netlink_ok(&request, sizeof(request)))
		return;
	fprintf(stderr, "this kernel does not let a limit be set for bursts of an interface\n");
	exit(77);
}

static int open_tap(void)
{
	struct sockaddr_ll where = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP), .sll_ifindex = LOOPBACK};
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_IP));

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&where, sizeof(where)), 0);
	return fd;
}

/* The next packet to the link's port, as it arrived; false when there is none. */
static bool next_packet(int tap, uint8_t *data, size_t size, struct iphdr *ip, struct udphdr *udp)
{
	for (;;) {
		struct sockaddr_ll from = {0};
		socklen_t length = sizeof(from);
		ssize_t n =
			recvfrom(tap, data, size, MSG_DONTWAIT, (struct sockaddr *)&from, &length);

		if (n < 0)
			return false;
		if (from.sll_pkttype != PACKET_HOST)
			continue;
		memcpy(ip, data, sizeof(*ip));
		memcpy(udp, data + sizeof(*ip), sizeof(*udp));
		if (ntohs(udp->dest) == VB_UDP_PORT)
			return true;
	}
}

static void check_packet(const uint8_t *data, const struct iphdr *ip, const struct udphdr *udp)
{
	struct vb_flow flow = {.source_port = ntohs(udp->source),
			       .destination_port = ntohs(udp->dest),
			       .ipv4 = true};
	uint16_t id = ntohs(ip->id);

	assert_int_equal(ip->ihl, 5);
	assert_true(ntohs(ip->frag_off) & 0x4000); /* don't fragment: the ICRC takes it as set */
	net_gid(true, 1, flow.source);
	net_gid(true, 1, flow.destination);
	assert_true(vb_icrc_check(&flow, data + sizeof(*ip) + sizeof(*udp),
				  ntohs(udp->len) - sizeof(*udp), &id));
	assert_int_equal(id, ntohs(ip->id));
}

static void transfer(bool refused)
{
	static uint8_t payload[SEGMENTS * MTU];
	static uint8_t data[1 << 16];
	struct vb_udp_sender sender = {.ipv4 = true, .gso_refused = refused};
	struct vb_path path = {.hop_limit = 64};
	struct vb_run run = {
		.service = VB_SERVICE_RC,
		.op = VB_OP_SEND,
		.flags = VB_RUN_FIRST | VB_RUN_LAST,
		.pkey = 0xffff,
		.segments = SEGMENTS,
		.dest_qpn = 0x1234,
		.length = (SEGMENTS - 1) * MTU + TAIL,
	};
	struct iphdr ip;
	struct udphdr udp;
	uint32_t buffer;
	uint32_t packets = 0;
	int ids = 0;
	int receiver = vb_udp_open_receiver(true, &buffer);
	int tap = open_tap();

	sender.fd = vb_udp_open_sender(true, &sender.port);
	assert_true(receiver >= 0 && sender.fd >= 0);
	net_gid(true, 1, path.sgid);
	net_gid(true, 1, path.dgid);
	memset(payload, 0x3c, sizeof(payload));
	assert_int_equal(vb_udp_send(&sender, &path, 0, &run, MTU, payload), 0);
	net_settle();
	while (next_packet(tap, data, sizeof(data), &ip, &udp)) {
		check_packet(data, &ip, &udp);
		ids |= ip.id;
		packets++;
	}
	assert_int_equal(packets, SEGMENTS);
	/* Otherwise there was no burst, and the test showed nothing of it. */
	assert_int_equal(ids != 0, !sender.gso_refused);
	close(tap);
	close(receiver);
	close(sender.fd);
}

static void test_burst(void **state)
{
	(void)state;
	transfer(false);
}

static void test_singly(void **state)
{
	(void)state;
	transfer(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_burst),
		cmocka_unit_test(test_singly),
	};

	net_enter();
	refuse_bursts();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

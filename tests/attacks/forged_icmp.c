/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: ICMP ends no queue pair. A host of the network says that packets to its address are too
 * long ("fragmentation needed", ICMPv6 "packet too big"), and the kernel believes it for ten
 * minutes; says that it, its port and its protocol cannot be reached, and that time is up. Messages
 * of many packets of 4,096 bytes go on in both directions, over IPv4 and IPv6. Only what the own
 * interface does not carry any more ends a queue pair, and the log says so.
 */
#include <arpa/inet.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/network.h"
#include "support/process.h"

#define NEAR_V4 "192.0.2.1"
#define FAR_V4  "192.0.2.2"
#define NEAR_V6 "2001:db8::1"
#define FAR_V6  "2001:db8::2"

enum { JUMBO = 9000, ORDINARY = 1500, ROCE_PORT = 4791, LENGTH = 64 << 10, ROUNDS = 20 };
/* The least path MTU that the kernel takes from a packet of the family. */
enum { LEAST_V4 = 576, LEAST_V6 = 1280 };

static bool ipv4;

static const char *far_address(void)
{
	return ipv4 ? FAR_V4 : FAR_V6;
}

static void connection_open(struct resources *r, struct endpoint *ep)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	const union ibv_gid mapped = {.raw = {[10] = 0xff, 0xff, 192, 0, 2}};
	int i = 0;

	resources_open(r, 64, false);
	while (memcmp(&r->gid, ipv4 ? mapped.raw : (const uint8_t[]){0x20, 0x01, 0x0d, 0xb8},
		      ipv4 ? 15 : 4))
		resources_use_gid(r, ++i);
	CHECK_EQ(r->mtu, IBV_MTU_4096);
	ep_open_on(ep, r, &config, NULL, (size_t)2 * LENGTH);
}

static void connection_close(struct resources *r, struct endpoint *ep)
{
	ep_close(ep);
	resources_close(r);
}

/* The head of the packet that the message is about: one from `near` to here. */
static size_t quote(uint8_t *to)
{
	struct udphdr udp = {.source = htons(ROCE_PORT), .dest = htons(ROCE_PORT)};
	size_t n;

	udp.len = htons(LENGTH / 16);
	if (ipv4) {
		struct iphdr head = {.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP};

		head.tot_len = htons(sizeof(head) + LENGTH / 16);
		head.frag_off = htons(IP_DF);
		CHECK(inet_pton(AF_INET, NEAR_V4, &head.saddr));
		CHECK(inet_pton(AF_INET, FAR_V4, &head.daddr));
		memcpy(to, &head, n = sizeof(head));
	} else {
		struct ip6_hdr head = {.ip6_flow = htonl(6u << 28), .ip6_nxt = IPPROTO_UDP};

		head.ip6_plen = htons(LENGTH / 16);
		CHECK(inet_pton(AF_INET6, NEAR_V6, &head.ip6_src));
		CHECK(inet_pton(AF_INET6, FAR_V6, &head.ip6_dst));
		memcpy(to, &head, n = sizeof(head));
	}
	memcpy(to + n, &udp, sizeof(udp));
	return n + sizeof(udp);
}

static uint16_t checksum(const uint8_t *bytes, size_t length)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < length; i += 2)
		sum += (uint32_t)(bytes[i] << 8) + bytes[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

/* One message of ICMP to `near`, with the real source address: none has to be spoofed. */
static void forge(uint8_t type, uint8_t code, uint32_t mtu)
{
	struct sockaddr_in to4 = {.sin_family = AF_INET};
	struct sockaddr_in6 to6 = {.sin6_family = AF_INET6};
	uint8_t message[8 + 48] = {type, code};
	size_t length = 8 + quote(message + 8);
	uint32_t field = htonl(mtu);
	int fd = ipv4 ? socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP)
		      : socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6);
	ssize_t sent;

	CHECK(fd >= 0);
	memcpy(message + 4, &field, sizeof(field));
	if (ipv4) {
		uint16_t sum = checksum(message, length);

		memcpy(message + 2, &sum, sizeof(sum));
		CHECK(inet_pton(AF_INET, NEAR_V4, &to4.sin_addr));
		sent = sendto(fd, message, length, 0, (struct sockaddr *)&to4, sizeof(to4));
	} else {
		CHECK(inet_pton(AF_INET6, NEAR_V6, &to6.sin6_addr));
		sent = sendto(fd, message, length, 0, (struct sockaddr *)&to6, sizeof(to6));
	}
	CHECK_EQ(sent, length);
	close(fd);
}

static void forge_too_long(void)
{
	if (ipv4)
		forge(ICMP_DEST_UNREACH, ICMP_FRAG_NEEDED, LEAST_V4);
	else
		forge(ICMP6_PACKET_TOO_BIG, 0, LEAST_V6);
}

static void forge_others(void)
{
	if (ipv4) {
		for (uint8_t code = 0; code <= ICMP_PREC_CUTOFF; code++) {
			if (code != ICMP_FRAG_NEEDED)
				forge(ICMP_DEST_UNREACH, code, 0);
		}
		forge(ICMP_TIME_EXCEEDED, ICMP_EXC_TTL, 0);
		forge(ICMP_PARAMETERPROB, 0, 0);
		return;
	}
	for (uint8_t code = 0; code <= ICMP6_DST_UNREACH_NOPORT; code++)
		forge(ICMP6_DST_UNREACH, code, 0);
	forge(ICMP6_TIME_EXCEEDED, 0, 0);
	forge(ICMP6_PARAM_PROB, ICMP6_PARAMPROB_NEXTHEADER, 0);
}

/* What the kernel takes for the MTU of the path to `far`. */
static int kernel_mtu(void)
{
	struct sockaddr_in to4 = {.sin_family = AF_INET, .sin_port = htons(9)};
	struct sockaddr_in6 to6 = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
	int fd = socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), mtu = 0;
	socklen_t length = sizeof(mtu);

	CHECK(fd >= 0 && inet_pton(AF_INET, FAR_V4, &to4.sin_addr) &&
	      inet_pton(AF_INET6, FAR_V6, &to6.sin6_addr));
	if (ipv4) {
		CHECK_ZERO(connect(fd, (struct sockaddr *)&to4, sizeof(to4)));
		CHECK_ZERO(getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &length));
	} else {
		CHECK_ZERO(connect(fd, (struct sockaddr *)&to6, sizeof(to6)));
		CHECK_ZERO(getsockopt(fd, IPPROTO_IPV6, IPV6_MTU, &mtu, &length));
	}
	close(fd);
	return mtu;
}

static void await_kernel_mtu(int wanted)
{
	uint64_t until = now_ms() + PROCESS_PATIENCE_MS;

	while (kernel_mtu() != wanted) {
		CHECK_SAY(now_ms() < until, "the path MTU to %s is %d, not %d", far_address(),
			  kernel_mtu(), wanted);
		sleep_ms(1);
	}
}

static void done(struct endpoint *ep, uint64_t wr_id)
{
	completion_expect(ep->cq[EP_SEND_CQ], wr_id, IBV_WC_SUCCESS, NULL);
}

/* `near` writes; `far` looks, and reads the same from `near`. */
static void near_rounds(struct endpoint *ep, int sock, int first)
{
	for (int i = first; i < first + ROUNDS; i++) {
		ep_fill(ep, 0, i, LENGTH);
		CHECK_ZERO(ep_write(ep, (uint64_t)i, 0, LENGTH, 0, IBV_SEND_SIGNALED));
		done(ep, (uint64_t)i);
		message_meet(sock);
		message_meet(sock);
	}
}

static void far_rounds(struct endpoint *ep, int sock, int first)
{
	for (int i = first; i < first + ROUNDS; i++) {
		message_meet(sock);
		CHECK(ep_is_filled(ep, 0, i, LENGTH));
		CHECK_ZERO(ep_read(ep, (uint64_t)i, LENGTH, LENGTH, 0, IBV_SEND_SIGNALED));
		done(ep, (uint64_t)i);
		CHECK(ep_is_filled(ep, LENGTH, i, LENGTH));
		message_meet(sock);
	}
}

static int far(int sock, void *unused)
{
	struct resources r;
	struct endpoint ep;

	(void)unused;
	CHECK_ZERO(setenv("VERBATIM_DEVICES", "vb_v1", 1));
	CHECK_ZERO(unshare(CLONE_NEWNET));
	message_meet(sock);
	message_meet(sock);
	CHECK(ip("addr add " FAR_V4 "/24 dev v1") && ip("addr add " FAR_V6 "/64 dev v1 nodad"));
	CHECK(ip("link set lo up") && ip("link set v1 mtu %d up", JUMBO));
	for (int family = 0; family < 2; family++) {
		ipv4 = family == 0;
		promise(ipv4 ? "far, IPv4" : "far, IPv6");
		connection_open(&r, &ep);
		ep_exchange(&ep, sock);
		far_rounds(&ep, sock, 1);
		forge_too_long();
		message_meet(sock);
		far_rounds(&ep, sock, 2);
		forge_others();
		far_rounds(&ep, sock, 3);
		message_meet(sock);
		connection_close(&r, &ep);
	}
	return 0;
}

static int log_begin(void)
{
	char name[64];
	int fd = memfd_create("log", MFD_CLOEXEC);

	CHECK(fd >= 0);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	CHECK_ZERO(setenv("VERBATIM_LOG", "debug", 1));
	CHECK_ZERO(setenv("VERBS_LOG_FILE", name, 1));
	return fd;
}

/* Whether the log has the text behind this place. */
static bool log_has(int fd, off_t from, const char *text)
{
	static char log[1 << 20];
	ssize_t n = pread(fd, log, sizeof(log) - 1, from);

	CHECK(n >= 0);
	log[n] = 0;
	return strstr(log, text) != NULL;
}

static void near_host(int sock, int log)
{
	struct resources r;
	struct endpoint ep;
	off_t from = lseek(log, 0, SEEK_END);

	promise(ipv4 ? "messages go on, IPv4" : "messages go on, IPv6");
	connection_open(&r, &ep);
	ep_exchange(&ep, sock);
	CHECK_EQ(kernel_mtu(), JUMBO);
	near_rounds(&ep, sock, 1);
	message_meet(sock);
	await_kernel_mtu(ipv4 ? LEAST_V4 : LEAST_V6);
	near_rounds(&ep, sock, 2);
	near_rounds(&ep, sock, 3);
	CHECK_EQ(kernel_mtu(), ipv4 ? LEAST_V4 : LEAST_V6);
	CHECK(!log_has(log, from, "Message too long"));

	promise("what the interface does not carry ends the queue pair, and is told");
	CHECK(ip("link set v0 mtu %d", ORDINARY));
	CHECK_ZERO(ep_write(&ep, 99, 0, LENGTH, 0, IBV_SEND_SIGNALED));
	completion_expect(ep.cq[EP_SEND_CQ], 99, IBV_WC_RETRY_EXC_ERR, NULL);
	CHECK(log_has(log, from, "DROP_UNREACHABLE") && log_has(log, from, "Message too long"));
	CHECK(ip("link set v0 mtu %d", JUMBO));
	message_meet(sock);
	connection_close(&r, &ep);
}

int main(void)
{
	struct process other;
	int log;

	watchdog(110);
	network_with_pair();
	CHECK(ip("addr add " NEAR_V6 "/64 dev v0 nodad") && ip("link set v0 mtu %d", JUMBO));
	process_start(&other, far, NULL);
	message_meet(other.sock);
	CHECK(ip("link set v1 netns %d", (int)other.pid));
	message_meet(other.sock);
	CHECK_ZERO(setenv("VERBATIM_DEVICES", "vb_v0", 1));
	log = log_begin();
	for (int family = 0; family < 2; family++) {
		ipv4 = family == 0;
		near_host(other.sock, log);
	}
	process_expect_success(&other, PROCESS_PATIENCE_MS);
	close(log);
	return 0;
}

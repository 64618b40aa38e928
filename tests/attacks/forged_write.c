/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: an RDMA WRITE from another host to a queue pair whose peer is a process of this host
 * changes no byte, and the log says what came and why it was dropped: "WRITE", and that the sender
 * is not the peer; the queue pair works on. One whose engine has a connection to another host, and
 * one whose engine has none.
 */
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/endpoint.h"
#include "support/network.h"
#include "wire/icrc.h"
#include "wire/packet.h"

#define OWN    0xc0000201u /* 192.0.2.1 */
#define FORGER 0xc0000209u

enum {
	IP_BYTES = 20,
	SOURCE_PORT = 55555,
	IDENTIFICATION = 1,
	LENGTH = 64,
	MTU = 1024,
	FRAME_MOST = 400
};
enum { HONEST = 0x11, FORGED = 0x22, LOG_MOST = 1 << 16 };

static int log_file; /* in memory */

static void gid_of(uint32_t address, uint8_t gid[16])
{
	const uint32_t net = htonl(address);

	memset(gid, 0, 10);
	gid[10] = gid[11] = 0xff;
	memcpy(gid + 12, &net, sizeof(net));
}

/* The header of IPv4 in front of `payload` bytes, with its checksum. */
static void write_ipv4(size_t payload, uint8_t head[IP_BYTES])
{
	const uint16_t word[IP_BYTES / 2] = {0x4500,
					     (uint16_t)(IP_BYTES + payload),
					     IDENTIFICATION,
					     IP_DF,
					     64 << 8 | IPPROTO_UDP,
					     0,
					     FORGER >> 16,
					     FORGER & 0xffff,
					     OWN >> 16,
					     OWN & 0xffff};
	uint32_t sum = 0;

	for (size_t i = 0; i < IP_BYTES / 2; i++) {
		head[2 * i] = (uint8_t)(word[i] >> 8);
		head[2 * i + 1] = (uint8_t)word[i];
		sum += word[i];
	}
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	head[10] = (uint8_t)(sum >> 8);
	head[11] = (uint8_t)sum;
}

/* The BTH, the payload and the ICRC of a whole WRITE; their length. */
static size_t write_roce(const struct endpoint *to, uint8_t *at)
{
	const struct vb_run run = {
		.service = VB_SERVICE_RC,
		.op = VB_OP_WRITE,
		.flags = VB_RUN_FIRST | VB_RUN_LAST,
		.pkey = 0xffff,
		.segments = 1,
		.dest_qpn = to->qp->qp_num,
		.psn = to->remote.psn,
		.length = LENGTH,
		.va = to->local.addr,
		.rkey = to->local.rkey,
		.dma_length = LENGTH,
	};
	struct vb_flow flow = {
		.source_port = SOURCE_PORT, .destination_port = VB_UDP_PORT, .ipv4 = true};
	size_t head = vb_packet_header(&run, 0, MTU, at);
	size_t bytes = head + LENGTH + VB_ICRC_BYTES;
	uint32_t crc;

	memset(at + head, FORGED, LENGTH);
	gid_of(FORGER, flow.source);
	gid_of(OWN, flow.destination);
	crc = vb_icrc_begin(&flow, IDENTIFICATION, bytes, at, head);
	crc = vb_icrc_add(crc, at + head, LENGTH);
	vb_icrc_end(crc, 0, at + head + LENGTH);
	return bytes;
}

/* The address of v0, from which a frame that leaves v1 comes in. */
static void address_of_v0(uint8_t mac[ETH_ALEN])
{
	struct ifreq request = {.ifr_name = "v0"};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && ioctl(fd, SIOCGIFHWADDR, &request) == 0);
	memcpy(mac, request.ifr_hwaddr.sa_data, ETH_ALEN);
	close(fd);
}

static void inject(const struct endpoint *to)
{
	uint8_t frame[FRAME_MOST] = {0}, *at = frame + ETH_HLEN;
	struct sockaddr_ll link = {.sll_family = AF_PACKET};
	struct udphdr udp = {.source = htons(SOURCE_PORT), .dest = htons(VB_UDP_PORT)};
	struct ether_header ether = {.ether_type = htons(ETHERTYPE_IP)};
	size_t bytes = sizeof(udp) + write_roce(to, at + IP_BYTES + sizeof(udp));
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	udp.len = htons((uint16_t)bytes);
	address_of_v0(ether.ether_dhost);
	memcpy(frame, &ether, sizeof(ether));
	write_ipv4(bytes, at);
	memcpy(at + IP_BYTES, &udp, sizeof(udp));
	bytes += ETH_HLEN + IP_BYTES;
	link.sll_ifindex = (int)if_nametoindex("v1");
	CHECK(fd >= 0);
	CHECK_EQ(sendto(fd, frame, bytes, 0, (struct sockaddr *)&link, sizeof(link)), bytes);
	close(fd);
}

/* The line of the log about the queue pair, once it is there. */
static const char *logged(const struct endpoint *to, struct ibv_cq *driven)
{
	static char text[LOG_MOST], words[64];
	struct ibv_wc wc;
	char *line, *end;

	snprintf(words, sizeof(words), "packet for qp 0x%x", to->qp->qp_num);
	for (uint64_t begun = now_us();; wait_once(begun)) {
		ssize_t n = pread(log_file, text, sizeof(text) - 1, 0);

		CHECK(n >= 0);
		text[n] = '\0';
		line = strstr(text, words);
		end = line ? strchr(line, '\n') : NULL;
		if (end)
			break;
		CHECK(ibv_poll_cq(driven, 1, &wc) == 0);
	}
	*end = '\0';
	while (line > text && line[-1] != '\n')
		line--;
	return line;
}

static void works_on(struct endpoint *a, struct endpoint *b)
{
	memset(a->buffer, HONEST, LENGTH);
	CHECK_ZERO(ep_write(a, 1, 0, LENGTH, 0, IBV_SEND_SIGNALED));
	completion_expect(a->qp->send_cq, 1, IBV_WC_SUCCESS, NULL);
	EXPECT(ep_is_filled(b, 0, HONEST, LENGTH));
}

static void forged(const char *what, struct resources *r, struct ibv_cq *cq)
{
	struct ep_config config = ep_defaults(IBV_QPT_RC);
	struct endpoint a, b;
	const char *line;

	expect_case("%s", what);
	config.send_cq = config.recv_cq = cq;
	ep_open_on(&a, r, &config, NULL, 4096);
	ep_open_on(&b, r, &config, NULL, 4096);
	ep_link(&a, &b);
	inject(&b);
	line = logged(&b, r->cq);
	EXPECT(ep_is_filled(&b, 0, 0, LENGTH));
	EXPECT_SAY(strstr(line, " WRITE ") && strstr(line, " DROP_SOURCE:") &&
			   strstr(line, "the sender is not the queue pair's peer"),
		   "the log says: %s", line);
	works_on(&a, &b);
	ep_close(&a);
	ep_close(&b);
}

/* A queue pair whose peer would be the forger's host: the process listens to other hosts. */
static void far_open(struct endpoint *ep, struct resources *r)
{
	struct peer peer = {.qpn = 77, .psn = 1, .mtu = IBV_MTU_1024};

	ep_open_on(ep, r, NULL, NULL, 4096);
	gid_of(FORGER, peer.gid.raw);
	ep_connect(ep, &peer);
}

int main(void)
{
	struct resources r;
	struct ibv_cq *other;
	struct endpoint far;
	char path[64];

	network_with_pair();
	log_file = memfd_create("log", MFD_CLOEXEC);
	CHECK(log_file >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", log_file);
	CHECK(!setenv("VERBATIM_LOG", "debug", 1) && !setenv("VERBS_LOG_FILE", path, 1) &&
	      !setenv("VERBATIM_DEVICES", "vb_v0", 1));
	resources_open(&r, 64, false);
	far_open(&far, &r);
	other = ibv_create_cq(r.context, 64, NULL, NULL, 0);
	CHECK(other);
	forged("the engine has a connection to another host", &r, r.cq);
	forged("it has none", &r, other);
	CHECK_ZERO(ibv_destroy_cq(other));
	ep_close(&far);
	resources_close(&r);
	return expect_done();
}

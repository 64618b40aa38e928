/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "forged_req.h"

#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <string.h>

#include "wire/cm_address.h"
#include "wire/cm_message.h"
#include "wire/icrc.h"
#include "wire/packet.h"

#define TCP_SPACE      0x0106u /* RDMA_PS_TCP */
#define GSI_QKEY       0x80010000u
#define SOURCE_PORT    55555
#define MTU_1024       3
/* Of the IPv4 header, which the ICRC covers. In place of 0 the kernel would choose one. */
#define IDENTIFICATION 1

static void gid_of(uint32_t address, uint8_t gid[16])
{
	const uint32_t net = htonl(address);

	memset(gid, 0, 10);
	gid[10] = gid[11] = 0xff;
	memcpy(gid + 12, &net, sizeof(net));
}

static void write_mad(const struct forged_req *req, uint8_t mad[VB_MAD_BYTES])
{
	struct vb_cm_message m = {
		.attribute = VB_CM_REQ,
		.tid = (uint64_t)req->number << 32 | req->number,
		.local_id = req->number,
		.req =
			{
				.service_id = vb_cm_service_id(TCP_SPACE, req->port),
				.guid = (uint64_t)req->source << 32 | req->number,
				.qpn = req->number & VB_QPN_MASK,
				.psn = req->number & VB_QPN_MASK,
				.pkey = 0xffff,
				.remote_timeout = 20,
				.local_timeout = 20,
				.retry_count = 7,
				.rnr_retry_count = 7,
				.mtu = MTU_1024,
				.cm_retries = 15,
				.primary = {.local_lid = 0xffff,
					    .remote_lid = 0xffff,
					    .hop_limit = 64,
					    .ack_timeout = 19},
			},
	};
	struct vb_cm_address address = {.version = 4, .port = 40000};

	gid_of(req->source, m.req.primary.local_gid);
	gid_of(req->destination, m.req.primary.remote_gid);
	memcpy(address.source, m.req.primary.local_gid, 16);
	memcpy(address.destination, m.req.primary.remote_gid, 16);
	vb_cm_address_encode(&address, m.private_data);
	vb_cm_message_encode(&m, mad);
}

/* The kernel fills in the IPv4 checksum; that of UDP may be 0. */
static size_t write_headers(const struct forged_req *req, size_t payload, uint8_t *packet)
{
	struct udphdr udp = {.source = htons(SOURCE_PORT), .dest = htons(VB_UDP_PORT)};
	struct iphdr ip = {.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP};

	udp.len = htons((uint16_t)(sizeof(udp) + payload));
	ip.tot_len = htons((uint16_t)(sizeof(ip) + sizeof(udp) + payload));
	ip.id = htons(IDENTIFICATION);
	ip.frag_off = htons(IP_DF);
	ip.saddr = htonl(req->source);
	ip.daddr = htonl(req->destination);
	memcpy(packet, &ip, sizeof(ip));
	memcpy(packet + sizeof(ip), &udp, sizeof(udp));
	return sizeof(ip) + sizeof(udp);
}

size_t forged_req_write(const struct forged_req *req, uint8_t packet[FORGED_REQ_MOST])
{
	const struct vb_run run = {
		.service = VB_SERVICE_UD,
		.op = VB_OP_SEND,
		.flags = VB_RUN_FIRST | VB_RUN_LAST,
		.pkey = 0xffff,
		.segments = 1,
		.dest_qpn = VB_QPN_SERVICES,
		.src_qpn = VB_QPN_SERVICES,
		.length = VB_MAD_BYTES,
		.qkey = GSI_QKEY,
	};
	struct vb_flow flow = {
		.source_port = SOURCE_PORT, .destination_port = VB_UDP_PORT, .ipv4 = true};
	uint8_t *at = packet + sizeof(struct iphdr) + sizeof(struct udphdr);
	size_t head = vb_packet_header(&run, 0, VB_MAD_BYTES, at);
	size_t bytes = head + VB_MAD_BYTES + VB_ICRC_BYTES;
	uint32_t crc;

	write_mad(req, at + head);
	gid_of(req->source, flow.source);
	gid_of(req->destination, flow.destination);
	crc = vb_icrc_begin(&flow, IDENTIFICATION, bytes, at, head);
	crc = vb_icrc_add(crc, at + head, VB_MAD_BYTES);
	vb_icrc_end(crc, 0, at + head + VB_MAD_BYTES);
	return write_headers(req, bytes, packet) + bytes;
}

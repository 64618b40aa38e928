/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The network header in front of a UD receive. */
#include "transport/grh.h"

#include <string.h>

#define UDP_PROTOCOL   17
#define AROUND_PAYLOAD (8 + 12 + 8 + 4) /* UDP, BTH, DETH, ICRC */

static bool is_ipv4(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(gid, mapped, sizeof(mapped));
}

static void put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* RFC 1071. */
static uint16_t checksum(const uint8_t *header, unsigned int bytes)
{
	uint32_t sum = 0;

	for (unsigned int i = 0; i < bytes; i += 2)
		sum += (uint32_t)header[i] << 8 | header[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void build_ipv4(const struct vb_path *path, uint32_t udp_bytes, uint8_t *ip)
{
	ip[0] = 0x45; /* version 4, 5 words */
	ip[1] = path->traffic_class;
	put16(ip + 2, 20 + udp_bytes);
	ip[6] = 0x40; /* don't fragment */
	ip[8] = path->hop_limit;
	ip[9] = UDP_PROTOCOL;
	memcpy(ip + 12, path->sgid + 12, 4);
	memcpy(ip + 16, path->dgid + 12, 4);
	put16(ip + 10, checksum(ip, 20));
}

static void build_ipv6(const struct vb_path *path, uint32_t udp_bytes, uint8_t *ip)
{
	ip[0] = (uint8_t)(0x60 | path->traffic_class >> 4);
	ip[1] = (uint8_t)(path->traffic_class << 4 | (path->flow_label >> 16 & 0x0f));
	put16(ip + 2, path->flow_label);
	put16(ip + 4, udp_bytes);
	ip[6] = UDP_PROTOCOL;
	ip[7] = path->hop_limit;
	memcpy(ip + 8, path->sgid, 16);
	memcpy(ip + 24, path->dgid, 16);
}

/* With one mapped address the other one is a multicast group. */
static bool path_is_ipv4(const struct vb_path *path)
{
	return is_ipv4(path->dgid) || is_ipv4(path->sgid);
}

uint8_t vb_grh_kind(const struct vb_path *path)
{
	return path_is_ipv4(path) ? VB_GRH_KIND_IPV4 : VB_GRH_KIND_IPV6;
}

void vb_grh_build(const struct vb_path *path, uint32_t length, bool imm, uint8_t grh[VB_GRH_BYTES])
{
	uint32_t udp_bytes = AROUND_PAYLOAD + ((length + 3) & ~3u) + (imm ? 4 : 0);

	memset(grh, 0, VB_GRH_BYTES);
	if (path_is_ipv4(path))
		build_ipv4(path, udp_bytes, grh + 20);
	else
		build_ipv6(path, udp_bytes, grh);
}

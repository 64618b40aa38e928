/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which kind of header is in front of a datagram, and what it says.
 *
 * The area has the size of an InfiniBand GRH, 40 bytes. RoCE v2 leaves an IPv6 header there, or an
 * IPv4 header in the last 20 bytes with the first 20 undefined (IBA annex A17.4.3). Undefined bytes
 * may look like an IPv6 header; then the last 20 bytes count as an IPv4 header only if its checksum
 * is right.
 */
#include "verbs/ah_from_wc.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <string.h>

#include "base/reason.h"

#define GRH_BYTES       40
#define IP4_OFFSET      20

/* The next-header value of a GRH whose payload is a transport header (IBA 8.3.4). */
#define NEXT_HEADER_IBA 0x1b

/* RFC 1071: a header with its right checksum sums up to 0xffff. */
static int ip4_checksum_ok(const uint8_t *header)
{
	uint32_t sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)header[i] << 8 | header[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

static int is_ip4(const uint8_t *area)
{
	const uint8_t *header = area + IP4_OFFSET;

	if (header[0] >> 4 != 4)
		return 0;
	if (area[0] >> 4 != 6)
		return 1;
	return (header[0] & 0xf) == 5 && ip4_checksum_ok(header);
}

static void map_ip4(union ibv_gid *gid, const uint8_t *address)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[10] = 0xff;
	gid->raw[11] = 0xff;
	memcpy(gid->raw + 12, address, 4);
}

static int refuse_multicast(void)
{
	return vb_refuse(EINVAL, VB_REASON_ARG,
			 "init_ah_from_wc: the message was sent to a multicast group");
}

static int parse_ip4(const uint8_t *area, struct vb_wc_route *route)
{
	struct iphdr ip;

	memcpy(&ip, area + IP4_OFFSET, sizeof(ip));
	if (ip.protocol != IPPROTO_UDP)
		return vb_refuse(EPROTONOSUPPORT, VB_REASON_ARG,
				 "init_ah_from_wc: IPv4 protocol %u is not UDP", ip.protocol);
	if (IN_MULTICAST(ntohl(ip.daddr)))
		return refuse_multicast();
	map_ip4(&route->sender, (const uint8_t *)&ip.saddr);
	map_ip4(&route->receiver, (const uint8_t *)&ip.daddr);
	route->type = IBV_GID_TYPE_ROCE_V2;
	route->traffic_class = ip.tos;
	route->hop_limit = ip.ttl;
	return 0;
}

static int parse_grh(const struct ibv_grh *grh, struct vb_wc_route *route)
{
	if (grh->next_hdr == IPPROTO_UDP)
		route->type = IBV_GID_TYPE_ROCE_V2;
	else if (grh->next_hdr == NEXT_HEADER_IBA)
		route->type = IBV_GID_TYPE_ROCE_V1;
	else
		return vb_refuse(EPROTONOSUPPORT, VB_REASON_ARG,
				 "init_ah_from_wc: next header 0x%x", grh->next_hdr);
	if (grh->dgid.raw[0] == 0xff)
		return refuse_multicast();
	route->sender = grh->sgid;
	route->receiver = grh->dgid;
	route->traffic_class = (uint8_t)(ntohl(grh->version_tclass_flow) >> 20);
	route->hop_limit = grh->hop_limit;
	return 0;
}

int vb_wc_route_parse(const struct ibv_grh *grh, struct vb_wc_route *route)
{
	uint8_t area[GRH_BYTES];

	memcpy(area, grh, sizeof(area));
	memset(route, 0, sizeof(*route));
	route->flow_label = ntohl(grh->version_tclass_flow) & IB_GRH_FLOWLABEL_MASK;
	if (is_ip4(area))
		return parse_ip4(area, route);
	if (area[0] >> 4 == 6)
		return parse_grh(grh, route);
	return vb_refuse(EPROTONOSUPPORT, VB_REASON_ARG,
			 "init_ah_from_wc: neither an IPv6 nor an IPv4 header");
}

void vb_ah_attr_local(const struct ibv_wc *wc, uint8_t port, struct ibv_ah_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->dlid = wc->slid;
	attr->sl = wc->sl;
	attr->src_path_bits = wc->dlid_path_bits;
	attr->port_num = port;
}

void vb_ah_attr_global(const struct vb_wc_route *route, uint8_t sgid_index,
		       struct ibv_ah_attr *attr)
{
	attr->is_global = 1;
	attr->grh.dgid = route->sender;
	attr->grh.sgid_index = sgid_index;
	attr->grh.flow_label = route->flow_label;
	attr->grh.hop_limit = route->hop_limit;
	attr->grh.traffic_class = route->traffic_class;
}

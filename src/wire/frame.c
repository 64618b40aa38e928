/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Ethernet frames: finding the headers, and the hash over them. */
#include "wire/frame.h"

#include <infiniband/verbs.h>
#include <string.h>

#define ETHER_IPV4   0x0800u
#define ETHER_IPV6   0x86ddu
#define ETHER_VLAN   0x8100u
#define ETHER_QINQ   0x88a8u
#define ETHER_MPLS   0x8847u
#define ETHER_MPLS_M 0x8848u
#define ETHER_TEB    0x6558u /* Ethernet inside GRE (RFC 1701) */
#define PROTO_TCP    6u
#define PROTO_UDP    17u
#define PROTO_GRE    47u
#define PROTO_ESP    50u
#define PORT_VXLAN   4789u /* RFC 7348 */
#define PORT_MPLS    6635u /* RFC 7510 */
#define VXLAN_BYTES  8u
#define UDP_BYTES    8u
#define MAX_TAGS     2
#define MAX_LABELS   8

/* The unread part of the frame. */
struct rest {
	const uint8_t *at;
	uint32_t left;
};

static uint16_t be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static bool skip(struct rest *r, uint32_t bytes)
{
	if (r->left < bytes)
		return false;
	r->at += bytes;
	r->left -= bytes;
	return true;
}

/* True: an L3 header or MPLS labels of l->ether_type follow. */
static bool parse_eth(struct vb_frame_layer *l, struct rest *r)
{
	const uint8_t *eth = r->at;

	if (!skip(r, VB_ETH_BYTES))
		return false;
	l->eth = eth;
	l->ether_type = be16(eth + 12);
	for (int i = 0; i < MAX_TAGS; i++) {
		const uint8_t *tag = r->at;

		if (l->ether_type != ETHER_VLAN && l->ether_type != ETHER_QINQ)
			break;
		if (!skip(r, VB_VLAN_BYTES))
			return false;
		l->tagged = true;
		l->vlan = be16(tag);
		l->ether_type = be16(tag + 2);
	}
	return true;
}

static bool parse_ipv4(struct vb_frame_layer *l, struct rest *r)
{
	const uint8_t *ip = r->at;
	uint32_t header;

	if (r->left < 20 || ip[0] >> 4 != 4)
		return false;
	header = (ip[0] & 15u) * 4u;
	if (header < 20 || !skip(r, header))
		return false;
	l->ip = ip;
	l->version = 4;
	l->proto = ip[9];
	/* Only the first fragment has the L4 header. */
	return !(be16(ip + 6) & 0x1fff);
}

static bool parse_ipv6(struct vb_frame_layer *l, struct rest *r)
{
	const uint8_t *ip = r->at;

	if (r->left < 40 || ip[0] >> 4 != 6 || !skip(r, 40))
		return false;
	l->ip = ip;
	l->version = 6;
	l->proto = ip[6];
	return true;
}

static bool parse_ip(struct vb_frame_layer *l, struct rest *r, uint16_t ether_type)
{
	if (ether_type == ETHER_IPV4)
		return parse_ipv4(l, r);
	return ether_type == ETHER_IPV6 && parse_ipv6(l, r);
}

/*
 * Goes to the end of the label stack. The first nibble behind it tells IPv4 from IPv6 (RFC 4928).
 */
static bool parse_mpls(struct vb_frame_layer *l, struct rest *r, uint16_t *ether_type)
{
	const uint8_t *entry = r->at;

	for (int i = 0; i < MAX_LABELS; i++) {
		const uint8_t *at = r->at;

		if (!skip(r, 4))
			return false;
		l->mpls = entry;
		if (!(at[2] & 1))
			continue;
		if (!r->left)
			return false;
		*ether_type = r->at[0] >> 4 == 4 ? ETHER_IPV4 : r->at[0] >> 4 == 6 ? ETHER_IPV6 : 0;
		return *ether_type != 0;
	}
	return false;
}

static bool parse_gre(struct vb_frame_layer *l, struct rest *r, uint16_t *ether_type)
{
	const uint8_t *gre = r->at;
	uint32_t header;

	if (r->left < 4)
		return false;
	header =
		4u + (gre[0] & 0x80 ? 4u : 0) + (gre[0] & 0x20 ? 4u : 0) + (gre[0] & 0x10 ? 4u : 0);
	if (!skip(r, header))
		return false;
	l->gre = gre;
	l->gre_bytes = header;
	*ether_type = be16(gre + 2);
	return true;
}

/* True: the UDP datagram is a tunnel, and carries another network. */
static bool parse_udp_tunnel(struct vb_frame_layer *l, struct rest *r, uint16_t *ether_type)
{
	uint16_t port = be16(l->l4 + 2);

	if (!skip(r, UDP_BYTES))
		return false;
	if (port == PORT_VXLAN && r->left >= VXLAN_BYTES) {
		l->has_vni = true;
		l->vni = (uint32_t)r->at[4] << 16 | (uint32_t)r->at[5] << 8 | r->at[6];
		*ether_type = ETHER_TEB;
		return skip(r, VXLAN_BYTES);
	}
	*ether_type = ETHER_MPLS;
	return port == PORT_MPLS;
}

/* True: another network, of type *ether_type, lies inside. */
static bool parse_l4(struct vb_frame_layer *l, struct rest *r, uint16_t *ether_type)
{
	uint32_t least = l->proto == PROTO_ESP ? 8 : 4;

	if (l->proto == PROTO_GRE)
		return parse_gre(l, r, ether_type);
	if ((l->proto == PROTO_TCP || l->proto == PROTO_UDP || l->proto == PROTO_ESP) &&
	    r->left >= least)
		l->l4 = r->at;
	return l->proto == PROTO_UDP && l->l4 && parse_udp_tunnel(l, r, ether_type);
}

/* Begins at an L3 header or labels. True: another network, of type *ether_type, lies inside. */
static bool parse_network(struct vb_frame_layer *l, struct rest *r, uint16_t *ether_type)
{
	if (*ether_type == ETHER_MPLS || *ether_type == ETHER_MPLS_M)
		return parse_mpls(l, r, ether_type);
	return parse_ip(l, r, *ether_type) && parse_l4(l, r, ether_type);
}

void vb_frame_parse(struct vb_frame *frame, const uint8_t *data, uint32_t length)
{
	struct rest r = {.at = data, .left = length};
	struct vb_frame_layer *outer = &frame->layer[0];
	struct vb_frame_layer *inner = &frame->layer[1];
	uint16_t ether_type;

	memset(frame, 0, sizeof(*frame));
	frame->data = data;
	frame->length = length;
	if (!parse_eth(outer, &r))
		return;
	ether_type = outer->ether_type;
	if (!parse_network(outer, &r, &ether_type))
		return;
	/* The labels of a tunnel belong to the outer network. */
	if (ether_type == ETHER_MPLS && !outer->mpls && !parse_mpls(outer, &r, &ether_type))
		return;
	if (ether_type == ETHER_TEB) {
		if (!parse_eth(inner, &r))
			return;
		ether_type = inner->ether_type;
	}
	parse_network(inner, &r, &ether_type);
}

bool vb_frame_is_multicast(const struct vb_frame *frame)
{
	return frame->layer[0].eth && frame->layer[0].eth[0] & 1;
}

/* Builds the input of the hash: addresses, then ports, the source first in each. */
static uint32_t hash_input(const struct vb_frame_layer *l, uint64_t fields, uint8_t *input)
{
	static const struct {
		uint64_t field;
		uint8_t version; /* of IP; 0: either */
		uint8_t proto;   /* 0: the field is in the IP header */
		uint8_t offset, bytes;
	} parts[] = {
		{IBV_RX_HASH_SRC_IPV4, 4, 0, 12, 4},
		{IBV_RX_HASH_DST_IPV4, 4, 0, 16, 4},
		{IBV_RX_HASH_SRC_IPV6, 6, 0, 8, 16},
		{IBV_RX_HASH_DST_IPV6, 6, 0, 24, 16},
		{IBV_RX_HASH_SRC_PORT_TCP, 0, PROTO_TCP, 0, 2},
		{IBV_RX_HASH_DST_PORT_TCP, 0, PROTO_TCP, 2, 2},
		{IBV_RX_HASH_SRC_PORT_UDP, 0, PROTO_UDP, 0, 2},
		{IBV_RX_HASH_DST_PORT_UDP, 0, PROTO_UDP, 2, 2},
		{IBV_RX_HASH_IPSEC_SPI, 0, PROTO_ESP, 0, 4},
	};
	uint32_t length = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const uint8_t *from = parts[i].proto ? l->l4 : l->ip;

		if (!(fields & parts[i].field) || !from ||
		    (parts[i].version && parts[i].version != l->version) ||
		    (parts[i].proto && parts[i].proto != l->proto))
			continue;
		memcpy(input + length, from + parts[i].offset, parts[i].bytes);
		length += parts[i].bytes;
	}
	return length;
}

uint32_t vb_frame_hash(const struct vb_frame *frame, uint64_t fields,
		       const uint8_t key[VB_TOEPLITZ_KEY], bool *hashed)
{
	uint8_t input[VB_TOEPLITZ_KEY];
	uint32_t length = hash_input(&frame->layer[(fields & (uint64_t)IBV_RX_HASH_INNER) != 0],
				     fields, input);
	uint32_t window = (uint32_t)key[0] << 24 | (uint32_t)key[1] << 16 | (uint32_t)key[2] << 8 |
			  key[3];
	uint32_t hash = 0;

	*hashed = length != 0;
	for (uint32_t i = 0; i < length; i++) {
		/* The longest input takes the key to its last byte. */
		uint8_t next = i + 4 < VB_TOEPLITZ_KEY ? key[i + 4] : 0;

		for (int bit = 7; bit >= 0; bit--) {
			if (input[i] >> bit & 1)
				hash ^= window;
			window = window << 1 | (next >> bit & 1u);
		}
	}
	return hash;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Flow rules: specs read from the program's memory, and compared with the headers of a frame. */
#include "wire/flow_match.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#define PROTO_TCP 6u
#define PROTO_UDP 17u
#define PROTO_ESP 50u

/*
 * A spec that describes a header: its size, where its filter lies, and how the same filter is made
 * of a frame.
 */
struct kind {
	enum ibv_flow_spec_type type;
	uint16_t size;
	uint16_t val, mask, filter;
	/* Fills *out (zeroed) with the frame's values; false: the frame has no such header. */
	bool (*extract)(const struct vb_frame_layer *l, void *out);
};

static bool extract_eth(const struct vb_frame_layer *l, void *out)
{
	struct ibv_flow_eth_filter *f = out;

	if (!l->eth)
		return false;
	memcpy(f->dst_mac, l->eth, 6);
	memcpy(f->src_mac, l->eth + 6, 6);
	f->ether_type = htons(l->ether_type);
	f->vlan_tag = htons(l->vlan);
	return true;
}

static bool extract_ipv4(const struct vb_frame_layer *l, void *out)
{
	struct ibv_flow_ipv4_filter *f = out;

	if (!l->ip || l->version != 4)
		return false;
	memcpy(&f->src_ip, l->ip + 12, 4);
	memcpy(&f->dst_ip, l->ip + 16, 4);
	return true;
}

static bool extract_ipv4_ext(const struct vb_frame_layer *l, void *out)
{
	struct ibv_flow_ipv4_ext_filter *f = out;

	if (!l->ip || l->version != 4)
		return false;
	memcpy(&f->src_ip, l->ip + 12, 4);
	memcpy(&f->dst_ip, l->ip + 16, 4);
	f->proto = l->ip[9];
	f->tos = l->ip[1];
	f->ttl = l->ip[8];
	f->flags = l->ip[6] >> 5;
	return true;
}

static bool extract_ipv6(const struct vb_frame_layer *l, void *out)
{
	struct ibv_flow_ipv6_filter *f = out;
	uint32_t first;

	if (!l->ip || l->version != 6)
		return false;
	memcpy(&first, l->ip, 4);
	memcpy(f->src_ip, l->ip + 8, 16);
	memcpy(f->dst_ip, l->ip + 24, 16);
	f->flow_label = first & htonl(0xfffff);
	f->next_hdr = l->ip[6];
	f->traffic_class = (uint8_t)(ntohl(first) >> 20);
	f->hop_limit = l->ip[7];
	return true;
}

static bool extract_ports(const struct vb_frame_layer *l, uint8_t proto, void *out)
{
	struct ibv_flow_tcp_udp_filter *f = out;

	if (!l->l4 || l->proto != proto)
		return false;
	memcpy(&f->src_port, l->l4, 2);
	memcpy(&f->dst_port, l->l4 + 2, 2);
	return true;
}

static bool extract_tcp(const struct vb_frame_layer *l, void *out)
{
	return extract_ports(l, PROTO_TCP, out);
}

static bool extract_udp(const struct vb_frame_layer *l, void *out)
{
	return extract_ports(l, PROTO_UDP, out);
}

static bool extract_esp(const struct vb_frame_layer *l, void *out)
{
	if (!l->l4 || l->proto != PROTO_ESP)
		return false;
	memcpy(out, l->l4, sizeof(struct ibv_flow_esp_filter));
	return true;
}

/* The VNI of the header: 24 bits, then 8 reserved bits. Programs write it as a 32-bit number. */
static bool extract_vxlan(const struct vb_frame_layer *l, void *out)
{
	((struct ibv_flow_tunnel_filter *)out)->tunnel_id = htonl(l->vni);
	return l->has_vni;
}

static bool extract_gre(const struct vb_frame_layer *l, void *out)
{
	struct ibv_flow_gre_filter *f = out;

	if (!l->gre)
		return false;
	memcpy(&f->c_ks_res0_ver, l->gre, 2);
	memcpy(&f->protocol, l->gre + 2, 2);
	if (l->gre[0] & 0x20)
		memcpy(&f->key, l->gre + (l->gre[0] & 0x80 ? 8 : 4), 4);
	return true;
}

static bool extract_mpls(const struct vb_frame_layer *l, void *out)
{
	if (!l->mpls)
		return false;
	memcpy(out, l->mpls, sizeof(struct ibv_flow_mpls_filter));
	return true;
}

#define KIND(type, name, extract)                                                \
	{                                                                        \
		type, sizeof(struct ibv_flow_spec_##name),                       \
			offsetof(struct ibv_flow_spec_##name, val),              \
			offsetof(struct ibv_flow_spec_##name, mask),             \
			sizeof(((struct ibv_flow_spec_##name *)0)->val), extract \
	}

static const struct kind kinds[] = {
	KIND(IBV_FLOW_SPEC_ETH, eth, extract_eth),
	KIND(IBV_FLOW_SPEC_IPV4, ipv4, extract_ipv4),
	KIND(IBV_FLOW_SPEC_IPV4_EXT, ipv4_ext, extract_ipv4_ext),
	KIND(IBV_FLOW_SPEC_IPV6, ipv6, extract_ipv6),
	KIND(IBV_FLOW_SPEC_TCP, tcp_udp, extract_tcp),
	KIND(IBV_FLOW_SPEC_UDP, tcp_udp, extract_udp),
	KIND(IBV_FLOW_SPEC_ESP, esp, extract_esp),
	KIND(IBV_FLOW_SPEC_VXLAN_TUNNEL, tunnel, extract_vxlan),
	KIND(IBV_FLOW_SPEC_GRE, gre, extract_gre),
	KIND(IBV_FLOW_SPEC_MPLS, mpls, extract_mpls),
};

static const struct kind *kind_of(uint32_t type)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (kinds[i].type == (type & ~(uint32_t)IBV_FLOW_SPEC_INNER))
			return &kinds[i];
	}
	return NULL;
}

static int wrong_with(const char **wrong, int err, const char *sentence)
{
	*wrong = sentence;
	return -err;
}

/*
 * A header that the rule names. A second header of the same layer would contradict or repeat the
 * first.
 */
static int read_header(struct vb_flow_rule *rule, const void *at, uint32_t type, uint16_t size,
		       const char **wrong)
{
	const struct kind *kind = kind_of(type);

	if (!kind)
		return wrong_with(wrong, EINVAL, "no such spec type");
	if (size != kind->size)
		return wrong_with(wrong, EINVAL, "a spec's size is not that of its type");
	if (rule->specs == VB_FLOW_SPECS)
		return wrong_with(wrong, EINVAL, "more specs than a rule may have");
	for (uint32_t i = 0; i < rule->specs; i++) {
		if (rule->spec[i].hdr.type == (enum ibv_flow_spec_type)type)
			return wrong_with(wrong, EINVAL, "a header is described twice");
	}
	memcpy(&rule->spec[rule->specs++], at, size);
	return 0;
}

static int read_counter(struct vb_flow_rule *rule, const struct ibv_flow_spec_counter_action *spec,
			const char **wrong)
{
	if (spec->size != sizeof(*spec) || !spec->counters)
		return wrong_with(wrong, EINVAL, "a count action without counters");
	if (rule->num_counters == VB_FLOW_COUNTERS)
		return wrong_with(wrong, EINVAL, "more counters than a rule may have");
	rule->counters[rule->num_counters++] = spec->counters;
	return 0;
}

/* The spec may lie at any alignment: programs lay specs out packed. */
static int read_spec(struct vb_flow_rule *rule, const char *at, uint32_t type, uint16_t size,
		     const char **wrong)
{
	struct ibv_flow_spec spec = {0};

	if (size > sizeof(spec))
		return wrong_with(wrong, EINVAL, "a spec's size is not that of its type");
	memcpy(&spec, at, size);
	switch (type) {
	case IBV_FLOW_SPEC_ACTION_TAG:
		if (size != sizeof(spec.flow_tag) || rule->has_tag)
			return wrong_with(wrong, EINVAL, "a tag action is malformed or repeated");
		rule->has_tag = true;
		rule->tag = spec.flow_tag.tag_id;
		return 0;
	case IBV_FLOW_SPEC_ACTION_DROP:
		rule->drop = true;
		return size == sizeof(spec.drop)
			       ? 0
			       : wrong_with(wrong, EINVAL, "a drop action's size");
	case IBV_FLOW_SPEC_ACTION_HANDLE:
		return wrong_with(wrong, EOPNOTSUPP, "no flow actions can be made on this device");
	case IBV_FLOW_SPEC_ACTION_COUNT:
		return read_counter(rule, &spec.flow_count, wrong);
	default:
		return read_header(rule, &spec, type, size, wrong);
	}
}

int vb_flow_rule_read(struct vb_flow_rule *rule, const struct ibv_flow_attr *attr,
		      const char **wrong)
{
	const char *at = (const char *)(attr + 1);

	memset(rule, 0, sizeof(*rule));
	for (uint32_t i = 0; i < attr->num_of_specs; i++) {
		uint32_t type;
		uint16_t size;

		memcpy(&type, at, sizeof(type));
		memcpy(&size, at + sizeof(type), sizeof(size));
		if (size < sizeof(type) + sizeof(size))
			return wrong_with(wrong, EINVAL, "a spec is smaller than its own header");
		int err = read_spec(rule, at, type, size, wrong);

		if (err)
			return err;
		at += size;
	}
	return 0;
}

static bool spec_matches(const struct ibv_flow_spec *spec, const struct vb_frame *frame)
{
	const struct kind *kind = kind_of(spec->hdr.type);
	const struct vb_frame_layer *layer =
		&frame->layer[(spec->hdr.type & IBV_FLOW_SPEC_INNER) != 0];
	const uint8_t *val = (const uint8_t *)spec + kind->val;
	const uint8_t *mask = (const uint8_t *)spec + kind->mask;
	_Alignas(8) uint8_t found[sizeof(struct ibv_flow_ipv6_filter)] = {0};

	if (!kind->extract(layer, found))
		return false;
	for (uint32_t i = 0; i < kind->filter; i++) {
		if ((found[i] ^ val[i]) & mask[i])
			return false;
	}
	/* A frame without a tag does not match the tag 0. */
	return kind->type != IBV_FLOW_SPEC_ETH || !spec->eth.mask.vlan_tag || layer->tagged;
}

bool vb_flow_rule_matches(const struct vb_flow_rule *rule, const struct vb_frame *frame)
{
	for (uint32_t i = 0; i < rule->specs; i++) {
		if (!spec_matches(&rule->spec[i], frame))
			return false;
	}
	return true;
}

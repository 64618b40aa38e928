/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Internet checksums (RFC 1071) of frames. */
#include "wire/frame_checksum.h"

#define PROTO_TCP 6u
#define PROTO_UDP 17u
#define TCP_AT    16u /* offset of the checksum in the header */
#define UDP_AT    6u

/* The parts of the outer IP packet, by the lengths of its own header, all within the frame. */
struct parts {
	const uint8_t *ip;
	uint32_t header; /* bytes of the IP header */
	const uint8_t *l4;
	uint32_t l4_bytes;
	uint32_t at; /* offset of the checksum in l4; 0: neither TCP nor UDP */
	uint8_t proto;
	uint8_t version;
};

static uint32_t be16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t sum(uint32_t start, const uint8_t *p, uint32_t bytes)
{
	uint64_t total = start;

	for (; bytes > 1; bytes -= 2, p += 2)
		total += be16(p);
	if (bytes)
		total += (uint32_t)*p << 8;
	while (total >> 16)
		total = (total & 0xffff) + (total >> 16);
	return (uint32_t)total;
}

static bool find(const struct vb_frame *frame, struct parts *p)
{
	const struct vb_frame_layer *l = &frame->layer[0];
	uint32_t left, total;

	if (!l->ip)
		return false;
	left = frame->length - (uint32_t)(l->ip - frame->data);
	p->ip = l->ip;
	p->version = l->version;
	p->proto = l->proto;
	p->header = l->version == 4 ? (l->ip[0] & 15u) * 4u : 40u;
	total = l->version == 4 ? be16(l->ip + 2) : be16(l->ip + 4) + 40u;
	if (total < p->header || total > left)
		return false;
	if (l->version == 4 && be16(l->ip + 6) & 0x3fff) /* a fragment */
		return false;
	p->l4 = l->ip + p->header;
	p->l4_bytes = total - p->header;
	p->at = p->proto == PROTO_TCP ? TCP_AT : p->proto == PROTO_UDP ? UDP_AT : 0;
	return !p->at || p->l4_bytes >= p->at + 2;
}

/* The sum of the pseudo header and everything behind the IP header. */
static uint32_t l4_sum(const struct parts *p)
{
	uint32_t addresses = p->version == 4 ? sum(0, p->ip + 12, 8) : sum(0, p->ip + 8, 32);

	return sum(addresses + p->proto + p->l4_bytes, p->l4, p->l4_bytes);
}

bool vb_frame_checksum_good(const struct vb_frame *frame)
{
	struct parts p;

	if (!find(frame, &p))
		return false;
	if (p.version == 4 && sum(0, p.ip, p.header) != 0xffff)
		return false;
	if (!p.at)
		return true;
	/* Over IPv4 a UDP checksum of 0 means that there is none (RFC 768). */
	if (p.proto == PROTO_UDP && !be16(p.l4 + p.at))
		return p.version == 4;
	return l4_sum(&p) == 0xffff;
}

static void store(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

void vb_frame_checksum_fill(uint8_t *data, uint32_t length)
{
	struct vb_frame frame;
	struct parts p;

	vb_frame_parse(&frame, data, length);
	if (!find(&frame, &p))
		return;
	uint8_t *ip = data + (p.ip - data);

	if (p.version == 4) {
		store(ip + 10, 0);
		store(ip + 10, ~sum(0, ip, p.header) & 0xffff);
	}
	if (!p.at)
		return;
	uint8_t *at = data + (p.l4 - data) + p.at;

	store(at, 0);
	uint32_t value = ~l4_sum(&p) & 0xffff;

	store(at, value || p.proto == PROTO_TCP ? value : 0xffff);
}

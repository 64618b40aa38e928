/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The invariant CRC: masked headers, and finding the identification that a CRC was made with. */
#include "wire/icrc.h"

#include "wire/bytes.h"
#include "wire/crc.h"
#include "wire/opcode.h"
#include "wire/packet.h"

#define LRH_BYTES      8u /* the local route header is absent here, and counts as ones */
#define IPV4_BYTES     20u
#define IPV6_BYTES     40u
#define UDP_BYTES      8u
#define HEAD_MOST      (LRH_BYTES + IPV6_BYTES + UDP_BYTES + VB_PACKET_HEADER_MOST)

#define UDP_PROTOCOL   17
#define IPV4_FLAGS     0x4000 /* don't fragment */
#define BTH_CONGESTION 4      /* FECN, BECN and reserved bits, which count as ones */

void vb_flow_family(struct vb_flow *flow)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	flow->ipv4 = !memcmp(flow->destination, mapped, sizeof(mapped));
}

/* ToS, TTL and checksum are masked (count as ones). */
static uint8_t *put_ipv4(uint8_t *p, const struct vb_flow *flow, uint16_t id, size_t bytes)
{
	p[0] = 0x45;
	p[1] = 0xff;
	vb_put16(p + 2, (uint16_t)(IPV4_BYTES + UDP_BYTES + bytes));
	vb_put16(p + 4, id);
	vb_put16(p + 6, IPV4_FLAGS);
	p[8] = 0xff;
	p[9] = UDP_PROTOCOL;
	vb_put16(p + 10, 0xffff);
	memcpy(p + 12, flow->source + 12, 4);
	memcpy(p + 16, flow->destination + 12, 4);
	return p + IPV4_BYTES;
}

/* Traffic class, flow label and hop limit are masked (count as ones). */
static uint8_t *put_ipv6(uint8_t *p, const struct vb_flow *flow, size_t bytes)
{
	vb_put32(p, 0x6fffffff);
	vb_put16(p + 4, (uint16_t)(UDP_BYTES + bytes));
	p[6] = UDP_PROTOCOL;
	p[7] = 0xff;
	memcpy(p + 8, flow->source, 16);
	memcpy(p + 24, flow->destination, 16);
	return p + IPV6_BYTES;
}

uint32_t vb_icrc_begin(const struct vb_flow *flow, uint16_t id, size_t bytes, const uint8_t *header,
		       size_t length)
{
	uint8_t head[HEAD_MOST];
	uint8_t *p = head + LRH_BYTES;

	memset(head, 0xff, LRH_BYTES);
	p = flow->ipv4 ? put_ipv4(p, flow, id, bytes) : put_ipv6(p, flow, bytes);
	vb_put16(p, flow->source_port);
	vb_put16(p + 2, flow->destination_port);
	vb_put16(p + 4, (uint16_t)(UDP_BYTES + bytes));
	vb_put16(p + 6, 0xffff); /* the checksum */
	p += UDP_BYTES;
	memcpy(p, header, length);
	p[BTH_CONGESTION] = 0xff;
	return vb_crc(0, head, (size_t)(p - head) + length);
}

uint32_t vb_icrc_add(uint32_t crc, const void *data, size_t length)
{
	return length ? vb_crc(crc, data, length) : crc;
}

size_t vb_icrc_end(uint32_t crc, uint32_t pad, uint8_t *trailer)
{
	memset(trailer, 0, 4);
	crc = vb_icrc_add(crc, trailer, pad);
	vb_put32_little(trailer + pad, crc);
	return pad + VB_ICRC_BYTES;
}

#define POLYNOMIAL 0xedb88320u /* of CRC-32; the coefficient of x^0 is the highest bit */

/* The product of two polynomials modulo POLYNOMIAL. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (unsigned int i = 0; i < 32; i++) {
		product ^= b & -(a >> 31);
		a <<= 1;
		b = b >> 1 ^ (POLYNOMIAL & -(b & 1));
	}
	return product;
}

/*
 * The CRC is linear. The CRCs of two messages of one length therefore differ by the difference of
 * the messages times a power of x. Two bytes that differ, with `behind` bytes after them, show as d
 * = id * x^(8 * (behind + 2)). Multiplying d by the inverse of that power gives the two bytes back,
 * or a larger number when these two bytes are not the only difference.
 */
static uint32_t undo(uint32_t difference, size_t words)
{
	/* x^-32, x^-64, x^-128 ...: each is the square of the one before */
	static const uint32_t inverse[] = {
		0x5b358fd3, 0x2e9bb40b, 0x12a59a49, 0x8df9403d, 0x5139de12, 0xba340226,
		0x29c45641, 0x12fbc105, 0xecd30c55, 0x3755ebd8, 0x24ee460c,
	};

	for (unsigned int i = 0; words; i++, words >>= 1) {
		if (words & 1)
			difference = multiply(difference, inverse[i]);
	}
	return difference;
}

/*
 * Bytes from the identification to the end of the range that the CRC covers, which excludes the
 * ICRC.
 */
static inline size_t from_id(size_t bytes)
{
	return IPV4_BYTES - 4 + UDP_BYTES + bytes - VB_ICRC_BYTES;
}

bool vb_icrc_check(const struct vb_flow *flow, const uint8_t *packet, size_t bytes, uint16_t *id)
{
	uint32_t crc;
	uint32_t difference;

	if (bytes < VB_PACKET_LEAST || bytes > VB_PACKET_MOST || bytes % 4)
		return false;
	crc = vb_icrc_begin(flow, *id, bytes, packet, VB_BTH_BYTES);
	crc = vb_icrc_add(crc, packet + VB_BTH_BYTES, bytes - VB_BTH_BYTES - VB_ICRC_BYTES);
	difference = crc ^ vb_get32_little(packet + bytes - VB_ICRC_BYTES);
	if (!difference)
		return true;
	if (!flow->ipv4)
		return false;
	difference = undo(difference, from_id(bytes) / 4);
	if (difference > 0xffff)
		return false;
	/* The byte of the lower address is the upper byte. */
	*id ^= (uint16_t)(difference << 8 | difference >> 8);
	return true;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The ICRC: against a bit-by-bit CRC over a whole packet, masked fields, hidden identifications,
 * corruption.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "wire/bytes.h"
#include "wire/icrc.h"
#include "wire/packet.h"

static const struct vb_flow v4 = {
	.source = {[10] = 0xff, 0xff, 10, 1, 0, 1},
	.destination = {[10] = 0xff, 0xff, 10, 1, 0, 2},
	.source_port = 55410,
	.destination_port = 4791,
	.ipv4 = true,
};
static const struct vb_flow v6 = {
	.source = {0xfd, 0x00, 0x00, 0x01, [15] = 1},
	.destination = {0xfd, 0x00, 0x00, 0x01, [15] = 2},
	.source_port = 55411,
	.destination_port = 4791,
};

static uint32_t bitwise(const uint8_t *data, size_t length)
{
	uint32_t crc = 0xffffffff;

	for (size_t i = 0; i < length; i++) {
		crc ^= data[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

/* Annex A17 taken literally: the whole packet in one buffer, then the mask. */
static uint32_t literal(const struct vb_flow *flow, uint16_t id, const uint8_t *udp, size_t bytes)
{
	static uint8_t all[5000];
	uint8_t *p = all + 8;

	memset(all, 0xff, 8);
	if (flow->ipv4) {
		const uint8_t head[12] = {0x45,        0xff, 0, 0,    (uint8_t)(id >> 8),
					  (uint8_t)id, 0x40, 0, 0xff, 17,
					  0xff,        0xff};
		memcpy(p, head, 12);
		vb_put16(p + 2, (uint16_t)(28 + bytes));
		memcpy(p + 12, flow->source + 12, 4);
		memcpy(p + 16, flow->destination + 12, 4);
		p += 20;
	} else {
		const uint8_t head[8] = {0x6f, 0xff, 0xff, 0xff, 0, 0, 17, 0xff};

		memcpy(p, head, 8);
		vb_put16(p + 4, (uint16_t)(8 + bytes));
		memcpy(p + 8, flow->source, 16);
		memcpy(p + 24, flow->destination, 16);
		p += 40;
	}
	vb_put16(p, flow->source_port);
	vb_put16(p + 2, flow->destination_port);
	vb_put16(p + 4, (uint16_t)(8 + bytes));
	memset(p + 6, 0xff, 2);
	memcpy(p + 8, udp, bytes - 4);
	p[12] = 0xff;
	return bitwise(all, (size_t)(p - all) + 8 + bytes - 4);
}

/* A packet of any bytes with the right ICRC. */
static void fill(uint8_t *packet, size_t bytes, const struct vb_flow *flow, uint16_t id)
{
	uint32_t seed = (uint32_t)bytes * 2654435761u + id;

	for (size_t i = 0; i < bytes - 4; i++) {
		seed = seed * 1664525u + 1013904223u;
		packet[i] = (uint8_t)(seed >> 24);
	}
	vb_put32_little(packet + bytes - 4, literal(flow, id, packet, bytes));
}

static void every_length(void **state)
{
	static uint8_t packet[VB_PACKET_MOST];

	(void)state;
	for (size_t bytes = VB_PACKET_LEAST; bytes <= VB_PACKET_MOST; bytes += 4) {
		uint16_t id = (uint16_t)(bytes * 40503u);
		uint16_t guess = id;

		fill(packet, bytes, &v4, id);
		assert_true(vb_icrc_check(&v4, packet, bytes, &guess));
		assert_int_equal(guess, id);
		guess = 0;
		assert_true(vb_icrc_check(&v4, packet, bytes, &guess));
		assert_int_equal(guess, id);
		fill(packet, bytes, &v6, 0);
		guess = 7;
		assert_true(vb_icrc_check(&v6, packet, bytes, &guess));
		assert_int_equal(guess, 7);
	}
}

static void every_identification(void **state)
{
	uint8_t packet[64];

	(void)state;
	for (unsigned int id = 0; id < 65536; id++) {
		uint16_t got = (uint16_t)(id * 31u);

		fill(packet, sizeof(packet), &v4, (uint16_t)id);
		assert_true(vb_icrc_check(&v4, packet, sizeof(packet), &got));
		assert_int_equal(got, id);
	}
}

/* In pieces, as a sender computes it: headers, payload, padding. */
static void in_pieces(void **state)
{
	uint8_t packet[2048];

	(void)state;
	for (uint32_t length = 0; length <= 1024; length++) {
		struct vb_run run = {.op = VB_OP_WRITE,
				     .flags = VB_RUN_FIRST | VB_RUN_LAST,
				     .segments = 1,
				     .dest_qpn = 0x1234,
				     .pkey = 0xffff,
				     .length = length};
		const struct vb_flow *flow = length & 1 ? &v4 : &v6;
		size_t bytes = vb_packet_bytes(&run, 0, 1024);
		size_t header = vb_packet_header(&run, 0, 1024, packet);
		uint32_t crc = vb_icrc_begin(flow, 3, bytes, packet, header);

		memset(packet + header, (int)length, length);
		crc = vb_icrc_add(crc, packet + header, length / 3);
		crc = vb_icrc_add(crc, packet + header + length / 3, length - length / 3);
		header += length;
		header += vb_icrc_end(crc, vb_packet_pad(length), packet + header);
		assert_int_equal(header, bytes);
		assert_int_equal(vb_get32_little(packet + bytes - 4),
				 literal(flow, 3, packet, bytes));
	}
}

/* Congestion bits change on the way and are not covered; every other bit of the packet is. */
static void corruption(void **state)
{
	static uint8_t packet[VB_PACKET_MOST];
	size_t sizes[] = {16, 64, 1044};
	uint16_t id;

	(void)state;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		for (size_t bit = 0; bit < sizes[s] * 8; bit++) {
			bool covered = bit / 8 != 4;

			fill(packet, sizes[s], &v6, 0);
			packet[bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_int_equal(vb_icrc_check(&v6, packet, sizes[s], &id), !covered);
			fill(packet, sizes[s], &v4, 0x1234);
			packet[bit / 8] ^= (uint8_t)(1 << bit % 8);
			id = 0x1234;
			assert_int_equal(vb_icrc_check(&v4, packet, sizes[s], &id), !covered);
		}
	}
}

/*
 * Where the identification is unknown 16 bits of the check remain: one of some 65536 bad packets
 * passes, not more.
 */
static void corruption_at_random(void **state)
{
	uint8_t packet[128];
	uint32_t seed = 1;
	unsigned int passed = 0;

	(void)state;
	fill(packet, sizeof(packet), &v4, 0);
	for (unsigned int i = 0; i < 1u << 18; i++) {
		uint16_t id = 0;

		seed = seed * 1664525u + 1013904223u;
		vb_put32(packet + 40, seed);
		seed = seed * 1664525u + 1013904223u;
		vb_put32(packet + 80, seed);
		passed += vb_icrc_check(&v4, packet, sizeof(packet), &id);
	}
	assert_in_range(passed, 0, 20); /* 4 expected */
}

static void other_flow(void **state)
{
	uint8_t packet[64];
	struct vb_flow other;
	uint16_t id = 0;

	(void)state;
	fill(packet, sizeof(packet), &v6, 0);
	for (size_t i = 0; i < 16; i++) {
		other = v6;
		other.source[i] ^= 1;
		assert_false(vb_icrc_check(&other, packet, sizeof(packet), &id));
		other = v6;
		other.destination[i] ^= 0x80;
		assert_false(vb_icrc_check(&other, packet, sizeof(packet), &id));
	}
	other = v6;
	other.source_port++;
	assert_false(vb_icrc_check(&other, packet, sizeof(packet), &id));
	other = v4;
	fill(packet, sizeof(packet), &v4, 0);
	other.source_port++;
	assert_false(vb_icrc_check(&other, packet, sizeof(packet), &id));
}

static void impossible_lengths(void **state)
{
	static uint8_t packet[VB_PACKET_MOST + 8];
	uint16_t id = 0;

	(void)state;
	for (size_t bytes = 0; bytes < VB_PACKET_LEAST; bytes++)
		assert_false(vb_icrc_check(&v4, packet, bytes, &id));
	fill(packet, 17, &v6, 0);
	assert_false(vb_icrc_check(&v6, packet, 17, &id));
	fill(packet, VB_PACKET_MOST + 4, &v6, 0);
	assert_false(vb_icrc_check(&v6, packet, VB_PACKET_MOST + 4, &id));
}

static void family(void **state)
{
	struct vb_flow flow = v4;

	(void)state;
	flow.ipv4 = false;
	vb_flow_family(&flow);
	assert_true(flow.ipv4);
	flow = v6;
	flow.ipv4 = true;
	vb_flow_family(&flow);
	assert_false(flow.ipv4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length),
		cmocka_unit_test(every_identification),
		cmocka_unit_test(in_pieces),
		cmocka_unit_test(corruption),
		cmocka_unit_test(corruption_at_random),
		cmocka_unit_test(other_flow),
		cmocka_unit_test(impossible_lengths),
		cmocka_unit_test(family),
	};

	return cmocka_run_group_tests_name("wire-icrc", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packets that must be dropped, each for its reason; and odd ones that must not be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "wire/opcode.h"
#include "wire/packet.h"

#define SEND_FIRST    0x00
#define SEND_MIDDLE   0x01
#define SEND_LAST     0x02
#define SEND_ONLY     0x04
#define WRITE_ONLY    0x0a
#define READ_REQUEST  0x0c
#define ACK           0x11
#define FETCH_ADD     0x14
#define UC_SEND_ONLY  0x24
#define UD_SEND_ONLY  0x64
#define XRC_SEND_ONLY 0xa4

/* In memory of its own, so that a sanitizer sees every byte read beyond it. */
static enum vb_reason decode(const uint8_t *packet, size_t length, struct vb_run *run)
{
	uint8_t *copy = malloc(length ? length : 1);
	const uint8_t *payload = NULL;
	enum vb_reason reason;

	assert_non_null(copy);
	memcpy(copy, packet, length);
	reason = vb_packet_decode(copy, length, run, &payload);
	if (!reason) {
		assert_true(payload >= copy + VB_BTH_BYTES);
		assert_true(payload + run->length + VB_ICRC_BYTES <= copy + length);
	}
	free(copy);
	return reason;
}

/* A packet with a plain BTH, all else 0. */
static void make(uint8_t *packet, size_t size, uint8_t code, uint8_t pad, uint32_t qpn)
{
	memset(packet, 0, size);
	packet[0] = code;
	packet[1] = (uint8_t)(0x40 | pad << 4);
	packet[2] = packet[3] = 0xff;
	packet[5] = (uint8_t)(qpn >> 16);
	packet[6] = (uint8_t)(qpn >> 8);
	packet[7] = (uint8_t)qpn;
}

static enum vb_reason result(uint8_t code, uint8_t pad, uint32_t qpn, size_t length)
{
	uint8_t packet[8192];
	struct vb_run run;

	assert_true(length <= sizeof(packet));
	make(packet, sizeof(packet), code, pad, qpn);
	return decode(packet, length, &run);
}

static void shorter_than_a_bth(void **state)
{
	(void)state;
	for (size_t length = 0; length < VB_PACKET_LEAST; length++)
		assert_int_equal(result(SEND_ONLY, 0, 0x11, length), VB_REASON_DROP_MALFORMED);
	assert_int_equal(result(SEND_ONLY, 0, 0x11, VB_PACKET_LEAST), VB_REASON_NONE);
}

/* Every opcode, every length that its headers do not fit in, every pad. */
static void shorter_than_its_headers(void **state)
{
	(void)state;
	for (unsigned int code = 0; code < 256; code++) {
		const struct vb_opcode *o = vb_opcode_find((uint8_t)code);

		for (uint8_t pad = 0; o && pad < 4; pad++) {
			size_t least = o->bytes + VB_ICRC_BYTES + (pad ? 4u : 0u);

			for (size_t length = 0; length < least; length++)
				assert_int_equal(result((uint8_t)code, pad, 0x11, length),
						 VB_REASON_DROP_MALFORMED);
		}
	}
}

static void every_length_and_pad(void **state)
{
	(void)state;
	for (size_t length = 0; length < 4200; length++) {
		for (uint8_t pad = 0; pad < 4; pad++) {
			size_t body = length - 16;
			bool good = length >= 16 && length % 4 == 0 && body >= pad &&
				    body - pad <= VB_MTU_MOST;

			assert_int_equal(result(SEND_ONLY, pad, 0x11, length),
					 good ? VB_REASON_NONE : VB_REASON_DROP_MALFORMED);
		}
	}
}

static void unknown_opcodes(void **state)
{
	(void)state;
	for (unsigned int code = 0; code < 256; code++) {
		enum vb_reason want = code == VB_OPCODE_CNP ? VB_REASON_DROP_CONGESTION
							    : VB_REASON_DROP_OPCODE;

		if (!vb_opcode_find((uint8_t)code)) {
			for (size_t length = VB_PACKET_LEAST; length < 64; length += 4)
				assert_int_equal(result((uint8_t)code, 0, 0x11, length), want);
		}
	}
	/* RD, and opcodes that are not defined. */
	assert_int_equal(result(0x1e, 0, 0x11, 64), VB_REASON_DROP_OPCODE);
	assert_int_equal(result(0x44, 0, 0x11, 64), VB_REASON_DROP_OPCODE);
	assert_int_equal(result(0xff, 0, 0x11, 64), VB_REASON_DROP_OPCODE);
	/* UC has no invalidation, UD no parts of messages. */
	assert_int_equal(result(0x36, 0, 0x11, 64), VB_REASON_DROP_OPCODE);
	assert_int_equal(result(0x60, 0, 0x11, 64), VB_REASON_DROP_OPCODE);
}

static void congestion_notification(void **state)
{
	(void)state;
	assert_int_equal(result(VB_OPCODE_CNP, 0, 0x11, 32), VB_REASON_DROP_CONGESTION);
	assert_int_equal(result(VB_OPCODE_CNP, 0, 0x999999, 32), VB_REASON_DROP_CONGESTION);
	assert_int_equal(result(VB_OPCODE_CNP, 0, 0, 16), VB_REASON_DROP_CONGESTION);
}

static void transport_version(void **state)
{
	uint8_t packet[64];
	struct vb_run run;

	(void)state;
	for (uint8_t version = 1; version < 16; version++) {
		make(packet, sizeof(packet), SEND_ONLY, 0, 0x11);
		packet[1] |= version;
		assert_int_equal(decode(packet, sizeof(packet), &run), VB_REASON_DROP_VERSION);
	}
}

/*
 * Bits that may change on the way, or are reserved, are not judged, and do not appear in the run.
 */
static void reserved_bits(void **state)
{
	uint8_t packet[64];
	struct vb_run plain;
	struct vb_run odd;

	(void)state;
	make(packet, sizeof(packet), UD_SEND_ONLY, 0, 0x11);
	assert_int_equal(decode(packet, sizeof(packet), &plain), VB_REASON_NONE);
	packet[1] ^= 0x40; /* MigReq, which rdma_rxe leaves 0 */
	packet[4] = 0xff;  /* FECN, BECN, reserved */
	packet[8] = 0x7f;  /* reserved, AckReq not */
	packet[16] = 0xff; /* in front of a DETH's source queue pair */
	assert_int_equal(decode(packet, sizeof(packet), &odd), VB_REASON_NONE);
	assert_memory_equal(&plain, &odd, offsetof(struct vb_run, path));
}

static void reserved_byte_of_xrc(void **state)
{
	uint8_t packet[64];
	struct vb_run run;

	(void)state;
	make(packet, sizeof(packet), XRC_SEND_ONLY, 0, 0x11);
	memset(packet + VB_BTH_BYTES, 0xff, VB_XRCETH_BYTES);
	assert_int_equal(decode(packet, sizeof(packet), &run), VB_REASON_NONE);
	assert_int_equal(run.srqn, 0xffffff);
}

static void queue_pair_numbers(void **state)
{
	(void)state;
	assert_int_equal(result(SEND_ONLY, 0, 0, 64), VB_REASON_DROP_QPN);
	assert_int_equal(result(UD_SEND_ONLY, 0, 0, 64), VB_REASON_DROP_QPN);
	assert_int_equal(result(SEND_ONLY, 0, 1, 64), VB_REASON_DROP_TYPE);
	assert_int_equal(result(UC_SEND_ONLY, 0, 1, 64), VB_REASON_DROP_TYPE);
	assert_int_equal(result(UD_SEND_ONLY, 0, 1, 64), VB_REASON_NONE);
	assert_int_equal(result(SEND_ONLY, 0, 0xffffff, 64), VB_REASON_DROP_QPN);
	assert_int_equal(result(UC_SEND_ONLY, 0, 0xffffff, 64), VB_REASON_DROP_QPN);
	assert_int_equal(result(UD_SEND_ONLY, 0, 0xffffff, 64), VB_REASON_NONE);
}

static void data_where_none_belongs(void **state)
{
	static const uint8_t codes[] = {READ_REQUEST, ACK, 0x12, 0x13, FETCH_ADD, 0xac, 0xb3};

	(void)state;
	for (size_t i = 0; i < sizeof(codes); i++) {
		size_t exact = vb_opcode_find(codes[i])->bytes + VB_ICRC_BYTES;

		assert_int_equal(result(codes[i], 0, 0x11, exact), VB_REASON_NONE);
		for (size_t more = 4; more <= 64; more += 4)
			assert_int_equal(result(codes[i], 0, 0x11, exact + more),
					 VB_REASON_DROP_MALFORMED);
		for (uint8_t pad = 1; pad < 4; pad++) {
			assert_int_equal(result(codes[i], pad, 0x11, exact),
					 VB_REASON_DROP_MALFORMED);
			assert_int_equal(result(codes[i], pad, 0x11, exact + 4),
					 VB_REASON_DROP_MALFORMED);
		}
	}
}

static void padding_inside_a_message(void **state)
{
	(void)state;
	for (uint8_t pad = 1; pad < 4; pad++) {
		assert_int_equal(result(SEND_FIRST, pad, 0x11, 16 + 1024),
				 VB_REASON_DROP_MALFORMED);
		assert_int_equal(result(SEND_MIDDLE, pad, 0x11, 16 + 1024),
				 VB_REASON_DROP_MALFORMED);
		assert_int_equal(result(0x0d, pad, 0x11, 20 + 1024), VB_REASON_DROP_MALFORMED);
		assert_int_equal(result(0x0e, pad, 0x11, 16 + 1024), VB_REASON_DROP_MALFORMED);
		assert_int_equal(result(SEND_LAST, pad, 0x11, 16 + 1024), VB_REASON_NONE);
	}
}

static void longer_than_any_path(void **state)
{
	(void)state;
	for (unsigned int code = 0; code < 256; code++) {
		const struct vb_opcode *o = vb_opcode_find((uint8_t)code);
		size_t full = o ? o->bytes + VB_MTU_MOST + VB_ICRC_BYTES : 0;

		if (!o || !o->payload)
			continue;
		assert_int_equal(result((uint8_t)code, 0, 0x11, full), VB_REASON_NONE);
		assert_int_equal(result((uint8_t)code, 0, 0x11, full + 4),
				 VB_REASON_DROP_MALFORMED);
		assert_int_equal(result((uint8_t)code, 3, 0x11, full + 4),
				 VB_REASON_DROP_MALFORMED);
	}
}

/* What only a queue pair can judge goes through as it is. */
static void left_to_the_queue_pair(void **state)
{
	uint8_t packet[64];
	struct vb_run run;

	(void)state;
	make(packet, sizeof(packet), WRITE_ONLY, 0, 0x11);
	memset(packet + VB_BTH_BYTES, 0xff, VB_RETH_BYTES);
	assert_int_equal(decode(packet, 32, &run), VB_REASON_NONE);
	assert_int_equal(run.dma_length, 0xffffffff);
	assert_true(run.va == UINT64_MAX);
	assert_int_equal(run.length, 0);
	make(packet, sizeof(packet), FETCH_ADD, 0, 0x11);
	packet[19] = 0x01;
	assert_int_equal(decode(packet, 44, &run), VB_REASON_NONE);
	assert_int_equal(run.va, 1);
	assert_int_equal(result(SEND_FIRST, 0, 0x11, 16), VB_REASON_NONE);
	assert_int_equal(result(SEND_LAST, 0, 0x11, 16), VB_REASON_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shorter_than_a_bth),
		cmocka_unit_test(shorter_than_its_headers),
		cmocka_unit_test(every_length_and_pad),
		cmocka_unit_test(unknown_opcodes),
		cmocka_unit_test(congestion_notification),
		cmocka_unit_test(transport_version),
		cmocka_unit_test(reserved_bits),
		cmocka_unit_test(reserved_byte_of_xrc),
		cmocka_unit_test(queue_pair_numbers),
		cmocka_unit_test(data_where_none_belongs),
		cmocka_unit_test(padding_inside_a_message),
		cmocka_unit_test(longer_than_any_path),
		cmocka_unit_test(left_to_the_queue_pair),
	};

	return cmocka_run_group_tests_name("wire-malformed", tests, NULL, NULL);
}

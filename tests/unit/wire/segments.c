/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runs of many packets: the opcode of each position, PSNs that wrap, the fields that only the last
 * packet has, and bursts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "transport/psn.h"
#include "wire/opcode.h"
#include "wire/packet.h"

static struct vb_run message(uint8_t op, uint8_t flags, uint32_t length, uint32_t mtu)
{
	struct vb_run run;

	memset(&run, 0, sizeof(run));
	run.op = op;
	run.flags = flags;
	run.pkey = 0xffff;
	run.dest_qpn = 0x123456;
	run.psn = 0xfffffe;
	run.length = length;
	run.segments = (uint16_t)vb_psn_count(length, mtu);
	if (op == VB_OP_WRITE && flags & VB_RUN_FIRST) {
		run.va = 0x1000;
		run.rkey = 0x77;
		run.dma_length = length;
	}
	if (flags & (VB_RUN_IMM | VB_RUN_INV))
		run.imm = 0x01020304;
	if (op == VB_OP_READ_RESPONSE) {
		run.syndrome = VB_AETH_ACK;
		run.msn = 0x42;
	}
	return run;
}

/* Packet `segment`, written and read again; its header's length. */
static size_t packet(const struct vb_run *run, uint32_t segment, uint32_t mtu, struct vb_run *got)
{
	static uint8_t buffer[VB_PACKET_MOST];
	const uint8_t *payload;
	size_t bytes = vb_packet_bytes(run, segment, mtu);
	size_t header = vb_packet_header(run, segment, mtu, buffer);

	assert_true(bytes <= sizeof(buffer));
	assert_int_equal(vb_packet_decode(buffer, bytes, got, &payload), VB_REASON_NONE);
	assert_int_equal(payload - buffer, header);
	assert_int_equal(got->length, vb_packet_payload(run, segment, mtu));
	return header;
}

/* Each packet says of its part what the run says of the whole. */
static void check_run(const struct vb_run *run, uint32_t mtu)
{
	uint8_t end = VB_RUN_LAST | VB_RUN_IMM | VB_RUN_INV | VB_RUN_SOLICITED | VB_RUN_ACK_REQ;
	uint32_t total = 0;

	for (uint32_t i = 0; i < run->segments; i++) {
		bool last = i + 1u == run->segments;
		struct vb_run got;

		packet(run, i, mtu, &got);
		assert_int_equal(got.op, run->op);
		assert_int_equal(got.psn, (run->psn + i) & 0xffffff);
		assert_int_equal(got.flags & VB_RUN_FIRST, i ? 0 : run->flags & VB_RUN_FIRST);
		assert_int_equal(got.flags & end, last ? run->flags & end : 0);
		if (!last)
			assert_int_equal(got.length, mtu);
		if (run->op == VB_OP_WRITE && got.flags & VB_RUN_FIRST) {
			assert_int_equal(got.va, run->va);
			assert_int_equal(got.dma_length, run->length);
		}
		if (got.flags & (VB_RUN_IMM | VB_RUN_INV))
			assert_int_equal(got.imm, run->imm);
		if (run->op == VB_OP_READ_RESPONSE)
			assert_int_equal(got.msn,
					 got.flags & (VB_RUN_FIRST | VB_RUN_LAST) ? 0x42 : 0);
		total += got.length;
	}
	assert_int_equal(total, run->length);
}

static void parts_of_messages(void **state)
{
	static const uint32_t mtus[] = {256, 512, 1024, 2048, 4096};
	static const uint8_t ends[] = {0, VB_RUN_LAST, VB_RUN_LAST | VB_RUN_ACK_REQ,
				       VB_RUN_LAST | VB_RUN_SOLICITED,
				       VB_RUN_LAST | VB_RUN_IMM | VB_RUN_ACK_REQ};

	(void)state;
	for (size_t m = 0; m < sizeof(mtus) / sizeof(mtus[0]); m++) {
		for (uint8_t begin = 0; begin < 2; begin++) {
			for (size_t e = 0; e < sizeof(ends); e++) {
				uint8_t flags = begin | ends[e];
				uint32_t mtu = mtus[m];
				uint32_t odd = flags & VB_RUN_LAST ? mtu - 13 : 0;
				struct vb_run run = message(VB_OP_SEND, flags, 4 * mtu + odd, mtu);

				check_run(&run, mtu);
				run = message(VB_OP_WRITE, flags, 7 * mtu + odd, mtu);
				check_run(&run, mtu);
				if (flags & VB_RUN_IMM) {
					run = message(VB_OP_SEND, flags ^ VB_RUN_IMM ^ VB_RUN_INV,
						      3 * mtu + 1, mtu);
					check_run(&run, mtu);
					continue;
				}
				run = message(VB_OP_READ_RESPONSE, flags, 3 * mtu + odd, mtu);
				check_run(&run, mtu);
			}
		}
	}
}

static void acknowledgement_asked_inside(void **state)
{
	struct vb_run run = message(VB_OP_SEND, VB_RUN_FIRST | VB_RUN_ACK_REQ, 4096, 1024);

	(void)state;
	check_run(&run, 1024);
}

static void opcodes_by_position(void **state)
{
	uint8_t header[VB_PACKET_HEADER_MOST];
	struct vb_run run =
		message(VB_OP_WRITE, VB_RUN_FIRST | VB_RUN_LAST | VB_RUN_IMM, 3 * 1024, 1024);

	(void)state;
	assert_int_equal(vb_packet_header(&run, 0, 1024, header), 28);
	assert_int_equal(header[0], 0x06);
	assert_int_equal(vb_packet_header(&run, 1, 1024, header), 12);
	assert_int_equal(header[0], 0x07);
	assert_int_equal(header[9], 0xff); /* PSN 0xffffff, then 0 */
	assert_int_equal(vb_packet_header(&run, 2, 1024, header), 16);
	assert_int_equal(header[0], 0x09);
	assert_int_equal(header[9] | header[10] | header[11], 0);
}

/* udp(7): every datagram of a send is as long as the first, but the last may be shorter. */
static void bursts(void **state)
{
	static const uint8_t flags[] = {VB_RUN_FIRST, VB_RUN_LAST, 0, VB_RUN_FIRST | VB_RUN_LAST,
					VB_RUN_FIRST | VB_RUN_LAST | VB_RUN_IMM};
	static const uint8_t ops[] = {VB_OP_SEND, VB_OP_WRITE, VB_OP_READ_RESPONSE};

	(void)state;
	for (size_t o = 0; o < sizeof(ops); o++) {
		for (size_t f = 0; f < sizeof(flags); f++) {
			uint32_t length = flags[f] & VB_RUN_LAST ? 20 * 1024 - 3 : 20 * 1024;
			struct vb_run run = message(ops[o], flags[f], length, 1024);
			uint32_t at = 0;
			unsigned int count = 0;

			if (ops[o] == VB_OP_READ_RESPONSE && flags[f] & VB_RUN_IMM)
				continue;
			while (at < run.segments) {
				size_t size;
				uint32_t n = vb_packet_burst(&run, at, 1024, 8, &size);

				assert_in_range(n, 1, 8);
				assert_true(at + n <= run.segments);
				for (uint32_t i = 0; i + 1 < n; i++)
					assert_int_equal(vb_packet_bytes(&run, at + i, 1024), size);
				assert_true(vb_packet_bytes(&run, at + n - 1, 1024) <= size);
				at += n;
				count++;
			}
			assert_in_range(count, 3, 5);
		}
	}
}

static void burst_of_plain_sends(void **state)
{
	struct vb_run run = message(VB_OP_SEND, VB_RUN_FIRST | VB_RUN_LAST, 64 * 1024 - 100, 1024);
	size_t size;

	(void)state;
	assert_int_equal(vb_packet_burst(&run, 0, 1024, 1000, &size), 64);
	assert_int_equal(size, 1040);
	/*
	 * The RETH makes a WRITE's first packet longer; what is behind it has to wait for the next
	 * send.
	 */
	run = message(VB_OP_WRITE, VB_RUN_FIRST | VB_RUN_LAST, 64 * 1024, 1024);
	assert_int_equal(vb_packet_burst(&run, 0, 1024, 1000, &size), 2);
	assert_int_equal(size, 1056);
	assert_int_equal(vb_packet_burst(&run, 2, 1024, 1000, &size), 62);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_of_messages),
		cmocka_unit_test(acknowledgement_asked_inside),
		cmocka_unit_test(opcodes_by_position),
		cmocka_unit_test(bursts),
		cmocka_unit_test(burst_of_plain_sends),
	};

	return cmocka_run_group_tests_name("wire-segments", tests, NULL, NULL);
}

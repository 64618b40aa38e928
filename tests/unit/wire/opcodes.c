/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Every opcode: what it says, compared with a list written down separately, and there and back with
 * every field set.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <infiniband/verbs.h>

#include "wire/opcode.h"
#include "wire/packet.h"

struct expected {
	uint8_t code;
	uint8_t op;
	/*
	 * F first, L last, I immediate, K key to invalidate, then the headers: f feth, r reth, x
	 * atomic, a aeth, o original.
	 */
	const char *part;
	uint8_t bytes; /* of all headers */
};

/* IBA table 38 and the figures of chapter 9; XRC: annex A14, four bytes more on requests. */
static const struct expected rc[] = {
	{0x00, VB_OP_SEND, "F", 12},
	{0x01, VB_OP_SEND, "", 12},
	{0x02, VB_OP_SEND, "L", 12},
	{0x03, VB_OP_SEND, "LI", 16},
	{0x04, VB_OP_SEND, "FL", 12},
	{0x05, VB_OP_SEND, "FLI", 16},
	{0x06, VB_OP_WRITE, "Fr", 28},
	{0x07, VB_OP_WRITE, "", 12},
	{0x08, VB_OP_WRITE, "L", 12},
	{0x09, VB_OP_WRITE, "LI", 16},
	{0x0a, VB_OP_WRITE, "FLr", 28},
	{0x0b, VB_OP_WRITE, "FLIr", 32},
	{0x0c, VB_OP_READ_REQUEST, "FLr", 28},
	{0x0d, VB_OP_READ_RESPONSE, "Fa", 16},
	{0x0e, VB_OP_READ_RESPONSE, "", 12},
	{0x0f, VB_OP_READ_RESPONSE, "La", 16},
	{0x10, VB_OP_READ_RESPONSE, "FLa", 16},
	{0x11, VB_OP_ACK, "FLa", 16},
	{0x12, VB_OP_ATOMIC_ACK, "FLao", 24},
	{0x13, VB_OP_COMPARE_SWAP, "FLx", 40},
	{0x14, VB_OP_FETCH_ADD, "FLx", 40},
	{0x16, VB_OP_SEND, "LK", 16},
	{0x17, VB_OP_SEND, "FLK", 16},
	{0x1c, VB_OP_FLUSH, "FLfr", 32},
	{0x1d, VB_OP_ATOMIC_WRITE, "FLr", 28},
};
static const struct expected ud[] = {
	{0x64, VB_OP_SEND, "FL", 20},
	{0x65, VB_OP_SEND, "FLI", 24},
};

static bool is_answer(uint8_t op)
{
	return op == VB_OP_READ_RESPONSE || op == VB_OP_ACK || op == VB_OP_ATOMIC_ACK;
}

static bool carries_payload(uint8_t op)
{
	return op == VB_OP_SEND || op == VB_OP_WRITE || op == VB_OP_READ_RESPONSE ||
	       op == VB_OP_ATOMIC_WRITE;
}

static uint8_t flags_of(const char *part)
{
	return (uint8_t)((strchr(part, 'F') ? VB_RUN_FIRST : 0) |
			 (strchr(part, 'L') ? VB_RUN_LAST : 0) |
			 (strchr(part, 'I') ? VB_RUN_IMM : 0) |
			 (strchr(part, 'K') ? VB_RUN_INV : 0));
}

/* A run with every field that the opcode carries set to something telling, all others 0. */
static struct vb_run sample(uint8_t service, const struct expected *e, uint32_t length)
{
	struct vb_run run;

	memset(&run, 0, sizeof(run));
	run.service = service;
	run.op = e->op;
	run.flags = flags_of(e->part);
	run.pkey = 0x8123;
	run.segments = 1;
	run.dest_qpn = 0xabcdef;
	run.psn = 0xfedcba;
	run.length = length;
	if (run.flags & (VB_RUN_IMM | VB_RUN_INV))
		run.imm = 0x11223344;
	if (strchr(e->part, 'a')) {
		run.syndrome = 0x63;
		run.msn = 0x456789;
	}
	if (strchr(e->part, 'o'))
		run.original = 0x0123456789abcdef;
	if (strchr(e->part, 'r') || strchr(e->part, 'x')) {
		run.va = 0xf1f2f3f4f5f6f7f8;
		run.rkey = 0xdeadbeef;
	}
	if (strchr(e->part, 'f'))
		run.flush = VB_FETH(IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR);
	if (strchr(e->part, 'r'))
		run.dma_length = 0x80000000;
	if (strchr(e->part, 'x')) {
		run.swap_add = 0x1020304050607080;
		run.compare = 0x8070605040302010;
	}
	if (service == VB_SERVICE_UD) {
		run.qkey = 0x80010000;
		run.src_qpn = 0x00beef;
	}
	if (service == VB_SERVICE_XRC && !is_answer(e->op))
		run.srqn = 0x00cafe;
	return run;
}

static void there_and_back(uint8_t code, const struct vb_run *run, uint8_t bytes)
{
	uint8_t packet[256] = {0};
	struct vb_run got;
	const uint8_t *payload = NULL;
	size_t header = vb_packet_header(run, 0, 1024, packet);
	uint32_t pad = vb_packet_pad(run->length);

	memset(&got, 0, sizeof(got));
	assert_int_equal(header, bytes);
	assert_int_equal(packet[0], code);
	assert_int_equal(packet[1] & 0x40, 0x40);
	assert_int_equal(vb_packet_bytes(run, 0, 1024), header + run->length + pad + 4);
	assert_int_equal(vb_packet_decode(packet, header + run->length + pad + 4, &got, &payload),
			 0);
	assert_memory_equal(&got, run, offsetof(struct vb_run, path));
	assert_ptr_equal(payload, packet + header);
}

static void check_row(uint8_t class, uint8_t service, const struct expected *e, uint8_t more)
{
	const struct vb_opcode *o = vb_opcode_find((uint8_t)(class + e->code));
	bool last = strchr(e->part, 'L');

	assert_non_null(o);
	assert_int_equal(o->service, service);
	assert_int_equal(o->op, e->op);
	assert_int_equal(o->flags, flags_of(e->part));
	assert_int_equal(o->bytes, e->bytes + more);
	assert_int_equal(o->payload, carries_payload(e->op));
	assert_int_equal(vb_opcode_of(service, e->op, flags_of(e->part)), class + e->code);
	for (uint32_t length = 0; length < 12; length++) {
		struct vb_run run = sample(service, e, length);

		if (length && (!o->payload || (!last && length % 4)))
			continue;
		there_and_back((uint8_t)(class + e->code), &run, (uint8_t)(e->bytes + more));
		if (!last)
			continue;
		run.flags |= VB_RUN_ACK_REQ;
		there_and_back((uint8_t)(class + e->code), &run, (uint8_t)(e->bytes + more));
		run.flags |= VB_RUN_SOLICITED;
		there_and_back((uint8_t)(class + e->code), &run, (uint8_t)(e->bytes + more));
	}
}

static void every_opcode(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rc) / sizeof(rc[0]); i++) {
		check_row(0x00, VB_SERVICE_RC, &rc[i], 0);
		check_row(0xa0, VB_SERVICE_XRC, &rc[i], is_answer(rc[i].op) ? 0 : 4);
		if (rc[i].code <= 0x0b)
			check_row(0x20, VB_SERVICE_UC, &rc[i], 0);
	}
	for (size_t i = 0; i < sizeof(ud) / sizeof(ud[0]); i++)
		check_row(0, VB_SERVICE_UD, &ud[i], 0);
}

static void no_other_opcode(void **state)
{
	unsigned int known = 0;

	(void)state;
	for (unsigned int code = 0; code < 256; code++)
		known += vb_opcode_find((uint8_t)code) != NULL;
	assert_int_equal(known, 25 + 12 + 2 + 25);
	assert_null(vb_opcode_find(VB_OPCODE_CNP));
}

static void runs_that_no_packet_says(void **state)
{
	static const struct vb_run none[] = {
		{.op = VB_OP_DROP, .flags = 3, .segments = 1},
		{.op = VB_OP_COUNT, .flags = 3, .segments = 1},
		{.service = 4, .op = VB_OP_SEND, .flags = 3, .segments = 1},
		{.service = VB_SERVICE_UC, .op = VB_OP_SEND, .flags = 3 | VB_RUN_INV, .segments = 1},
		{.service = VB_SERVICE_UC, .op = VB_OP_READ_REQUEST, .flags = 3, .segments = 1},
		{.service = VB_SERVICE_UC, .op = VB_OP_ACK, .flags = 3, .segments = 1},
		{.service = VB_SERVICE_UD, .op = VB_OP_WRITE, .flags = 3, .segments = 1},
		{.service = VB_SERVICE_UD, .op = VB_OP_SEND, .flags = 1, .segments = 1},
		{.op = VB_OP_SEND, .flags = 1 | VB_RUN_IMM, .segments = 1},
		{.op = VB_OP_SEND, .flags = 3 | VB_RUN_IMM | VB_RUN_INV, .segments = 1},
		{.op = VB_OP_WRITE, .flags = 3 | VB_RUN_INV, .segments = 1},
		{.op = VB_OP_READ_RESPONSE, .flags = 3 | VB_RUN_IMM, .segments = 1},
	};
	uint8_t header[VB_PACKET_HEADER_MOST];

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_int_equal(vb_packet_header(&none[i], 0, 1024, header), 0);
		assert_int_equal(vb_packet_bytes(&none[i], 0, 1024), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_opcode),
		cmocka_unit_test(no_other_opcode),
		cmocka_unit_test(runs_that_no_packet_says),
	};

	return cmocka_run_group_tests_name("wire-opcodes", tests, NULL, NULL);
}

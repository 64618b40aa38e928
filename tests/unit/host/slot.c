/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Runs in slots: an acknowledgement that rides on a request, and where none may ride. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "host/slot.h"
#include "host/slot_send.h"

static struct vb_run request(enum vb_op op)
{
	struct vb_run run;

	memset(&run, 0, sizeof(run));
	run.service = VB_SERVICE_RC;
	run.op = (uint8_t)op;
	run.flags = VB_RUN_FIRST | VB_RUN_LAST | VB_RUN_ACKS;
	run.segments = 1;
	run.pkey = 0xffff;
	run.dest_qpn = 0xabcdef;
	run.src_qpn = 0xfedcba;
	run.psn = 0xffffff;
	run.ack_psn = 0x123456;
	run.length = 8;
	return run;
}

static void a_rider_arrives(void **state)
{
	struct vb_run run = request(VB_OP_SEND), got;
	struct vb_slot slot;
	const uint8_t *payload;
	uint32_t bulk;

	(void)state;
	memset(&slot, 0xee, sizeof(slot));
	assert_ptr_equal(vb_slot_encode(&slot, &run), vb_slot_payload(&slot, &run));
	assert_true(vb_slot_decode(&slot, &got, &payload, &bulk));
	assert_ptr_equal(payload, vb_slot_payload(&slot, &run));
	assert_int_equal(bulk, 0);
	assert_int_equal(got.ack_psn, run.ack_psn);
	assert_int_equal(got.psn, run.psn);
	assert_int_equal(got.dest_qpn, run.dest_qpn);
	assert_int_equal(got.src_qpn, run.src_qpn);
	assert_int_equal(got.length, run.length);
	assert_int_equal(got.pkey, run.pkey);

	/* Without one the numbers have nothing above their three bytes. */
	run.flags &= (uint8_t)~VB_RUN_ACKS;
	vb_slot_encode(&slot, &run);
	assert_true(vb_slot_decode(&slot, &got, &payload, &bulk));
	assert_int_equal(got.psn, run.psn);
	run.psn |= 0x1000000;
	vb_slot_encode(&slot, &run);
	assert_false(vb_slot_decode(&slot, &got, &payload, &bulk));
}

static void no_rider_elsewhere(void **state)
{
	static const enum vb_op others[] = {VB_OP_READ_REQUEST, VB_OP_READ_RESPONSE,
					    VB_OP_FETCH_ADD, VB_OP_ACK, VB_OP_DROP};
	static const enum vb_service services[] = {VB_SERVICE_UC, VB_SERVICE_UD, VB_SERVICE_XRC};
	struct vb_slot slot;
	const uint8_t *payload;
	struct vb_run run, got;
	uint32_t bulk;

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		run = request(others[i]);
		run.length = 0;
		vb_slot_encode(&slot, &run);
		assert_false(vb_slot_decode(&slot, &got, &payload, &bulk));
		run.flags &= (uint8_t)~VB_RUN_ACKS;
		vb_slot_encode(&slot, &run);
		assert_true(vb_slot_decode(&slot, &got, &payload, &bulk));
	}
	for (size_t i = 0; i < sizeof(services) / sizeof(services[0]); i++) {
		run = request(VB_OP_SEND);
		run.service = (uint8_t)services[i];
		vb_slot_encode(&slot, &run);
		assert_false(vb_slot_decode(&slot, &got, &payload, &bulk));
	}
}

static bool send_get(const struct vb_slot *slot, struct vb_slot_send *head)
{
	struct vb_slot_words words = vb_slot_send_words(slot);

	return vb_slot_send_get(slot, &words, head);
}

/* The short way writes and reads the same slots (slot_send.h). */
static void lies_as_a_run(enum vb_op op, const uint8_t *flags, size_t count)
{
	for (size_t i = 0; i < count * 40; i++) {
		struct vb_run run = request(op), got;
		struct vb_slot_send head, back;
		struct vb_slot by_run, by_send;
		const uint8_t *payload;
		uint32_t bulk;

		run.flags = VB_RUN_FIRST | VB_RUN_LAST | flags[i / 40];
		run.length = i % 40;
		run.imm = 0x01020304;
		if (op == VB_OP_WRITE) {
			run.va = 0x123456789abcdef0;
			run.rkey = 0x11223344;
			run.dma_length = run.length;
		}
		head = (struct vb_slot_send){
			.dest_qpn = run.dest_qpn,
			.src_qpn = run.src_qpn,
			.psn = run.psn,
			.ack_psn = run.flags & VB_RUN_ACKS ? run.ack_psn : 0,
			.length = run.length,
			.imm = run.flags & VB_RUN_IMM ? run.imm : 0,
			.pkey = run.pkey,
			.flags = run.flags,
			.op = run.op,
			.rkey = run.rkey,
			.va = run.va,
		};
		memset(&by_run, 0, sizeof(by_run));
		memset(&by_send, 0, sizeof(by_send));
		memset(&back, 0, sizeof(back));
		vb_slot_encode(&by_run, &run);
		vb_slot_send_put(by_send.data, &head);
		assert_memory_equal(by_run.data, by_send.data, sizeof(by_run.data));
		assert_true(send_get(&by_run, &back));
		assert_memory_equal(&head, &back, offsetof(struct vb_slot_send, op) + 1);
		assert_int_equal(head.rkey, back.rkey);
		assert_int_equal(head.va, back.va);
		assert_true(vb_slot_decode(&by_send, &got, &payload, &bulk));
		assert_int_equal(payload != NULL, vb_slot_send_holds(&head));
		if (payload)
			assert_ptr_equal(payload, by_send.data + vb_slot_send_at(&head));
	}
}

static void a_send_lies_as_a_run(void **state)
{
	static const uint8_t flags[] = {0, VB_RUN_IMM, VB_RUN_ACKS,
					VB_RUN_SOLICITED | VB_RUN_ACK_REQ,
					VB_RUN_IMM | VB_RUN_ACKS};

	(void)state;
	lies_as_a_run(VB_OP_SEND, flags, sizeof(flags));
}

static void a_write_lies_as_a_run(void **state)
{
	static const uint8_t flags[] = {VB_RUN_IMM, VB_RUN_IMM | VB_RUN_ACKS,
					VB_RUN_IMM | VB_RUN_SOLICITED | VB_RUN_ACK_REQ};

	(void)state;
	lies_as_a_run(VB_OP_WRITE, flags, sizeof(flags));
}

/* Without an immediate, with a key to invalidate, or with a header that names another length. */
static void other_writes_are_not_taken(void **state)
{
	struct vb_run run = request(VB_OP_WRITE);
	struct vb_slot slot;
	struct vb_slot_send head;

	(void)state;
	run.dma_length = run.length;
	vb_slot_encode(&slot, &run);
	assert_false(send_get(&slot, &head));
	run.flags |= VB_RUN_INV;
	vb_slot_encode(&slot, &run);
	assert_false(send_get(&slot, &head));
	run.flags ^= VB_RUN_INV | VB_RUN_IMM;
	vb_slot_encode(&slot, &run);
	assert_true(send_get(&slot, &head));
	run.dma_length++;
	vb_slot_encode(&slot, &run);
	assert_false(send_get(&slot, &head));
	run.dma_length = run.length;
	run.segments = 2;
	vb_slot_encode(&slot, &run);
	assert_false(send_get(&slot, &head));
}

/* Every bit that another kind of slot has, and nonsense, is left to the decoder. */
static void other_slots_are_not_taken(void **state)
{
	/* Bytes above the numbers, of the length, and of the number of packets. */
	static const uint8_t above[] = {7, 11, 15, 19, 20, 21};
	struct vb_run run = request(VB_OP_SEND);
	struct vb_slot slot;
	struct vb_slot_send head;

	(void)state;
	run.flags &= (uint8_t)~VB_RUN_ACKS;
	vb_slot_encode(&slot, &run);
	assert_true(send_get(&slot, &head));
	for (int byte = 0; byte < 4; byte++) {
		for (int bit = 0; bit < 8; bit++) {
			uint8_t allowed = byte == 1 ? VB_EXPRESS_FLAGS : 0;

			slot.data[byte] ^= (uint8_t)(1 << bit);
			assert_int_equal(send_get(&slot, &head), allowed >> bit & 1);
			slot.data[byte] ^= (uint8_t)(1 << bit);
		}
	}
	for (size_t i = 0; i < sizeof(above); i++) {
		slot.data[above[i]] ^= 0x80;
		assert_false(send_get(&slot, &head));
		slot.data[above[i]] ^= 0x80;
	}
	run.length = VB_MTU_MOST + 1;
	vb_slot_encode(&slot, &run);
	assert_false(send_get(&slot, &head));
}

static void send_encode(struct vb_slot *slot, struct vb_slot_words *words,
			struct vb_slot_send *head, const struct vb_run *run)
{
	memset(slot, 0, sizeof(*slot));
	memset(head, 0, sizeof(*head));
	vb_slot_encode(slot, run);
	*words = vb_slot_send_words(slot);
	assert_true(vb_slot_send_get(slot, words, head));
}

/*
 * A slot that follows another one says what reading it anew would say; any bit that makes it something
 * else is seen.
 */
static void a_slot_that_follows(void **state)
{
	static const uint32_t lengths[] = {0, 8, 32, 33, 1024, VB_MTU_MOST};
	struct vb_slot slot, next;
	struct vb_slot_words words, next_words;
	struct vb_slot_send head, expected, got;
	struct vb_run run = request(VB_OP_SEND);

	(void)state;
	for (size_t i = 0; i < 36; i++) {
		run = request(VB_OP_SEND);
		run.flags = VB_RUN_FIRST | VB_RUN_LAST | VB_RUN_ACK_REQ;
		run.psn = 0x1234;
		run.length = lengths[i / 6];
		send_encode(&slot, &words, &head, &run);
		run.psn++;
		run.length = lengths[i % 6];
		send_encode(&next, &next_words, &expected, &run);
		got = head;
		assert_int_equal(vb_slot_send_follow(&words, &next_words, &got),
				 vb_slot_send_holds(&head) == vb_slot_send_holds(&expected));
		if (got.psn == expected.psn)
			assert_memory_equal(&got, &expected, sizeof(got));
		for (unsigned int bit = 0; bit < 192; bit++) {
			struct vb_slot odd = next;

			odd.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
			next_words = vb_slot_send_words(&odd);
			got = head;
			if (!vb_slot_send_follow(&words, &next_words, &got))
				continue;
			assert_true(bit / 32 == 4); /* another length */
			assert_true(send_get(&odd, &expected));
			assert_int_equal(got.length, expected.length);
		}
	}
	/* What more is said than that: an immediate, an acknowledgement; the end of the numbers. */
	for (int i = 0; i < 3; i++) {
		run = request(VB_OP_SEND);
		run.length = 8;
		run.flags = VB_RUN_FIRST | VB_RUN_LAST |
			    (i == 0   ? VB_RUN_IMM
			     : i == 1 ? VB_RUN_ACKS
				      : 0);
		run.psn = i == 2 ? VB_QPN_MASK : 0x1234;
		send_encode(&slot, &words, &head, &run);
		run.psn = (run.psn + 1) & VB_QPN_MASK;
		send_encode(&next, &next_words, &expected, &run);
		assert_false(vb_slot_send_follow(&words, &next_words, &head));
	}
}

/* A lent payload: the slot has its place, which nothing reads here; no other run may say that. */
static void a_lent_payload(void **state)
{
	struct vb_run run = request(VB_OP_SEND), got;
	struct vb_slot slot;
	struct vb_slot_send small;
	const uint8_t *payload;
	uint32_t bulk;

	(void)state;
	run.flags |= VB_RUN_LENT | VB_RUN_IMM;
	run.imm = 0x99;
	run.length = 200000;
	run.segments = 200;
	run.lent = (struct vb_lent){0x123456789a0, 1, 2, 3};
	assert_true(vb_slot_fits_inline(&run));
	vb_slot_encode(&slot, &run);
	assert_false(send_get(&slot, &small));
	assert_true(vb_slot_decode(&slot, &got, &payload, &bulk));
	assert_int_equal(bulk, 0);
	assert_true((uintptr_t)payload == 0x123456789a0);
	assert_int_equal(got.imm, 0x99);
	assert_memory_equal(&got.lent, &run.lent, offsetof(struct vb_lent, qp_generation) + 4);
	assert_int_equal(got.ack_psn, run.ack_psn);

	for (int i = 0; i < 4; i++) {
		struct vb_run odd = run;

		odd.service = i == 1 ? VB_SERVICE_UC : odd.service;
		odd.length = i == 2 ? 0 : odd.length;
		odd.flags &= (uint8_t) ~(i == 1 ? VB_RUN_ACKS : 0);
		vb_slot_encode(&slot, &odd);
		if (i ==
		    0) /* no sender makes one, and there is no room for what a WRITE has besides */
			slot.data[AT_OP] = VB_OP_WRITE;
		if (i == 3)
			slot.data[AT_SERVICE] &= (uint8_t)~SLOT_INLINE;
		assert_false(vb_slot_decode(&slot, &got, &payload, &bulk));
	}
	vb_slot_encode_from_wire(&slot, &run);
	assert_false(vb_slot_decode(&slot, &got, &payload, &bulk));
	vb_slot_encode_handed(&slot, &run);
	assert_false(vb_slot_decode(&slot, &got, &payload, &bulk));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lent_payload),
		cmocka_unit_test(a_rider_arrives),
		cmocka_unit_test(no_rider_elsewhere),
		cmocka_unit_test(a_send_lies_as_a_run),
		cmocka_unit_test(a_write_lies_as_a_run),
		cmocka_unit_test(other_writes_are_not_taken),
		cmocka_unit_test(a_slot_that_follows),
		cmocka_unit_test(other_slots_are_not_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

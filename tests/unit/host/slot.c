/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Runs in slots: an acknowledgement that rides on a request, and where none may ride. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "host/slot.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rider_arrives),
		cmocka_unit_test(no_rider_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

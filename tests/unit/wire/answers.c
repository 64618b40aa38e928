/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The requester gets acknowledgements and responses that no correct peer sends: memory stays as it
 * is, and the requests complete correctly.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "peer.h"

#define RC        VB_SERVICE_RC
#define ONLY      (VB_RUN_FIRST | VB_RUN_LAST)
#define POST_SEND 0x08 /* 511 bytes */
#define POST_READ 0x34 /* 3066 bytes: three packets */
#define POST_FAA  0x06

static struct endpoint e;

/* An answer to the own PSN `psn` after the start. */
static struct vb_run answer(uint8_t op, uint8_t flags, uint32_t psn, uint8_t syndrome,
			    uint32_t length)
{
	struct vb_run run = peer_packet(RC, op, flags, 0, length);

	run.flags = flags;
	run.psn = OWN_PSN + psn;
	run.syndrome = syndrome;
	return run;
}

static void give(uint8_t op, uint8_t flags, uint32_t psn, uint8_t syndrome, uint32_t length)
{
	struct vb_run run = answer(op, flags, psn, syndrome, length);

	assert_int_equal(peer_send(&e, &run), VB_REASON_NONE);
}

static void start(uint8_t what, unsigned int requests)
{
	peer_start(&e, RC, 0);
	while (requests--)
		endpoint_post_send(&e, what);
	endpoint_run(&e, 1000);
}

static bool local_untouched(void)
{
	for (uint32_t i = 0; i < END_LOCAL; i++) {
		if (e.local[i])
			return false;
	}
	return true;
}

static void acknowledged_but_never_sent(void **state)
{
	(void)state;
	start(POST_SEND, 2);
	give(VB_OP_ACK, ONLY, 2, VB_AETH_ACK, 0);
	assert_int_equal(e.said, VB_REASON_DROP_STALE);
	give(VB_OP_ACK, ONLY, 1u << 22, VB_AETH_ACK, 0);
	assert_int_equal(e.said, VB_REASON_DROP_STALE);
	give(VB_OP_ACK, ONLY, 2, VB_AETH_NAK_ACCESS, 0);
	assert_int_equal(e.said, VB_REASON_DROP_STALE);
	assert_int_equal(e.completed, 0);
	give(VB_OP_ACK, ONLY, 1, VB_AETH_ACK, 0);
	assert_int_equal(e.completed, 2);
	assert_int_equal(e.send_status, IBV_WC_SUCCESS);
	endpoint_stop(&e);
}

static void refused_after_it_was_done(void **state)
{
	static const uint8_t syndromes[] = {VB_AETH_NAK_SEQUENCE, VB_AETH_NAK_INVALID,
					    VB_AETH_NAK_ACCESS, VB_AETH_NAK_OPERATION, VB_AETH_RNR};

	(void)state;
	start(POST_SEND, 2);
	give(VB_OP_ACK, ONLY, 0, VB_AETH_ACK, 0);
	uint32_t sent = e.runs_sent;

	for (size_t i = 0; i < sizeof(syndromes); i++)
		give(VB_OP_ACK, ONLY, 0, syndromes[i], 0);
	assert_int_equal(e.qp.state, IBV_QPS_RTS);
	assert_int_equal(e.completed, 1);
	assert_int_equal(e.runs_sent, sent);
	endpoint_stop(&e);
}

static void reserved_syndromes(void **state)
{
	(void)state;
	start(POST_SEND, 1);
	for (unsigned int s = 0; s < 256; s++) {
		bool reserved = (s & 0x60) == 0x40 || ((s & 0x60) == 0x60 && (s & 0x1f) > 4);

		if (!reserved || s & 0x80)
			continue;
		give(VB_OP_ACK, ONLY, 0, (uint8_t)s, 0);
		assert_int_equal(e.said, VB_REASON_DROP_MALFORMED);
		assert_int_equal(e.completed, 0);
		assert_int_equal(e.qp.state, IBV_QPS_RTS);
	}
	give(VB_OP_ACK, ONLY, 0, VB_AETH_ACK, 0);
	assert_int_equal(e.completed, 1);
	endpoint_stop(&e);
}

/* Timer 0 is the longest pause there is (655 ms), not none. */
static void rnr_timer_zero(void **state)
{
	(void)state;
	start(POST_SEND, 1);
	give(VB_OP_ACK, ONLY, 0, VB_AETH_RNR, 0);
	assert_int_equal(e.runs_sent, 1);
	vb_tqp_timer(&e.qp);
	endpoint_run(&e, 1000);
	assert_int_equal(e.runs_sent, 2);
	give(VB_OP_ACK, ONLY, 0, VB_AETH_ACK, 0);
	assert_int_equal(e.completed, 1);
	endpoint_stop(&e);
}

/*
 * An acknowledgement that passes a READ says that its response got lost: it is asked for again,
 * from where it broke off.
 */
static void acknowledged_in_the_middle_of_a_read(void **state)
{
	(void)state;
	start(POST_READ, 1);
	assert_int_equal(e.sent.op, VB_OP_READ_REQUEST);
	give(VB_OP_READ_RESPONSE, VB_RUN_FIRST, 0, VB_AETH_ACK, 1024);
	give(VB_OP_ACK, ONLY, 2, VB_AETH_ACK, 0);
	assert_int_equal(e.completed, 0);
	assert_int_equal(e.runs_sent, 2);
	assert_int_equal(e.sent.op, VB_OP_READ_REQUEST);
	assert_int_equal(e.sent.psn, OWN_PSN + 1);
	assert_int_equal(e.sent.dma_length, 3066 - 1024);
	assert_true(e.sent.va == 0x4000 + 1024);
	give(VB_OP_READ_RESPONSE, VB_RUN_FIRST, 1, VB_AETH_ACK, 1024);
	give(VB_OP_READ_RESPONSE, VB_RUN_LAST, 2, VB_AETH_ACK, 3066 - 2048);
	assert_int_equal(e.completed, 1);
	assert_int_equal(e.send_status, IBV_WC_SUCCESS);
	endpoint_stop(&e);
}

static void read_responses_of_wrong_length(void **state)
{
	static const struct {
		uint8_t flags;
		uint32_t length;
	} bad[] = {{VB_RUN_FIRST, 1020},
		   {VB_RUN_FIRST, 4096},
		   {VB_RUN_FIRST, 0},
		   {ONLY, 4000},
		   {ONLY, 1}};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		start(POST_READ, 1);
		give(VB_OP_READ_RESPONSE, bad[i].flags, 0, VB_AETH_ACK, bad[i].length);
		assert_int_equal(e.said, VB_REASON_BAD_RESPONSE);
		assert_int_equal(e.send_status, IBV_WC_BAD_RESP_ERR);
		assert_true(local_untouched());
		endpoint_stop(&e);
	}
}

static void read_responses_out_of_order(void **state)
{
	(void)state;
	start(POST_READ, 1);
	give(VB_OP_READ_RESPONSE, VB_RUN_LAST, 2, VB_AETH_ACK,
	     3066 - 2048); /* the first two are missing */
	assert_int_equal(e.completed, 0);
	assert_true(local_untouched());
	assert_int_equal(e.runs_sent, 2); /* asked for again */
	give(VB_OP_READ_RESPONSE, VB_RUN_LAST, 5, VB_AETH_ACK, 8);
	assert_int_equal(e.said, VB_REASON_DROP_STALE);
	assert_int_equal(e.qp.state, IBV_QPS_RTS);
	endpoint_stop(&e);
}

static void answers_of_another_kind(void **state)
{
	static const struct {
		uint8_t post, op;
		uint32_t length;
	} bad[] = {{POST_SEND, VB_OP_READ_RESPONSE, 8},
		   {POST_SEND, VB_OP_ATOMIC_ACK, 0},
		   {POST_READ, VB_OP_ATOMIC_ACK, 0},
		   {POST_FAA, VB_OP_READ_RESPONSE, 8}};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		start(bad[i].post, 1);
		give(bad[i].op, ONLY, 0, VB_AETH_ACK, bad[i].length);
		assert_int_equal(e.said, VB_REASON_BAD_RESPONSE);
		assert_int_equal(e.send_status, IBV_WC_BAD_RESP_ERR);
		assert_int_equal(e.qp.state, IBV_QPS_ERR);
		assert_true(local_untouched());
		endpoint_stop(&e);
	}
}

static void answers_nobody_waits_for(void **state)
{
	static const uint8_t ops[] = {VB_OP_ACK, VB_OP_READ_RESPONSE, VB_OP_ATOMIC_ACK};

	(void)state;
	peer_start(&e, RC, 0);
	for (size_t i = 0; i < sizeof(ops); i++) {
		for (uint32_t psn = 0; psn < 3; psn++)
			give(ops[i], ONLY, psn, VB_AETH_ACK, ops[i] == VB_OP_READ_RESPONSE ? 8 : 0);
		assert_int_equal(e.said, VB_REASON_DROP_STALE);
	}
	assert_int_equal(e.qp.state, IBV_QPS_RTS);
	assert_true(local_untouched());
	endpoint_stop(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(acknowledged_but_never_sent),
		cmocka_unit_test(refused_after_it_was_done),
		cmocka_unit_test(reserved_syndromes),
		cmocka_unit_test(rnr_timer_zero),
		cmocka_unit_test(acknowledged_in_the_middle_of_a_read),
		cmocka_unit_test(read_responses_of_wrong_length),
		cmocka_unit_test(read_responses_out_of_order),
		cmocka_unit_test(answers_of_another_kind),
		cmocka_unit_test(answers_nobody_waits_for),
	};

	return cmocka_run_group_tests_name("wire-answers", tests, NULL, NULL);
}

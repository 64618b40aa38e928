/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The responder gets packets with correct headers and harmful contents: none touches memory that it
 * may not, each is dropped or refused for its proper reason, and what should go on goes on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "peer.h"

#define FIRST  VB_RUN_FIRST
#define MIDDLE 0
#define LAST   VB_RUN_LAST
#define ONLY   (VB_RUN_FIRST | VB_RUN_LAST)
#define RC     VB_SERVICE_RC
#define UC     VB_SERVICE_UC
#define UD     VB_SERVICE_UD

static struct endpoint e;

/* The queue pair answered with this NAK for this reason, and is in the error state. */
static void assert_refused(uint8_t syndrome, enum vb_reason reason)
{
	assert_int_equal(e.said, reason);
	assert_int_equal(e.sent.op, VB_OP_ACK);
	assert_int_equal(e.sent.syndrome, syndrome);
	assert_int_equal(e.qp.state, IBV_QPS_ERR);
	endpoint_stop(&e);
}

/* The queue pair said nothing to the peer, and works. */
static void assert_dropped(enum vb_reason reason, uint32_t sent_before)
{
	assert_int_equal(e.said, reason);
	assert_int_equal(e.runs_sent, sent_before);
	assert_int_equal(e.qp.state, IBV_QPS_RTS);
}

static void one(uint8_t service, uint8_t op, uint8_t flags, uint32_t psn, uint32_t length)
{
	struct vb_run run = peer_packet(service, op, flags, psn, length);

	assert_int_equal(peer_send(&e, &run), VB_REASON_NONE);
}

static void lengths_that_do_not_fit_the_path(void **state)
{
	static const struct {
		uint8_t flags;
		uint32_t length;
	} bad[] = {{FIRST, 1020},  {FIRST, 0}, {FIRST, 2048}, {MIDDLE, 1020}, {MIDDLE, 0},
		   {MIDDLE, 4096}, {LAST, 0},  {LAST, 1025},  {ONLY, 1025},   {ONLY, 4096}};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint32_t psn = bad[i].flags & FIRST ? 0 : 1;

		peer_start(&e, RC, 2);
		if (psn)
			one(RC, VB_OP_SEND, FIRST, 0, PEER_MTU);
		one(RC, VB_OP_SEND, bad[i].flags, psn, bad[i].length);
		assert_int_equal(e.receives, psn);
		assert_refused(VB_AETH_NAK_INVALID, VB_REASON_PACKET_LENGTH);

		peer_start(&e, UC, 2);
		if (psn)
			one(UC, VB_OP_SEND, FIRST, 0, PEER_MTU);
		one(UC, VB_OP_SEND, bad[i].flags, psn, bad[i].length);
		assert_dropped(VB_REASON_DROP_MALFORMED, 0);
		one(UC, VB_OP_SEND, ONLY, 9, 10);
		assert_int_equal(e.receives, 1);
		endpoint_stop(&e);
	}
}

static void datagrams_too_long(void **state)
{
	(void)state;
	peer_start(&e, UD, 0);
	endpoint_post_recv(&e, 96);
	one(UD, VB_OP_SEND, ONLY, 0, 57); /* and 40 of header */
	assert_dropped(VB_REASON_DROP_TOO_LONG, 0);
	one(UD, VB_OP_SEND, ONLY, 0, PEER_MTU + 1);
	assert_dropped(VB_REASON_DROP_MALFORMED, 0);
	one(UD, VB_OP_SEND, ONLY, 0, 56);
	assert_int_equal(e.receives, 1);
	assert_int_equal(e.received.byte_len, 96);
	one(UD, VB_OP_SEND, ONLY, 0, 56);
	assert_dropped(VB_REASON_DROP_NO_RECEIVE, 0);
	endpoint_stop(&e);
}

static void whom_it_is_not_for(void **state)
{
	struct vb_run run = peer_packet(UD, VB_OP_SEND, ONLY, 0, 8);

	(void)state;
	peer_start(&e, RC, 1);
	assert_int_equal(peer_send(&e, &run), VB_REASON_NONE);
	assert_dropped(VB_REASON_DROP_TYPE, 0);
	one(UC, VB_OP_SEND, ONLY, 0, 8);
	assert_dropped(VB_REASON_DROP_TYPE, 0);
	one(VB_SERVICE_XRC, VB_OP_SEND, ONLY, 0, 8);
	assert_dropped(VB_REASON_DROP_TYPE, 0);
	run = peer_packet(RC, VB_OP_SEND, ONLY, 0, 8);
	run.pkey = 0x8001;
	assert_int_equal(peer_send(&e, &run), VB_REASON_NONE);
	assert_dropped(VB_REASON_DROP_PKEY, 0);
	endpoint_stop(&e);

	peer_start(&e, UD, 1);
	run = peer_packet(UD, VB_OP_SEND, ONLY, 0, 8);
	run.qkey++;
	assert_int_equal(peer_send(&e, &run), VB_REASON_NONE);
	assert_dropped(VB_REASON_DROP_QKEY, 0);
	endpoint_stop(&e);
}

static void states_that_take_nothing(void **state)
{
	static const uint8_t states[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_ERR};

	(void)state;
	for (size_t i = 0; i < sizeof(states); i++) {
		peer_start(&e, RC, 1);
		e.qp.state = states[i];
		one(RC, VB_OP_SEND, ONLY, 0, 8);
		assert_int_equal(e.said, VB_REASON_DROP_STATE);
		one(RC, VB_OP_WRITE, ONLY, 0, 8);
		assert_int_equal(e.said, VB_REASON_DROP_STATE);
		one(RC, VB_OP_ACK, ONLY, 0, 0);
		assert_int_equal(e.said, VB_REASON_DROP_STATE);
		assert_int_equal(e.runs_sent, 0);
		assert_int_equal(e.receives, 0);
		assert_true(peer_untouched(&e, 0, 0));
		endpoint_stop(&e);
	}
}

static void no_bytes_need_no_key(void **state)
{
	struct vb_run run = peer_packet(RC, VB_OP_WRITE, ONLY, 0, 0);

	(void)state;
	peer_start(&e, RC, 0);
	run.rkey = 0xdeadbeef;
	run.va = UINT64_MAX;
	assert_int_equal(peer_send(&e, &run), VB_REASON_NONE);
	assert_int_equal(e.sent.syndrome, VB_AETH_ACK);
	run = peer_packet(RC, VB_OP_READ_REQUEST, ONLY, 1, 0);
	run.rkey = 0xdeadbeef;
	assert_int_equal(peer_send(&e, &run), VB_REASON_NONE);
	assert_int_equal(e.sent.op, VB_OP_READ_RESPONSE);
	assert_int_equal(e.sent.length, 0);
	assert_int_equal(e.qp.state, IBV_QPS_RTS);
	endpoint_stop(&e);
}

/* For WRITE, READ and (length 8) ATOMIC. */
static void bad_range(uint32_t rkey, uint64_t va, uint32_t length, uint8_t syndrome,
		      enum vb_reason reason)
{
	static const uint8_t ops[] = {VB_OP_WRITE, VB_OP_READ_REQUEST, VB_OP_FETCH_ADD};

	for (size_t i = 0; i < sizeof(ops); i++) {
		struct vb_run run = peer_packet(RC, ops[i], ONLY, 0, i ? 0 : PEER_MTU);

		if (ops[i] == VB_OP_FETCH_ADD && length != 8)
			continue;
		if (ops[i] == VB_OP_WRITE)
			run.length = length < PEER_MTU ? length : PEER_MTU;
		if (length > PEER_MTU && ops[i] == VB_OP_WRITE)
			run.flags = FIRST;
		peer_start(&e, RC, 0);
		run.rkey = rkey;
		run.va = va;
		run.dma_length = length;
		assert_int_equal(peer_send(&e, &run), VB_REASON_NONE);
		assert_true(peer_untouched(&e, 0, 0));
		assert_refused(syndrome, reason);
	}
}

static void ranges(void **state)
{
	(void)state;
	bad_range(END_KEY, END_IOVA, 0x80000001u, VB_AETH_NAK_INVALID, VB_REASON_RETH_LENGTH);
	bad_range(END_KEY, END_IOVA, UINT32_MAX, VB_AETH_NAK_INVALID, VB_REASON_RETH_LENGTH);
	bad_range(END_KEY, END_IOVA, 0x80000000u, VB_AETH_NAK_ACCESS, VB_REASON_RKEY_RANGE);
	bad_range(END_KEY, UINT64_MAX - 7, 8, VB_AETH_NAK_ACCESS, VB_REASON_RKEY_RANGE);
	bad_range(END_KEY, UINT64_MAX - 7, 0x7fffffff, VB_AETH_NAK_ACCESS, VB_REASON_RKEY_RANGE);
	bad_range(END_KEY, END_IOVA - 8, 8, VB_AETH_NAK_ACCESS, VB_REASON_RKEY_RANGE);
	bad_range(END_KEY, END_IOVA - 1, 2, VB_AETH_NAK_ACCESS, VB_REASON_RKEY_RANGE);
	bad_range(END_KEY, END_IOVA + END_REGION - 1, 2, VB_AETH_NAK_ACCESS, VB_REASON_RKEY_RANGE);
	bad_range(END_KEY, END_IOVA + END_REGION, 8, VB_AETH_NAK_ACCESS, VB_REASON_RKEY_RANGE);
	bad_range(END_KEY, END_IOVA, END_REGION + 1, VB_AETH_NAK_ACCESS, VB_REASON_RKEY_RANGE);
	bad_range(END_KEY + 1, END_IOVA, 8, VB_AETH_NAK_ACCESS, VB_REASON_RKEY_UNKNOWN);
	bad_range(0, END_IOVA, 8, VB_AETH_NAK_ACCESS, VB_REASON_RKEY_UNKNOWN);
	bad_range(END_KEY_DULL, END_IOVA, 8, VB_AETH_NAK_ACCESS, VB_REASON_RKEY_ACCESS);
}

static void misaligned_atomic(void **state)
{
	(void)state;
	for (uint32_t off = 1; off < 8; off++) {
		struct vb_run run = peer_packet(RC, VB_OP_FETCH_ADD, ONLY, 0, 0);

		peer_start(&e, RC, 0);
		run.va += off;
		run.swap_add = 1;
		assert_int_equal(peer_send(&e, &run), VB_REASON_NONE);
		assert_true(peer_untouched(&e, 0, 0));
		assert_refused(VB_AETH_NAK_INVALID, VB_REASON_ATOMIC_ALIGN);
	}
}

/* The RETH promises so many bytes, the packets bring others. */
static void write_of_another_length(void **state)
{
	static const struct {
		uint32_t promised;
		uint8_t second; /* flags of the packet after FIRST; its length below */
		uint32_t length;
	} bad[] = {{1024, MIDDLE, 1024}, {1024, LAST, 4},   {2048, LAST, 1023},
		   {2048, MIDDLE, 1024}, {2000, LAST, 977}, {3000, LAST, 1024},
		   {1500, LAST, 477}};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct vb_run run = peer_packet(RC, VB_OP_WRITE, FIRST, 0, PEER_MTU);

		peer_start(&e, RC, 0);
		run.dma_length = bad[i].promised;
		assert_int_equal(peer_send(&e, &run), VB_REASON_NONE);
		if (e.qp.state == IBV_QPS_RTS)
			one(RC, VB_OP_WRITE, bad[i].second, 1, bad[i].length);
		assert_true(peer_untouched(&e, 0, PEER_MTU));
		assert_refused(VB_AETH_NAK_INVALID, VB_REASON_RETH_LENGTH);
	}
}

static void region_gone_between(void **state)
{
	struct vb_run run = peer_packet(RC, VB_OP_WRITE, FIRST, 0, PEER_MTU);

	(void)state;
	peer_start(&e, RC, 0);
	run.dma_length = 3 * PEER_MTU;
	assert_int_equal(peer_send(&e, &run), VB_REASON_NONE);
	e.keys[0].key = 0;
	one(RC, VB_OP_WRITE, MIDDLE, 1, PEER_MTU);
	assert_true(peer_untouched(&e, 0, PEER_MTU));
	assert_refused(VB_AETH_NAK_ACCESS, VB_REASON_RKEY_UNKNOWN);
}

static void parts_in_impossible_order(void **state)
{
	static const struct {
		uint8_t op[2], flags[2]; /* the first packet is fine, or 0xff for none */
	} bad[] = {
		{{0xff, VB_OP_SEND}, {0, MIDDLE}},
		{{0xff, VB_OP_SEND}, {0, LAST}},
		{{0xff, VB_OP_WRITE}, {0, MIDDLE}},
		{{0xff, VB_OP_WRITE}, {0, LAST}},
		{{VB_OP_SEND, VB_OP_SEND}, {FIRST, FIRST}},
		{{VB_OP_SEND, VB_OP_SEND}, {FIRST, ONLY}},
		{{VB_OP_SEND, VB_OP_WRITE}, {FIRST, MIDDLE}},
		{{VB_OP_SEND, VB_OP_WRITE}, {FIRST, ONLY}},
		{{VB_OP_WRITE, VB_OP_SEND}, {FIRST, LAST}},
		{{VB_OP_WRITE, VB_OP_WRITE}, {FIRST, FIRST}},
		{{VB_OP_WRITE, VB_OP_READ_REQUEST}, {FIRST, ONLY}},
		{{VB_OP_SEND, VB_OP_FETCH_ADD}, {FIRST, ONLY}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint32_t psn = 0;

		peer_start(&e, RC, 2);
		if (bad[i].op[0] != 0xff) {
			struct vb_run run =
				peer_packet(RC, bad[i].op[0], bad[i].flags[0], psn++, PEER_MTU);

			run.dma_length = 4 * PEER_MTU;
			assert_int_equal(peer_send(&e, &run), VB_REASON_NONE);
			assert_int_equal(e.qp.state, IBV_QPS_RTS);
		}
		one(RC, bad[i].op[1], bad[i].flags[1], psn,
		    bad[i].op[1] > VB_OP_WRITE ? 0 : PEER_MTU);
		assert_true(peer_untouched(&e, 0, bad[i].op[0] == VB_OP_WRITE ? PEER_MTU : 0));
		assert_refused(VB_AETH_NAK_INVALID, VB_REASON_OPCODE_SEQUENCE);
	}
}

static void sequence_numbers(void **state)
{
	(void)state;
	peer_start(&e, RC, 8);
	one(RC, VB_OP_SEND, ONLY, 1, 8); /* one is missing */
	assert_int_equal(e.said, VB_REASON_DROP_STALE);
	assert_int_equal(e.sent.syndrome, VB_AETH_NAK_SEQUENCE);
	assert_int_equal(e.sent.psn, PEER_PSN);
	one(RC, VB_OP_SEND, ONLY, 2, 8); /* complained about once */
	one(RC, VB_OP_SEND, ONLY, (1u << 23) - 1, 8);
	assert_int_equal(e.runs_sent, 1);
	assert_int_equal(e.receives, 0);
	for (uint32_t i = 0; i < 6; i++) { /* across the wrap */
		one(RC, VB_OP_SEND, ONLY, i, 8);
		assert_int_equal(e.receives, i + 1);
		assert_int_equal(e.sent.psn, (PEER_PSN + i) & 0xffffff);
		assert_int_equal(e.sent.syndrome, VB_AETH_ACK);
	}
	one(RC, VB_OP_SEND, ONLY, 2, 8);              /* again: only acknowledged */
	one(RC, VB_OP_SEND, ONLY, 6 + (1u << 23), 8); /* as far behind as can be */
	assert_int_equal(e.receives, 6);
	assert_int_equal(e.runs_sent, 9);
	assert_int_equal(e.sent.syndrome, VB_AETH_ACK);
	assert_int_equal(e.qp.state, IBV_QPS_RTS);
	endpoint_stop(&e);
}

static void repeated_reads(void **state)
{
	struct vb_run run = peer_packet(RC, VB_OP_READ_REQUEST, ONLY, 0, 0);

	(void)state;
	peer_start(&e, RC, 0);
	run.dma_length = 3 * PEER_MTU;
	assert_int_equal(peer_send(&e, &run), VB_REASON_NONE);
	assert_int_equal(e.qp.resp.epsn, (PEER_PSN + 3) & 0xffffff);
	uint32_t sent = e.runs_sent;

	run.dma_length = 4 * PEER_MTU; /* more than the first time */
	assert_int_equal(peer_send(&e, &run), VB_REASON_NONE);
	assert_dropped(VB_REASON_DROP_STALE, sent);
	run.dma_length = 3 * PEER_MTU;
	run.rkey = END_KEY_DULL;
	assert_int_equal(peer_send(&e, &run), VB_REASON_NONE);
	assert_dropped(VB_REASON_DROP_STALE, sent);
	run.rkey = END_KEY;
	run.va += PEER_MTU; /* the second packet's address with the first one's PSN */
	assert_int_equal(peer_send(&e, &run), VB_REASON_NONE);
	assert_dropped(VB_REASON_DROP_STALE, sent);
	run.psn = (run.psn + 1) & 0xffffff; /* its end: legal */
	run.dma_length = 2 * PEER_MTU;
	assert_int_equal(peer_send(&e, &run), VB_REASON_NONE);
	assert_true(e.runs_sent > sent);
	assert_int_equal(e.sent.op, VB_OP_READ_RESPONSE);
	assert_int_equal(e.qp.resp.epsn, (PEER_PSN + 3) & 0xffffff);
	/*
	 * Repeated when its region is gone: not read, and not held against the queue pair, for the
	 * first answer may have arrived.
	 */
	sent = e.runs_sent;
	e.keys[0].key = 0;
	assert_int_equal(peer_send(&e, &run), VB_REASON_NONE);
	assert_dropped(VB_REASON_RKEY_UNKNOWN, sent);
	endpoint_stop(&e);
}

static void repeated_atomic(void **state)
{
	struct vb_run run = peer_packet(RC, VB_OP_FETCH_ADD, ONLY, 0, 0);
	uint64_t value;

	(void)state;
	peer_start(&e, RC, 0);
	run.swap_add = 1;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(peer_send(&e, &run), VB_REASON_NONE);
		assert_int_equal(e.sent.op, VB_OP_ATOMIC_ACK);
		assert_true(e.sent.original == 0x5a5a5a5a5a5a5a5aull);
		memcpy(&value, e.region, sizeof(value));
		assert_true(value == 0x5a5a5a5a5a5a5a5bull);
	}
	assert_int_equal(e.runs_sent, 3);
	run.va += 8; /* another place under an old PSN */
	assert_int_equal(peer_send(&e, &run), VB_REASON_NONE);
	assert_dropped(VB_REASON_DROP_STALE, 3);
	assert_true(peer_untouched(&e, 0, 8));
	endpoint_stop(&e);
}

static void more_reads_than_promised(void **state)
{
	struct vb_run run = peer_packet(RC, VB_OP_READ_REQUEST, ONLY, 0, 0);

	(void)state;
	peer_start(&e, RC, 0);
	run.dma_length = 8;
	e.runs_left = 0;
	for (uint32_t i = 0; i < 3; i++) { /* the link is full, so that none is answered */
		run.psn = (PEER_PSN + i) & 0xffffff;
		vb_tqp_receive(&e.qp, &run, NULL);
	}
	assert_int_equal(e.said, VB_REASON_RD_ATOMIC_EXCEEDED);
	endpoint_run(&e, 100);
	assert_refused(VB_AETH_NAK_INVALID, VB_REASON_RD_ATOMIC_EXCEEDED);
}

static void wrong_invalidations(void **state)
{
	struct vb_run run = peer_packet(RC, VB_OP_SEND, ONLY | VB_RUN_INV, 0, 8);

	(void)state;
	peer_start(&e, RC, 3);
	run.imm = END_KEY; /* a region's key, no window's */
	assert_int_equal(peer_send(&e, &run), VB_REASON_NONE);
	assert_int_equal(e.said, VB_REASON_INVALIDATE);
	assert_int_equal(e.received.status, IBV_WC_MW_BIND_ERR);
	assert_int_equal(e.qp.state, IBV_QPS_ERR);
	endpoint_stop(&e);

	peer_start(&e, RC, 3);
	run.imm = END_KEY_DULL;
	assert_int_equal(peer_send(&e, &run), VB_REASON_NONE);
	assert_int_equal(e.received.wc_flags & IBV_WC_WITH_INV, IBV_WC_WITH_INV);
	run.psn = (PEER_PSN + 1) & 0xffffff;
	assert_int_equal(peer_send(&e, &run), VB_REASON_NONE); /* a window twice */
	assert_int_equal(e.said, VB_REASON_INVALIDATE);
	assert_int_equal(e.qp.state, IBV_QPS_ERR);
	endpoint_stop(&e);
}

static void receive_too_small(void **state)
{
	(void)state;
	peer_start(&e, RC, 0);
	endpoint_post_recv(&e, 96);
	one(RC, VB_OP_SEND, ONLY, 0, 97);
	assert_int_equal(e.received.status, IBV_WC_LOC_LEN_ERR);
	assert_refused(VB_AETH_NAK_INVALID, VB_REASON_RECV_TOO_SMALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths_that_do_not_fit_the_path),
		cmocka_unit_test(datagrams_too_long),
		cmocka_unit_test(whom_it_is_not_for),
		cmocka_unit_test(states_that_take_nothing),
		cmocka_unit_test(no_bytes_need_no_key),
		cmocka_unit_test(ranges),
		cmocka_unit_test(misaligned_atomic),
		cmocka_unit_test(write_of_another_length),
		cmocka_unit_test(region_gone_between),
		cmocka_unit_test(parts_in_impossible_order),
		cmocka_unit_test(sequence_numbers),
		cmocka_unit_test(repeated_reads),
		cmocka_unit_test(repeated_atomic),
		cmocka_unit_test(more_reads_than_promised),
		cmocka_unit_test(wrong_invalidations),
		cmocka_unit_test(receive_too_small),
	};

	return cmocka_run_group_tests_name("wire-requests", tests, NULL, NULL);
}

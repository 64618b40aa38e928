/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The RC requester, packet by packet: the form of its requests, the order of completions, and
 * faults.
 */
#include "stand.h"

#include <string.h>

#define BOTH (VB_RUN_FIRST | VB_RUN_LAST)

static void a_send(void **state)
{
	struct stand *s = stand_new(true);
	const struct vb_run *run;

	(void)state;
	assert_false(stand_request(s, IBV_WR_SEND, 8));
	run = stand_last(s);
	assert_int_equal(s->sents, 1);
	assert_int_equal(run->op, VB_OP_SEND);
	assert_int_equal(run->flags, BOTH | VB_RUN_ACK_REQ);
	assert_int_equal(run->psn, 100);
	assert_int_equal(run->segments, 1);
	assert_int_equal(run->length, 8);
	assert_int_equal(run->dest_qpn, STAND_PEER);
	assert_int_equal(run->src_qpn, STAND_QPN);
	assert_memory_equal(s->payload, s->local, 8);
	assert_int_equal(s->dones, 0);
	assert_true(vb_tqp_busy(&s->qp));
	assert_int_equal(vb_tqp_sq_psn(&s->qp), 101);
	stand_ack(s, 100, VB_AETH_ACK);
	stand_expect_done(s, 0, IBV_WC_SUCCESS);
	assert_false(vb_tqp_busy(&s->qp));
	assert_int_equal(vb_tqp_outstanding(&s->qp), 0);
	stand_free(s);
}

static void immediate_invalidate_solicited(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	stand_wqe(s, IBV_WR_SEND_WITH_IMM, 4)->solicited = 1;
	stand_post(s);
	assert_int_equal(stand_last(s)->flags,
			 BOTH | VB_RUN_ACK_REQ | VB_RUN_IMM | VB_RUN_SOLICITED);
	assert_int_equal(stand_last(s)->imm, 0x01020304);
	stand_request(s, IBV_WR_SEND_WITH_INV, 0);
	assert_int_equal(stand_last(s)->flags, BOTH | VB_RUN_ACK_REQ | VB_RUN_INV);
	assert_int_equal(stand_last(s)->length, 0);
	stand_request(s, IBV_WR_RDMA_WRITE_WITH_IMM, 3);
	assert_int_equal(stand_last(s)->op, VB_OP_WRITE);
	assert_int_equal(stand_last(s)->flags, BOTH | VB_RUN_ACK_REQ | VB_RUN_IMM);
	stand_free(s);
}

static void a_long_write_in_runs(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	stand_wqe(s, IBV_WR_RDMA_WRITE, 20001)->remote_addr = 77;
	stand_post(s);
	assert_int_equal(s->sents, 3);
	assert_int_equal(s->sent[0].flags, VB_RUN_FIRST);
	assert_int_equal(s->sent[0].segments, 8);
	assert_int_equal(s->sent[0].length, 8192);
	assert_int_equal(s->sent[0].va, 77);
	assert_int_equal(s->sent[0].dma_length, 20001);
	assert_int_equal(s->sent[0].rkey, STAND_RKEY);
	assert_int_equal(s->sent[1].flags, 0);
	assert_int_equal(s->sent[1].psn, 108);
	assert_int_equal(s->sent[2].flags, VB_RUN_LAST | VB_RUN_ACK_REQ);
	assert_int_equal(s->sent[2].psn, 116);
	assert_int_equal(s->sent[2].segments, 4);
	assert_int_equal(s->sent[2].length, 20001 - 16384);
	stand_ack(s, 118, VB_AETH_ACK); /* in the middle: nothing completes */
	assert_int_equal(s->dones, 0);
	stand_ack(s, 119, VB_AETH_ACK);
	stand_expect_done(s, 0, IBV_WC_SUCCESS);
	stand_free(s);
}

static void psns_wrap(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	vb_tqp_start_requester(&s->qp, 0xfffffe);
	stand_request(s, IBV_WR_SEND, 4096);
	stand_request(s, IBV_WR_SEND, 1);
	assert_int_equal(s->sent[0].psn, 0xfffffe);
	assert_int_equal(s->sent[1].psn, 2);
	stand_ack(s, 1, VB_AETH_ACK);
	assert_int_equal(s->dones, 1);
	stand_ack(s, 2, VB_AETH_ACK);
	assert_int_equal(s->dones, 2);
	stand_free(s);
}

static void one_ack_for_many(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	for (int i = 0; i < 5; i++)
		stand_request(s, IBV_WR_SEND, 1);
	stand_ack(s, 103, VB_AETH_ACK);
	assert_int_equal(s->dones, 4);
	stand_ack(s, 103, VB_AETH_ACK); /* again: nothing */
	stand_ack(s, 99, VB_AETH_ACK);  /* of before the beginning */
	assert_int_equal(s->dones, 4);
	stand_ack(s, 105, VB_AETH_ACK); /* never sent */
	stand_ack(s, 5000, VB_AETH_ACK);
	assert_int_equal(s->dones, 4);
	assert_int_equal(s->dropped, 2);
	stand_ack(s, 104, VB_AETH_ACK);
	assert_int_equal(s->dones, 5);
	stand_free(s);
}

static void a_read(void **state)
{
	struct stand *s = stand_new(true);
	struct vb_run run;

	(void)state;
	stand_wqe(s, IBV_WR_RDMA_READ, 3000)->remote_addr = 4000;
	stand_post(s);
	assert_int_equal(stand_last(s)->op, VB_OP_READ_REQUEST);
	assert_int_equal(stand_last(s)->segments, 1);
	assert_int_equal(stand_last(s)->length, 0);
	assert_int_equal(stand_last(s)->va, 4000);
	assert_int_equal(stand_last(s)->dma_length, 3000);
	stand_request(s, IBV_WR_SEND, 1);
	assert_int_equal(stand_last(s)->psn, 103); /* the response takes three PSNs */
	run = stand_response(s, 100, 2048);
	stand_arrive(s, &run);
	assert_int_equal(s->dones, 0);
	assert_int_equal(s->local[2047], (uint8_t)(2047 * 3 + 100));
	run = stand_response(s, 102, 952);
	stand_arrive(s, &run);
	stand_expect_done(s, 0, IBV_WC_SUCCESS);
	assert_int_equal(s->dones, 1);
	stand_ack(s, 103, VB_AETH_ACK);
	assert_int_equal(s->dones, 2);
	stand_free(s);
}

/*
 * An acknowledgement beyond a READ whose response is missing: the READ is asked for again, from
 * where it stopped.
 */
static void a_missing_response(void **state)
{
	struct stand *s = stand_new(false);
	struct vb_run run;

	(void)state;
	stand_wqe(s, IBV_WR_RDMA_READ, 3000)->remote_addr = 4000;
	stand_post(s);
	stand_request(s, IBV_WR_SEND, 1);
	run = stand_response(s, 100, 1024);
	stand_arrive(s, &run);
	stand_clear(s);
	stand_ack(s, 103, VB_AETH_ACK);
	assert_int_equal(s->dones, 0);
	assert_int_equal(s->sents, 2);
	assert_int_equal(s->sent[0].op, VB_OP_READ_REQUEST);
	assert_int_equal(s->sent[0].psn, 101);
	assert_int_equal(s->sent[0].va, 4000 + 1024);
	assert_int_equal(s->sent[0].dma_length, 3000 - 1024);
	assert_int_equal(s->sent[1].op, VB_OP_SEND);
	stand_ack(s, 103, VB_AETH_ACK); /* one loss is repaired once */
	assert_int_equal(s->sents, 2);
	/* The answer comes cut in another way, and begins with what is there already. */
	run = stand_response(s, 100, 3000);
	stand_arrive(s, &run);
	stand_expect_done(s, 0, IBV_WC_SUCCESS);
	assert_int_equal(s->local[1024], (uint8_t)(1024 * 3 + 100));
	stand_ack(s, 103, VB_AETH_ACK);
	assert_int_equal(s->dones, 2);
	stand_free(s);
}

static void bad_responses(void **state)
{
	static const struct {
		uint32_t psn, length;
		uint8_t op;
	} table[] = {
		{100, 1000, VB_OP_READ_RESPONSE}, /* a short middle */
		{102, 953,
		 VB_OP_READ_RESPONSE}, /* a wrong end, and nothing before it: a gap, not an error */
		{100, 4096, VB_OP_READ_RESPONSE}, /* beyond the end */
		{100, 0, VB_OP_ATOMIC_ACK},       /* another operation's */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct stand *s = stand_new(true);
		struct vb_run run;

		stand_request(s, IBV_WR_RDMA_READ, 3000);
		run = stand_run(s, table[i].op, BOTH, table[i].psn, table[i].length);
		stand_arrive(s, &run);
		if (i == 1) {
			assert_int_equal(s->dones, 0);
		} else {
			stand_expect_done(s, 0, IBV_WC_BAD_RESP_ERR);
			assert_int_equal(s->done[0].reason, VB_REASON_BAD_RESPONSE);
			assert_int_equal(s->qp.state, IBV_QPS_ERR);
		}
		stand_free(s);
	}
}

static void an_answer_to_a_send(void **state)
{
	struct stand *s = stand_new(true);
	struct vb_run run;

	(void)state;
	stand_request(s, IBV_WR_SEND, 8);
	run = stand_response(s, 100, 8);
	stand_arrive(s, &run);
	stand_expect_done(s, 0, IBV_WC_BAD_RESP_ERR);
	stand_free(s);
}

static void atomics(void **state)
{
	struct stand *s = stand_new(true);
	struct vb_send_wqe *w = stand_wqe(s, IBV_WR_ATOMIC_CMP_AND_SWP, 8);
	struct vb_run run;
	uint64_t got;

	(void)state;
	w->compare_add = 5;
	w->swap = 6;
	w->remote_addr = 64;
	stand_post(s);
	assert_int_equal(stand_last(s)->op, VB_OP_COMPARE_SWAP);
	assert_int_equal(stand_last(s)->compare, 5);
	assert_int_equal(stand_last(s)->swap_add, 6);
	assert_int_equal(stand_last(s)->va, 64);
	w = stand_wqe(s, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	w->compare_add = 7;
	stand_post(s);
	assert_int_equal(stand_last(s)->op, VB_OP_FETCH_ADD);
	assert_int_equal(stand_last(s)->swap_add, 7);
	run = stand_run(s, VB_OP_ATOMIC_ACK, BOTH, 100, 0);
	run.original = 0x1122334455667788;
	stand_arrive(s, &run);
	stand_expect_done(s, 0, IBV_WC_SUCCESS);
	memcpy(&got, s->local, 8);
	assert_true(got == 0x1122334455667788);
	stand_arrive(s, &run); /* repeated: stale */
	assert_int_equal(s->dones, 1);
	stand_ack(s, 101, VB_AETH_ACK); /* an ACK is no answer to an ATOMIC */
	assert_int_equal(s->dones, 1);
	stand_free(s);
}

/*
 * IBA A19: both wait for a READ response of no bytes; an ACK is none, and one with data is another
 * operation's.
 */
static void atomic_write_and_flush(void **state)
{
	struct stand *s = stand_new(true);
	struct vb_send_wqe *w = stand_wqe(s, IBV_WR_ATOMIC_WRITE, 8);
	struct vb_run run;

	(void)state;
	w->remote_addr = 64;
	stand_post(s);
	assert_int_equal(stand_last(s)->op, VB_OP_ATOMIC_WRITE);
	assert_int_equal(stand_last(s)->length, 8);
	assert_int_equal(stand_last(s)->dma_length, 8);
	assert_int_equal(stand_last(s)->va, 64);
	w = stand_wqe(s, IBV_WR_FLUSH, 0);
	w->compare_add = 100;
	w->swap = VB_FETH(IBV_FLUSH_GLOBAL, IBV_FLUSH_MR);
	stand_post(s);
	assert_int_equal(stand_last(s)->op, VB_OP_FLUSH);
	assert_int_equal(stand_last(s)->length, 0);
	assert_int_equal(stand_last(s)->dma_length, 100);
	assert_int_equal(stand_last(s)->flush, 0x11);
	run = stand_run(s, VB_OP_READ_RESPONSE, BOTH, 100, 0);
	stand_arrive(s, &run);
	stand_expect_done(s, 0, IBV_WC_SUCCESS);
	assert_int_equal(s->dones, 1);
	stand_ack(s, 101, VB_AETH_ACK);
	assert_int_equal(s->dones, 1);
	run = stand_run(s, VB_OP_READ_RESPONSE, BOTH, 101, 0);
	stand_arrive(s, &run);
	stand_expect_done(s, 1, IBV_WC_SUCCESS);
	stand_request(s, IBV_WR_ATOMIC_WRITE, 8);
	run = stand_run(s, VB_OP_READ_RESPONSE, BOTH, 102, 8);
	stand_arrive(s, &run);
	stand_expect_done(s, 2, IBV_WC_BAD_RESP_ERR);
	stand_free(s);
}

static void naks_end_it(void **state)
{
	static const struct {
		uint8_t syndrome;
		enum ibv_wc_status status;
		enum vb_reason reason;
	} table[] = {
		{VB_AETH_NAK_INVALID, IBV_WC_REM_INV_REQ_ERR, VB_REASON_NAK_INVALID},
		{VB_AETH_NAK_ACCESS, IBV_WC_REM_ACCESS_ERR, VB_REASON_NAK_ACCESS},
		{VB_AETH_NAK_OPERATION, IBV_WC_REM_OP_ERR, VB_REASON_NAK_OPERATION},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct stand *s = stand_new(true);

		for (int k = 0; k < 4; k++)
			stand_request(s, IBV_WR_RDMA_WRITE, 100);
		stand_ack(s, 101, table[i].syndrome);
		assert_int_equal(s->dones, 4);
		stand_expect_done(s, 0, IBV_WC_SUCCESS); /* a NAK acknowledges what lies before */
		stand_expect_done(s, 1, table[i].status);
		assert_int_equal(s->done[1].reason, table[i].reason);
		stand_expect_done(s, 2, IBV_WC_WR_FLUSH_ERR);
		stand_expect_done(s, 3, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(s->qp.state, IBV_QPS_ERR);
		assert_int_equal(s->state_changes, 1);
		assert_int_equal(s->events, 0); /* the completion says it */
		stand_request(s, IBV_WR_SEND, 1);
		stand_expect_done(s, 4, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(s->done[4].reason, VB_REASON_FLUSHED);
		stand_free(s);
	}
}

static void reserved_syndromes_are_dropped(void **state)
{
	static const uint8_t syndromes[] = {0x40, 0x5f, 0x64, 0x7f, 0x80, 0xe1};
	struct stand *s = stand_new(true);

	(void)state;
	stand_request(s, IBV_WR_SEND, 1);
	for (size_t i = 0; i < sizeof(syndromes); i++) {
		if (syndromes[i] >= 0x80)
			continue;
		stand_ack(s, 100, syndromes[i]);
	}
	assert_int_equal(s->dones, 0);
	assert_int_equal(s->dropped, 4);
	stand_free(s);
}

/* Local faults: nothing leaves; what was posted before completes first. */
static void local_faults(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	stand_request(s, IBV_WR_SEND, 1);
	s->gather_fault = VB_REASON_LKEY_RANGE;
	stand_request(s, IBV_WR_SEND, 9);
	stand_request(s, IBV_WR_SEND, 1);
	assert_int_equal(s->sents, 1);
	assert_int_equal(s->dones, 0);
	stand_ack(s, 100, VB_AETH_ACK);
	assert_int_equal(s->dones, 3);
	stand_expect_done(s, 0, IBV_WC_SUCCESS);
	stand_expect_done(s, 1, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(s->done[1].reason, VB_REASON_LKEY_RANGE);
	stand_expect_done(s, 2, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(s->sents, 1);
	stand_free(s);
}

/* Of a message of several runs nothing is sent if its last byte has a bad key. */
static void a_long_message_is_checked_first(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	s->gather_fault = VB_REASON_LKEY_UNKNOWN;
	stand_request(s, IBV_WR_SEND, 60000);
	assert_int_equal(s->sents, 0);
	stand_expect_done(s, 0, IBV_WC_LOC_PROT_ERR);
	stand_free(s);
}

/* The key of a READ's landing place is judged only when the response is there. */
static void late_verdict_on_reads(void **state)
{
	struct stand *s = stand_new(true);
	struct vb_run run;

	(void)state;
	s->gather_fault = s->scatter_fault = VB_REASON_LKEY_ACCESS;
	stand_request(s, IBV_WR_RDMA_READ, 20000);
	assert_int_equal(s->sents, 1);
	run = stand_response(s, 100, 1024);
	stand_arrive(s, &run);
	stand_expect_done(s, 0, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(s->done[0].reason, VB_REASON_LKEY_ACCESS);
	stand_free(s);
}

static void refused_at_the_start(void **state)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		uint32_t length;
		uint8_t max_rd_atomic;
		enum ibv_wc_status status;
		enum vb_reason reason;
	} table[] = {
		{IBV_WR_ATOMIC_FETCH_AND_ADD, 9, 4, IBV_WC_LOC_LEN_ERR, VB_REASON_ATOMIC_LENGTH},
		{IBV_WR_ATOMIC_CMP_AND_SWP, 4, 4, IBV_WC_LOC_LEN_ERR, VB_REASON_ATOMIC_LENGTH},
		{IBV_WR_ATOMIC_WRITE, 4, 4, IBV_WC_LOC_LEN_ERR, VB_REASON_ATOMIC_LENGTH},
		{IBV_WR_ATOMIC_WRITE, 8, 0, IBV_WC_LOC_QP_OP_ERR, VB_REASON_RD_ATOMIC_ZERO},
		{IBV_WR_FLUSH, 0, 0, IBV_WC_LOC_QP_OP_ERR, VB_REASON_RD_ATOMIC_ZERO},
		{IBV_WR_SEND, 0x80000001, 4, IBV_WC_LOC_LEN_ERR, VB_REASON_MESSAGE_LENGTH},
		{IBV_WR_RDMA_READ, 0x80000001, 4, IBV_WC_LOC_LEN_ERR, VB_REASON_MESSAGE_LENGTH},
		{IBV_WR_RDMA_READ, 8, 0, IBV_WC_LOC_QP_OP_ERR, VB_REASON_RD_ATOMIC_ZERO},
		{IBV_WR_ATOMIC_CMP_AND_SWP, 8, 0, IBV_WC_LOC_QP_OP_ERR, VB_REASON_RD_ATOMIC_ZERO},
		{IBV_WR_TSO, 8, 4, IBV_WC_LOC_QP_OP_ERR, VB_REASON_OPCODE},
		{IBV_WR_DRIVER1, 8, 4, IBV_WC_LOC_QP_OP_ERR, VB_REASON_OPCODE},
		{(enum ibv_wr_opcode)200, 8, 4, IBV_WC_LOC_QP_OP_ERR, VB_REASON_OPCODE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct stand *s = stand_new(true);

		s->qp.max_rd_atomic = table[i].max_rd_atomic;
		stand_request(s, table[i].opcode, table[i].length);
		stand_expect_done(s, 0, table[i].status);
		assert_int_equal(s->done[0].reason, table[i].reason);
		assert_int_equal(s->qp.state, IBV_QPS_ERR);
		assert_int_equal(s->sents, 0);
		stand_free(s);
	}
}

static void refused_by_the_device(void **state)
{
	struct stand *s = stand_new(true);
	struct vb_send_wqe *w;

	(void)state;
	stand_request(s, IBV_WR_SEND, 1);
	w = stand_wqe(s, IBV_WR_SEND, 1);
	w->error = IBV_WC_LOC_QP_OP_ERR;
	w->reason = VB_REASON_AH_PD;
	stand_post(s);
	assert_int_equal(s->dones, 0);
	stand_ack(s, 100, VB_AETH_ACK);
	stand_expect_done(s, 1, IBV_WC_LOC_QP_OP_ERR);
	assert_int_equal(s->done[1].reason, VB_REASON_AH_PD);
	stand_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_send),
		cmocka_unit_test(immediate_invalidate_solicited),
		cmocka_unit_test(a_long_write_in_runs),
		cmocka_unit_test(psns_wrap),
		cmocka_unit_test(one_ack_for_many),
		cmocka_unit_test(a_read),
		cmocka_unit_test(a_missing_response),
		cmocka_unit_test(bad_responses),
		cmocka_unit_test(an_answer_to_a_send),
		cmocka_unit_test(atomics),
		cmocka_unit_test(naks_end_it),
		cmocka_unit_test(atomic_write_and_flush),
		cmocka_unit_test(reserved_syndromes_are_dropped),
		cmocka_unit_test(local_faults),
		cmocka_unit_test(a_long_message_is_checked_first),
		cmocka_unit_test(late_verdict_on_reads),
		cmocka_unit_test(refused_at_the_start),
		cmocka_unit_test(refused_by_the_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

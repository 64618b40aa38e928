/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The RC responder: what it refuses and drops, and which side is told. */
#include "stand.h"

#define BOTH (VB_RUN_FIRST | VB_RUN_LAST)
#define ASK  (BOTH | VB_RUN_ACK_REQ)

struct refusal {
	enum vb_op op;
	uint8_t flags;
	uint32_t length;
	uint32_t dma_length;
	uint32_t rkey;
	uint64_t va;
	uint8_t syndrome;
	enum ibv_event_type event;
};

static void expect_refusal(struct stand *s, const struct refusal *f)
{
	struct vb_run run = stand_run(s, f->op, f->flags, 200, f->length);

	run.dma_length = f->dma_length;
	run.rkey = f->rkey;
	run.va = f->va;
	stand_arrive(s, &run);
	stand_expect_ack(s, f->syndrome, 200);
	assert_int_equal(s->sents, 1);
	assert_int_equal(s->events, 1);
	assert_int_equal(s->event[0], f->event);
	assert_int_equal(s->explained, 1);
	assert_int_equal(s->qp.state, IBV_QPS_ERR);
	assert_int_equal(s->state_changes, 1);
	assert_int_equal(s->recv_dones, 0);
	assert_int_equal(s->atomics, 0);
	assert_int_equal(s->remote[0], 3);
	assert_int_equal(s->remote[100], (uint8_t)(100 * 5 + 3));
	stand_clear(s);
	stand_arrive(s, &run); /* it is in ERR now */
	assert_int_equal(s->drops[s->dropped - 1], VB_REASON_DROP_FAILED);
}

static void refusals(void **state)
{
	static const uint8_t access = VB_AETH_NAK_ACCESS;
	static const uint8_t invalid = VB_AETH_NAK_INVALID;
	static const struct refusal table[] = {
		{VB_OP_WRITE, ASK, 8, 8, 0xbad, 0, access, IBV_EVENT_QP_ACCESS_ERR},
		{VB_OP_WRITE, ASK, 8, 8, STAND_RKEY, STAND_MEMORY - 7, access,
		 IBV_EVENT_QP_ACCESS_ERR},
		{VB_OP_WRITE, ASK, 8, 8, STAND_RKEY, UINT64_MAX - 3, access,
		 IBV_EVENT_QP_ACCESS_ERR},
		/* A range fault is seen from the RETH: nothing of the first packets is written. */
		{VB_OP_WRITE, VB_RUN_FIRST, 1024, 0x20000, STAND_RKEY, 0, access,
		 IBV_EVENT_QP_ACCESS_ERR},
		{VB_OP_READ_REQUEST, BOTH, 0, 8, 0xbad, 0, access, IBV_EVENT_QP_ACCESS_ERR},
		{VB_OP_FETCH_ADD, BOTH, 0, 0, 0xbad, 0, access, IBV_EVENT_QP_ACCESS_ERR},
		/* The alignment comes before the key. */
		{VB_OP_FETCH_ADD, BOTH, 0, 0, 0xbad, 4, invalid, IBV_EVENT_QP_REQ_ERR},
		{VB_OP_COMPARE_SWAP, BOTH, 0, 0, STAND_RKEY, 1, invalid, IBV_EVENT_QP_REQ_ERR},
		{VB_OP_ATOMIC_WRITE, BOTH, 8, 8, 0xbad, 0, access, IBV_EVENT_QP_ACCESS_ERR},
		{VB_OP_ATOMIC_WRITE, BOTH, 8, 8, 0xbad, 4, invalid, IBV_EVENT_QP_REQ_ERR},
		{VB_OP_ATOMIC_WRITE, BOTH, 8, 16, STAND_RKEY, 0, invalid, IBV_EVENT_QP_REQ_ERR},
		{VB_OP_ATOMIC_WRITE, BOTH, 4, 8, STAND_RKEY, 0, invalid, IBV_EVENT_QP_REQ_ERR},
		{VB_OP_ATOMIC_WRITE, BOTH, 16, 8, STAND_RKEY, 0, invalid, IBV_EVENT_QP_REQ_ERR},
		/* No placement type at all; data where none may be. */
		{VB_OP_FLUSH, BOTH, 0, 8, STAND_RKEY, 0, invalid, IBV_EVENT_QP_REQ_ERR},
		{VB_OP_FLUSH, BOTH, 8, 8, STAND_RKEY, 0, invalid, IBV_EVENT_QP_REQ_ERR},
		/* Lengths over 2^31 and unlike the data. */
		{VB_OP_WRITE, ASK, 8, 0x80000001, STAND_RKEY, 0, invalid, IBV_EVENT_QP_REQ_ERR},
		{VB_OP_READ_REQUEST, BOTH, 0, 0x80000001, STAND_RKEY, 0, invalid,
		 IBV_EVENT_QP_REQ_ERR},
		{VB_OP_WRITE, ASK, 8, 9, STAND_RKEY, 0, invalid, IBV_EVENT_QP_REQ_ERR},
		{VB_OP_WRITE, ASK, 8, 7, STAND_RKEY, 0, invalid, IBV_EVENT_QP_REQ_ERR},
		{VB_OP_WRITE, VB_RUN_FIRST, 1024, 1024, STAND_RKEY, 0, invalid,
		 IBV_EVENT_QP_REQ_ERR},
		/* The order of a message. */
		{VB_OP_WRITE, 0, 1024, 0, STAND_RKEY, 0, invalid, IBV_EVENT_QP_REQ_ERR},
		{VB_OP_WRITE, VB_RUN_LAST, 8, 0, STAND_RKEY, 0, invalid, IBV_EVENT_QP_REQ_ERR},
		{VB_OP_SEND, 0, 1024, 0, 0, 0, invalid, IBV_EVENT_QP_REQ_ERR},
		{VB_OP_SEND, VB_RUN_LAST, 8, 0, 0, 0, invalid, IBV_EVENT_QP_REQ_ERR},
		/* Packets of impossible sizes. */
		{VB_OP_SEND, VB_RUN_FIRST, 1000, 0, 0, 0, invalid, IBV_EVENT_QP_REQ_ERR},
		{VB_OP_SEND, VB_RUN_FIRST, 0, 0, 0, 0, invalid, IBV_EVENT_QP_REQ_ERR},
		{VB_OP_SEND, VB_RUN_FIRST | VB_RUN_IMM, 1024, 0, 0, 0, invalid,
		 IBV_EVENT_QP_REQ_ERR},
		{VB_OP_SEND, BOTH | VB_RUN_IMM | VB_RUN_INV, 8, 0, 0, 0, invalid,
		 IBV_EVENT_QP_REQ_ERR},
		{VB_OP_WRITE, BOTH | VB_RUN_INV, 8, 8, STAND_RKEY, 0, invalid,
		 IBV_EVENT_QP_REQ_ERR},
		{VB_OP_FETCH_ADD, BOTH, 8, 0, STAND_RKEY, 0, invalid, IBV_EVENT_QP_REQ_ERR},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct stand *s = stand_new(true);

		expect_refusal(s, &table[i]);
		stand_free(s);
	}
}

static void rights_of_the_queue_pair(void **state)
{
	static const struct {
		enum vb_op op;
		uint32_t right;
	} table[] = {
		{VB_OP_WRITE, IBV_ACCESS_REMOTE_WRITE},
		{VB_OP_READ_REQUEST, IBV_ACCESS_REMOTE_READ},
		{VB_OP_FETCH_ADD, IBV_ACCESS_REMOTE_ATOMIC},
		{VB_OP_COMPARE_SWAP, IBV_ACCESS_REMOTE_ATOMIC},
		{VB_OP_ATOMIC_WRITE, IBV_ACCESS_REMOTE_WRITE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct stand *s = stand_new(true);
		struct refusal f = {
			table[i].op,         ASK, 0, 0, STAND_RKEY, 0, VB_AETH_NAK_INVALID,
			IBV_EVENT_QP_REQ_ERR};

		s->qp.access &= ~table[i].right; /* also for no bytes */
		expect_refusal(s, &f);
		stand_free(s);
	}
}

/* A receive that is in use tells of the fault; then no event does. */
static void faults_of_receives(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	stand_recv(s, 9);
	stand_recv(s, 9);
	stand_in(s, VB_OP_SEND, ASK, 200, 10);
	stand_expect_ack(s, VB_AETH_NAK_INVALID, 200);
	assert_int_equal(s->recv_done[0].status, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(s->recv_done[0].reason, VB_REASON_RECV_TOO_SMALL);
	assert_int_equal(s->recv_dones, 1); /* the other one is the device's to flush */
	assert_int_equal(s->events, 0);
	stand_free(s);

	s = stand_new(true);
	stand_recv(s, 90);
	s->recv_fault = VB_REASON_LKEY_PD;
	stand_in(s, VB_OP_SEND, ASK, 200, 10);
	stand_expect_ack(s, VB_AETH_NAK_OPERATION, 200);
	assert_int_equal(s->recv_done[0].status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(s->recv_done[0].reason, VB_REASON_LKEY_PD);
	assert_int_equal(s->events, 0);
	stand_free(s);
}

static void a_bad_write_with_immediate(void **state)
{
	struct stand *s = stand_new(true);
	struct vb_run run = stand_run(s, VB_OP_WRITE, ASK | VB_RUN_IMM, 200, 10);

	(void)state;
	stand_recv(s, 0);
	run.rkey = 0xbad;
	stand_arrive(s, &run);
	stand_expect_ack(s, VB_AETH_NAK_ACCESS, 200);
	assert_int_equal(s->recv_done[0].status, IBV_WC_LOC_ACCESS_ERR);
	assert_int_equal(s->events, 0);
	stand_free(s);
}

static void memory_that_goes(void **state)
{
	struct stand *s = stand_new(true);
	struct vb_run run = stand_run(s, VB_OP_WRITE, VB_RUN_FIRST, 200, 1024);

	(void)state;
	run.dma_length = 1030;
	stand_arrive(s, &run);
	s->remote_length = 0; /* deregistered between two packets */
	stand_in(s, VB_OP_WRITE, VB_RUN_LAST, 201, 6);
	stand_expect_ack(s, VB_AETH_NAK_ACCESS, 201);
	assert_int_equal(s->event[0], IBV_EVENT_QP_ACCESS_ERR);
	stand_free(s);

	s = stand_new(true);
	s->copy_fault = VB_REASON_MEMORY_GONE;
	stand_in(s, VB_OP_READ_REQUEST, BOTH, 200, 100);
	stand_expect_ack(s, VB_AETH_NAK_OPERATION, 200);
	assert_int_equal(s->event[0], IBV_EVENT_QP_FATAL);
	assert_int_equal(s->qp.state, IBV_QPS_ERR);
	stand_free(s);
}

/* The READ was accepted, then a message began to arrive, then the READ could not be answered. */
static void an_answer_that_fails_later(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	stand_recv(s, 8000);
	s->room = 0;
	stand_in(s, VB_OP_READ_REQUEST, BOTH, 200, 8);
	stand_in(s, VB_OP_SEND, VB_RUN_FIRST, 201, 1024);
	s->copy_fault = VB_REASON_MEMORY_GONE;
	s->room = 9;
	vb_tqp_run(&s->qp);
	stand_expect_ack(s, VB_AETH_NAK_OPERATION, 200);
	assert_int_equal(s->event[0], IBV_EVENT_QP_FATAL);
	assert_int_equal(s->recv_done[0].status, IBV_WC_WR_FLUSH_ERR);
	stand_free(s);
}

static void message_order(void **state)
{
	static const enum vb_op intruders[] = {VB_OP_SEND, VB_OP_WRITE, VB_OP_READ_REQUEST,
					       VB_OP_FETCH_ADD};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct stand *s = stand_new(true);

		stand_recv(s, 8000);
		stand_in(s, VB_OP_SEND, VB_RUN_FIRST, 200, 1024);
		stand_in(s, intruders[i], ASK, 201, 0); /* a new message inside another */
		stand_expect_ack(s, VB_AETH_NAK_INVALID, 201);
		assert_int_equal(s->recv_done[0].status, IBV_WC_REM_INV_REQ_ERR);
		stand_free(s);
	}
}

static void too_many_at_once(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	s->qp.max_dest_rd_atomic = 2;
	stand_in(s, VB_OP_READ_REQUEST, BOTH, 200, 8);
	stand_in(s, VB_OP_READ_REQUEST, BOTH, 201, 8);
	stand_in(s, VB_OP_READ_REQUEST, BOTH, 202, 8); /* the first two have been answered */
	assert_int_equal(s->sents, 3);
	s->room = 0;
	stand_in(s, VB_OP_READ_REQUEST, BOTH, 203, 8);
	stand_in(s, VB_OP_FETCH_ADD, BOTH, 204, 0);
	assert_int_equal(s->qp.state, IBV_QPS_RTS);
	stand_in(s, VB_OP_READ_REQUEST, BOTH, 205, 8);
	assert_int_equal(s->qp.state, IBV_QPS_ERR);
	assert_int_equal(s->event[0], IBV_EVENT_QP_REQ_ERR);
	s->room = 9;
	vb_tqp_run(&s->qp); /* what was accepted is answered before the refusal */
	assert_int_equal(s->sents, 6);
	assert_int_equal(s->sent[3].op, VB_OP_READ_RESPONSE);
	assert_int_equal(s->sent[4].op, VB_OP_ATOMIC_ACK);
	stand_expect_ack(s, VB_AETH_NAK_INVALID, 205);
	stand_free(s);

	s = stand_new(true);
	s->qp.max_dest_rd_atomic = 0;
	stand_in(s, VB_OP_READ_REQUEST, BOTH, 200, 8);
	stand_expect_ack(s, VB_AETH_NAK_INVALID, 200);
	stand_free(s);
}

static void invalidation(void **state)
{
	struct stand *s = stand_new(true);
	struct vb_run run = stand_run(s, VB_OP_SEND, ASK | VB_RUN_INV, 200, 4);

	(void)state;
	stand_recv(s, 8);
	stand_recv(s, 8);
	run.imm = 0x4455;
	stand_arrive(s, &run);
	assert_int_equal(s->recv_done[0].wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(s->recv_done[0].imm, 0x4455);
	s->invalidate_fault = VB_REASON_INVALIDATE;
	stand_clear(s);
	run.psn = 201;
	stand_arrive(s, &run);
	assert_int_equal(s->recv_done[1].status, IBV_WC_MW_BIND_ERR);
	assert_int_equal(s->qp.state, IBV_QPS_ERR);
	/* No ACK and no NAK: only, on a link where silence is no loss, that there won't be any. */
	assert_int_equal(s->sents, 1);
	assert_int_equal(stand_last(s)->op, VB_OP_DROP);
	stand_free(s);

	s = stand_new(false);
	stand_recv(s, 8);
	s->invalidate_fault = VB_REASON_INVALIDATE;
	run.psn = 200;
	stand_arrive(s, &run);
	assert_int_equal(s->sents, 0);
	stand_free(s);
}

static void not_for_us(void **state)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_ERR};

	(void)state;
	for (int reliable = 0; reliable < 2; reliable++) {
		for (size_t i = 0; i < 3; i++) {
			struct stand *s = stand_new(reliable);

			stand_recv(s, 100);
			s->qp.state = states[i];
			stand_in(s, VB_OP_SEND, ASK, 200, 10);
			assert_int_equal(s->drops[0], VB_REASON_DROP_STATE);
			assert_int_equal(s->recv_dones, 0);
			assert_int_equal(s->sents, reliable);
			if (reliable) {
				assert_int_equal(stand_last(s)->op, VB_OP_DROP);
				assert_int_equal(stand_last(s)->psn, 200);
				assert_int_equal(stand_last(s)->imm, VB_REASON_DROP_STATE);
				assert_int_equal(stand_last(s)->dest_qpn, STAND_PEER);
				assert_int_equal(stand_last(s)->src_qpn, STAND_QPN);
			}
			stand_free(s);
		}
	}
}

static void strangers(void **state)
{
	struct stand *s = stand_new(true);
	struct vb_run run = stand_run(s, VB_OP_SEND, ASK, 200, 10);

	(void)state;
	stand_recv(s, 100);
	run.src_qpn = 0x99;
	stand_arrive(s, &run);
	assert_int_equal(s->drops[0], VB_REASON_DROP_SOURCE);
	assert_int_equal(stand_last(s)->op, VB_OP_DROP);
	assert_int_equal(stand_last(s)->dest_qpn, 0x99);
	run.src_qpn = STAND_PEER;
	run.service = VB_SERVICE_UC;
	stand_arrive(s, &run);
	assert_int_equal(s->drops[1], VB_REASON_DROP_TYPE);
	assert_int_equal(s->sents, 1); /* who expects no answer gets none */
	run.service = VB_SERVICE_RC;
	run.pkey = 0x7fff; /* a limited member to a full one is fine */
	stand_arrive(s, &run);
	assert_int_equal(s->recv_dones, 1);
	run.psn = 201;
	run.pkey = 0x8001;
	stand_arrive(s, &run);
	assert_int_equal(s->drops[2], VB_REASON_DROP_PKEY);
	s->qp.pkey = 0x7fff;
	run.pkey = 0x7fff;
	stand_arrive(s, &run);
	assert_int_equal(s->drops[3], VB_REASON_DROP_PKEY);
	run.op = 77;
	stand_arrive(s, &run);
	assert_int_equal(s->drops[4], VB_REASON_DROP_MALFORMED);
	assert_int_equal(s->recv_dones, 1);
	stand_free(s);
}

/* Answers to answers would never end. */
static void answers_are_not_answered(void **state)
{
	static const enum vb_op answers[] = {VB_OP_ACK, VB_OP_DROP, VB_OP_READ_RESPONSE,
					     VB_OP_ATOMIC_ACK};
	struct stand *s = stand_new(true);

	(void)state;
	s->qp.state = IBV_QPS_ERR;
	for (size_t i = 0; i < 4; i++)
		stand_in(s, answers[i], BOTH, 200, 0);
	assert_int_equal(s->sents, 0);
	assert_int_equal(s->dropped, 4);
	stand_free(s);
}

/*
 * A READ that can't be answered any more when the program ends it: no event, no second change of
 * state.
 */
static void an_end_with_memory_gone(void **state)
{
	(void)state;
	for (int reset = 0; reset < 2; reset++) {
		struct stand *s = stand_new(true);

		s->room = 0;
		stand_in(s, VB_OP_READ_REQUEST, BOTH, 200, 8);
		s->copy_fault = VB_REASON_MEMORY_GONE;
		s->room = 9;
		if (reset)
			vb_tqp_reset(&s->qp);
		else
			vb_tqp_to_error(&s->qp);
		assert_int_equal(s->events, 0);
		assert_int_equal(s->state_changes, 0);
		stand_expect_ack(s, VB_AETH_NAK_OPERATION, 200);
		assert_int_equal(s->qp.state, reset ? IBV_QPS_RESET : IBV_QPS_ERR);
		stand_free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusals),
		cmocka_unit_test(rights_of_the_queue_pair),
		cmocka_unit_test(faults_of_receives),
		cmocka_unit_test(a_bad_write_with_immediate),
		cmocka_unit_test(memory_that_goes),
		cmocka_unit_test(an_answer_that_fails_later),
		cmocka_unit_test(message_order),
		cmocka_unit_test(too_many_at_once),
		cmocka_unit_test(invalidation),
		cmocka_unit_test(not_for_us),
		cmocka_unit_test(strangers),
		cmocka_unit_test(answers_are_not_answered),
		cmocka_unit_test(an_end_with_memory_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The RC responder: what it executes, answers, refuses and drops; packet by packet. */
#include "stand.h"

#include <string.h>

#define BOTH (VB_RUN_FIRST | VB_RUN_LAST)
#define ASK  (BOTH | VB_RUN_ACK_REQ)

static void arrive(struct stand *s, enum vb_op op, uint8_t flags, uint32_t psn, uint32_t length)
{
	struct vb_run run = stand_run(s, op, flags, psn, length);

	stand_arrive(s, &run);
}

static void expect_ack(const struct stand *s, uint8_t syndrome, uint32_t psn)
{
	const struct vb_run *run = stand_last(s);

	assert_int_equal(run->op, VB_OP_ACK);
	assert_int_equal(run->syndrome, syndrome);
	assert_int_equal(run->psn, psn);
	assert_int_equal(run->dest_qpn, STAND_PEER);
}

static void a_send(void **state)
{
	struct stand *s = stand_new(true);
	struct vb_run run = stand_run(s, VB_OP_SEND, ASK | VB_RUN_IMM | VB_RUN_SOLICITED, 200, 10);

	(void)state;
	stand_recv(s, 100);
	run.imm = 0x04030201;
	stand_arrive(s, &run);
	assert_int_equal(s->recv_dones, 1);
	assert_int_equal(s->recv_done[0].status, IBV_WC_SUCCESS);
	assert_int_equal(s->recv_done[0].opcode, IBV_WC_RECV);
	assert_int_equal(s->recv_done[0].byte_len, 10);
	assert_int_equal(s->recv_done[0].wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(s->recv_done[0].imm, 0x04030201);
	assert_true(s->recv_done[0].solicited);
	assert_int_equal(s->inbox[9], (uint8_t)(9 * 3 + 200));
	assert_int_equal(s->inbox[10], 0);
	expect_ack(s, VB_AETH_ACK, 200);
	assert_int_equal(stand_last(s)->msn, 1);
	assert_int_equal(vb_tqp_rq_psn(&s->qp), 201);
	stand_free(s);
}

static void nobody_asked_for_an_ack(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	stand_recv(s, 100);
	stand_recv(s, 100);
	arrive(s, VB_OP_SEND, BOTH, 200, 10);
	assert_int_equal(s->sents, 0);
	assert_int_equal(s->recv_done[0].wc_flags, 0);
	arrive(s, VB_OP_SEND, ASK, 201, 10);
	assert_int_equal(s->sents, 1);
	expect_ack(s, VB_AETH_ACK, 201);
	stand_free(s);
}

static void a_long_send(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	stand_recv(s, 5000);
	arrive(s, VB_OP_SEND, VB_RUN_FIRST, 200, 2048);
	arrive(s, VB_OP_SEND, 0, 202, 1024);
	assert_int_equal(s->recv_dones, 0);
	arrive(s, VB_OP_SEND, VB_RUN_LAST | VB_RUN_ACK_REQ, 203, 5);
	assert_int_equal(s->recv_dones, 1);
	assert_int_equal(s->recv_done[0].byte_len, 3077);
	assert_int_equal(s->inbox[2048], (uint8_t)202);
	assert_int_equal(s->inbox[3072], (uint8_t)203);
	expect_ack(s, VB_AETH_ACK, 203);
	stand_free(s);
}

static void a_write(void **state)
{
	struct stand *s = stand_new(true);
	struct vb_run run = stand_run(s, VB_OP_WRITE, VB_RUN_FIRST, 200, 2048);

	(void)state;
	stand_recv(s, 0);
	run.va = 1000;
	run.dma_length = 2100;
	stand_arrive(s, &run);
	run = stand_run(s, VB_OP_WRITE, VB_RUN_LAST | VB_RUN_ACK_REQ | VB_RUN_IMM, 202, 52);
	stand_arrive(s, &run);
	assert_int_equal(s->remote[999], (uint8_t)(999 * 5 + 3));
	assert_int_equal(s->remote[1000], (uint8_t)200);
	assert_int_equal(s->remote[3048], (uint8_t)202);
	assert_int_equal(s->remote[3100], (uint8_t)(3100 * 5 + 3));
	assert_int_equal(s->recv_done[0].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(s->recv_done[0].byte_len, 2100);
	expect_ack(s, VB_AETH_ACK, 202);
	stand_free(s);
}

static void no_bytes_need_no_key(void **state)
{
	struct stand *s = stand_new(true);
	struct vb_run run = stand_run(s, VB_OP_WRITE, ASK, 200, 0);

	(void)state;
	run.rkey = 0xbad;
	run.va = UINT64_MAX;
	stand_arrive(s, &run);
	expect_ack(s, VB_AETH_ACK, 200);
	run.op = VB_OP_READ_REQUEST;
	run.psn = 201;
	stand_arrive(s, &run);
	assert_int_equal(stand_last(s)->op, VB_OP_READ_RESPONSE);
	assert_int_equal(stand_last(s)->length, 0);
	assert_int_equal(stand_last(s)->flags, BOTH);
	assert_int_equal(s->qp.state, IBV_QPS_RTS);
	stand_free(s);
}

static void a_read(void **state)
{
	struct stand *s = stand_new(true);
	struct vb_run run = stand_run(s, VB_OP_READ_REQUEST, BOTH, 200, 9000);

	(void)state;
	run.va = 50;
	stand_arrive(s, &run);
	assert_int_equal(s->sents, 2);
	assert_int_equal(s->sent[0].op, VB_OP_READ_RESPONSE);
	assert_int_equal(s->sent[0].flags, VB_RUN_FIRST);
	assert_int_equal(s->sent[0].psn, 200);
	assert_int_equal(s->sent[0].segments, 8);
	assert_int_equal(s->sent[1].flags, VB_RUN_LAST);
	assert_int_equal(s->sent[1].psn, 208);
	assert_int_equal(s->sent[1].length, 9000 - 8192);
	assert_memory_equal(s->payload, s->remote + 50 + 8192, 9000 - 8192);
	assert_int_equal(vb_tqp_rq_psn(&s->qp), 209);
	stand_free(s);
}

/* Answers wait for the link and keep their order. */
static void answers_keep_their_order(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	stand_recv(s, 100);
	s->room = 0;
	arrive(s, VB_OP_READ_REQUEST, BOTH, 200, 9000);
	arrive(s, VB_OP_SEND, ASK, 209, 10);
	arrive(s, VB_OP_FETCH_ADD, BOTH, 210, 0);
	assert_int_equal(s->recv_dones, 1);
	assert_true(vb_tqp_run(&s->qp));
	for (int i = 0; i < 4; i++) {
		s->room = 1;
		vb_tqp_run(&s->qp);
	}
	assert_int_equal(s->sents, 4);
	assert_int_equal(s->sent[0].op, VB_OP_READ_RESPONSE);
	assert_int_equal(s->sent[1].op, VB_OP_READ_RESPONSE);
	assert_int_equal(s->sent[2].op, VB_OP_ATOMIC_ACK);
	assert_int_equal(s->sent[3].op, VB_OP_ACK);
	assert_int_equal(s->sent[3].psn, 210);
	stand_free(s);
}

static uint64_t word(const struct stand *s, unsigned int at)
{
	uint64_t value;

	memcpy(&value, s->remote + at, 8);
	return value;
}

static void atomics_once(void **state)
{
	struct stand *s = stand_new(true);
	struct vb_run run = stand_run(s, VB_OP_FETCH_ADD, BOTH, 200, 0);
	uint64_t before = word(s, 64);

	(void)state;
	run.va = 64;
	run.swap_add = 10;
	stand_arrive(s, &run);
	assert_int_equal(stand_last(s)->op, VB_OP_ATOMIC_ACK);
	assert_true(stand_last(s)->original == before);
	stand_arrive(s, &run); /* again: the stored result */
	assert_int_equal(s->sents, 2);
	assert_true(stand_last(s)->original == before);
	assert_int_equal(s->atomics, 1);
	run.psn = 201;
	run.op = VB_OP_COMPARE_SWAP;
	run.compare = before + 10;
	run.swap_add = 3;
	stand_arrive(s, &run);
	assert_true(stand_last(s)->original == before + 10);
	assert_true(word(s, 64) == 3);
	run.psn =
		200; /* the first one, a third time; but with another operation under its PSN: no answer */
	stand_clear(s);
	stand_arrive(s, &run);
	assert_int_equal(s->sents, 0);
	run.op = VB_OP_FETCH_ADD;
	stand_arrive(s, &run);
	assert_true(stand_last(s)->original == before);
	assert_int_equal(s->atomics, 2);
	stand_free(s);
}

static void repeated_requests(void **state)
{
	struct stand *s = stand_new(false);

	(void)state;
	stand_recv(s, 100);
	stand_recv(s, 100);
	arrive(s, VB_OP_SEND, ASK, 200, 10);
	stand_clear(s);
	arrive(s, VB_OP_SEND, ASK, 200, 10);
	assert_int_equal(s->recv_dones, 1);
	expect_ack(s, VB_AETH_ACK, 200);
	arrive(s, VB_OP_SEND, BOTH, 199, 10); /* of before the beginning, too */
	expect_ack(s, VB_AETH_ACK, 200);
	assert_int_equal(s->recv_dones, 1);
	stand_free(s);
}

static void repeated_reads(void **state)
{
	struct stand *s = stand_new(false);
	struct vb_run run;

	(void)state;
	arrive(s, VB_OP_READ_REQUEST, BOTH, 200, 5000);
	stand_clear(s);
	run = stand_run(s, VB_OP_READ_REQUEST, BOTH, 202, 5000 - 2048);
	run.va = 2048;
	stand_arrive(s, &run);
	assert_int_equal(s->sents, 1);
	assert_int_equal(stand_last(s)->psn, 202);
	assert_int_equal(stand_last(s)->length, 5000 - 2048);
	assert_int_equal(stand_last(s)->flags, BOTH);
	assert_memory_equal(s->payload, s->remote + 2048, 5000 - 2048);
	assert_int_equal(vb_tqp_rq_psn(&s->qp), 205); /* what is expected does not move */
	stand_free(s);
}

/* The first answer went out; then the program freed the memory, and may do so. */
static void a_repeated_read_of_what_is_gone(void **state)
{
	struct stand *s = stand_new(false);

	(void)state;
	arrive(s, VB_OP_READ_REQUEST, BOTH, 200, 5000);
	stand_clear(s);
	s->remote_length = 0;
	arrive(s, VB_OP_READ_REQUEST, BOTH, 200, 5000);
	assert_int_equal(s->sents, 0);
	assert_int_equal(s->drops[s->dropped - 1], VB_REASON_RKEY_RANGE);
	assert_int_equal(s->qp.state, IBV_QPS_RTS);
	s->remote_length = STAND_MEMORY;
	arrive(s, VB_OP_READ_REQUEST, BOTH, 200, 5000);
	assert_int_equal(s->sents, 1);
	stand_free(s);
}

/* An old PSN with something else under it: another key, address or length. */
static void false_repeats(void **state)
{
	struct stand *s = stand_new(false);
	struct vb_run good = stand_run(s, VB_OP_READ_REQUEST, BOTH, 200, 5000);
	struct vb_run run;

	(void)state;
	stand_arrive(s, &good);
	stand_clear(s);
	run = good;
	run.rkey++;
	stand_arrive(s, &run);
	run = good;
	run.va = 8;
	stand_arrive(s, &run);
	run = good;
	run.dma_length = 5001;
	stand_arrive(s, &run);
	run = good;
	run.psn = 201;
	run.va = 1024;
	run.dma_length = 0x80000000;
	stand_arrive(s, &run);
	run = good;
	run.psn = 100; /* long forgotten */
	stand_arrive(s, &run);
	assert_int_equal(s->sents, 0);
	assert_int_equal(s->dropped, 5);
	assert_int_equal(s->qp.state, IBV_QPS_RTS);
	stand_free(s);
}

/* A resent run may begin in what is known and end in what is new. */
static void half_old_runs(void **state)
{
	struct stand *s = stand_new(false);

	(void)state;
	stand_recv(s, 8000);
	arrive(s, VB_OP_SEND, VB_RUN_FIRST, 200, 2048);
	arrive(s, VB_OP_SEND, ASK, 200, 4000);
	assert_int_equal(s->recv_dones, 1);
	assert_int_equal(s->recv_done[0].byte_len, 4000);
	assert_int_equal(s->inbox[2048], (uint8_t)(2048 * 3 + 200));
	assert_int_equal(s->inbox[3999], (uint8_t)(3999 * 3 + 200));
	expect_ack(s, VB_AETH_ACK, 203);
	stand_free(s);
}

static void one_nak_for_a_gap(void **state)
{
	struct stand *s = stand_new(false);

	(void)state;
	stand_recv(s, 100);
	stand_recv(s, 100);
	arrive(s, VB_OP_SEND, ASK, 201, 10);
	expect_ack(s, VB_AETH_NAK_SEQUENCE, 200);
	arrive(s, VB_OP_SEND, ASK, 202, 10);
	arrive(s, VB_OP_READ_REQUEST, BOTH, 203, 10);
	assert_int_equal(s->sents, 1);
	assert_int_equal(s->recv_dones, 0);
	arrive(s, VB_OP_SEND, ASK, 200, 10);
	expect_ack(s, VB_AETH_ACK, 200);
	arrive(s, VB_OP_SEND, ASK, 202, 10); /* the next gap is told again */
	expect_ack(s, VB_AETH_NAK_SEQUENCE, 201);
	stand_free(s);
}

static void no_receive(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	arrive(s, VB_OP_SEND, ASK, 200, 10);
	expect_ack(s, VB_AETH_RNR | 12, 200);
	arrive(s, VB_OP_SEND, ASK, 201, 10); /* what follows is passed over in silence */
	assert_int_equal(s->sents, 1);
	assert_int_equal(s->events, 0);
	assert_int_equal(s->qp.state, IBV_QPS_RTS);
	stand_recv(s, 100);
	arrive(s, VB_OP_SEND, ASK, 200, 10);
	expect_ack(s, VB_AETH_ACK, 200);
	arrive(s, VB_OP_WRITE, ASK | VB_RUN_IMM, 201, 10);
	expect_ack(s, VB_AETH_RNR | 12, 201);
	arrive(s, VB_OP_WRITE, ASK, 201, 10); /* without immediate no receive is needed */
	expect_ack(s, VB_AETH_ACK, 201);
	stand_free(s);
}

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
	expect_ack(s, f->syndrome, 200);
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
	assert_int_equal(s->drops[s->dropped - 1], VB_REASON_DROP_STATE);
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
	arrive(s, VB_OP_SEND, ASK, 200, 10);
	expect_ack(s, VB_AETH_NAK_INVALID, 200);
	assert_int_equal(s->recv_done[0].status, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(s->recv_done[0].reason, VB_REASON_RECV_TOO_SMALL);
	assert_int_equal(s->recv_dones, 1); /* the other one is the device's to flush */
	assert_int_equal(s->events, 0);
	stand_free(s);

	s = stand_new(true);
	stand_recv(s, 90);
	s->recv_fault = VB_REASON_LKEY_PD;
	arrive(s, VB_OP_SEND, ASK, 200, 10);
	expect_ack(s, VB_AETH_NAK_OPERATION, 200);
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
	expect_ack(s, VB_AETH_NAK_ACCESS, 200);
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
	arrive(s, VB_OP_WRITE, VB_RUN_LAST, 201, 6);
	expect_ack(s, VB_AETH_NAK_ACCESS, 201);
	assert_int_equal(s->event[0], IBV_EVENT_QP_ACCESS_ERR);
	stand_free(s);

	s = stand_new(true);
	s->copy_fault = VB_REASON_MEMORY_GONE;
	arrive(s, VB_OP_READ_REQUEST, BOTH, 200, 100);
	expect_ack(s, VB_AETH_NAK_OPERATION, 200);
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
	arrive(s, VB_OP_READ_REQUEST, BOTH, 200, 8);
	arrive(s, VB_OP_SEND, VB_RUN_FIRST, 201, 1024);
	s->copy_fault = VB_REASON_MEMORY_GONE;
	s->room = 9;
	vb_tqp_run(&s->qp);
	expect_ack(s, VB_AETH_NAK_OPERATION, 200);
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
		arrive(s, VB_OP_SEND, VB_RUN_FIRST, 200, 1024);
		arrive(s, intruders[i], ASK, 201, 0); /* a new message inside another */
		expect_ack(s, VB_AETH_NAK_INVALID, 201);
		assert_int_equal(s->recv_done[0].status, IBV_WC_REM_INV_REQ_ERR);
		stand_free(s);
	}
}

static void too_many_at_once(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	s->qp.max_dest_rd_atomic = 2;
	arrive(s, VB_OP_READ_REQUEST, BOTH, 200, 8);
	arrive(s, VB_OP_READ_REQUEST, BOTH, 201, 8);
	arrive(s, VB_OP_READ_REQUEST, BOTH, 202, 8); /* the first two have been answered */
	assert_int_equal(s->sents, 3);
	s->room = 0;
	arrive(s, VB_OP_READ_REQUEST, BOTH, 203, 8);
	arrive(s, VB_OP_FETCH_ADD, BOTH, 204, 0);
	assert_int_equal(s->qp.state, IBV_QPS_RTS);
	arrive(s, VB_OP_READ_REQUEST, BOTH, 205, 8);
	assert_int_equal(s->qp.state, IBV_QPS_ERR);
	assert_int_equal(s->event[0], IBV_EVENT_QP_REQ_ERR);
	s->room = 9;
	vb_tqp_run(&s->qp); /* what was accepted is answered before the refusal */
	assert_int_equal(s->sents, 6);
	assert_int_equal(s->sent[3].op, VB_OP_READ_RESPONSE);
	assert_int_equal(s->sent[4].op, VB_OP_ATOMIC_ACK);
	expect_ack(s, VB_AETH_NAK_INVALID, 205);
	stand_free(s);

	s = stand_new(true);
	s->qp.max_dest_rd_atomic = 0;
	arrive(s, VB_OP_READ_REQUEST, BOTH, 200, 8);
	expect_ack(s, VB_AETH_NAK_INVALID, 200);
	stand_free(s);
}

/* ibv_modify_qp(3) may change the number in SQD, with requests under way. */
static void another_number_at_once(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	s->room = 0;
	for (uint32_t i = 0; i < 3; i++)
		arrive(s, VB_OP_READ_REQUEST, BOTH, 200 + i, 8);
	s->qp.max_dest_rd_atomic = 0;
	s->room = 2;
	vb_tqp_run(&s->qp);
	assert_int_equal(s->sents, 2);
	s->qp.max_dest_rd_atomic = 255;
	s->room = STAND_RUNS;
	vb_tqp_run(&s->qp);
	assert_int_equal(s->sents, 3);
	assert_int_equal(stand_last(s)->psn, 202);
	for (uint32_t i = 3; i < 300; i++)
		arrive(s, VB_OP_READ_REQUEST, BOTH, 200 + i, 8);
	assert_int_equal(s->sents, 300);
	stand_clear(s);
	arrive(s, VB_OP_READ_REQUEST, BOTH, 245, 8); /* 255 are remembered */
	assert_int_equal(s->sents, 1);
	arrive(s, VB_OP_READ_REQUEST, BOTH, 244, 8);
	assert_int_equal(s->sents, 1);
	assert_int_equal(s->qp.state, IBV_QPS_RTS);
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
			arrive(s, VB_OP_SEND, ASK, 200, 10);
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
		arrive(s, answers[i], BOTH, 200, 0);
	assert_int_equal(s->sents, 0);
	assert_int_equal(s->dropped, 4);
	stand_free(s);
}

static void the_first_packet_in_rtr(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	stand_recv(s, 100);
	stand_recv(s, 100);
	s->qp.state = IBV_QPS_RTR;
	arrive(s, VB_OP_SEND, ASK, 200, 10);
	arrive(s, VB_OP_SEND, ASK, 201, 10);
	assert_int_equal(s->recv_dones, 2);
	assert_int_equal(s->events, 1);
	assert_int_equal(s->event[0], IBV_EVENT_COMM_EST);
	expect_ack(s, VB_AETH_ACK, 201); /* answered although it may not send itself */
	stand_free(s);
}

static void the_receive_under_way(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	stand_recv(s, 8000);
	arrive(s, VB_OP_SEND, VB_RUN_FIRST, 200, 1024);
	vb_tqp_to_error(&s->qp);
	assert_int_equal(s->recv_dones, 1);
	assert_int_equal(s->recv_done[0].status, IBV_WC_WR_FLUSH_ERR);
	stand_free(s);

	s = stand_new(true);
	stand_recv(s, 8000);
	arrive(s, VB_OP_SEND, VB_RUN_FIRST, 200, 1024);
	vb_tqp_reset(&s->qp);
	assert_int_equal(s->recv_dones, 0);
	assert_int_equal(s->untaken, 1);
	stand_free(s);
}

/* What is executed but not acknowledged when the program ends it: the peer is told as soon as there is room. */
static void an_end_without_room(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	stand_recv(s, 100);
	s->room = 0;
	arrive(s, VB_OP_SEND, ASK, 200, 10);
	vb_tqp_to_error(&s->qp);
	s->room = 9;
	vb_tqp_run(&s->qp);
	assert_int_equal(s->sents, 1);
	assert_int_equal(stand_last(s)->op, VB_OP_DROP);
	assert_int_equal(stand_last(s)->psn, 200);
	stand_free(s);
}

/* A READ that can't be answered any more when the program ends it: no event, no second change of state. */
static void an_end_with_memory_gone(void **state)
{
	(void)state;
	for (int reset = 0; reset < 2; reset++) {
		struct stand *s = stand_new(true);

		s->room = 0;
		arrive(s, VB_OP_READ_REQUEST, BOTH, 200, 8);
		s->copy_fault = VB_REASON_MEMORY_GONE;
		s->room = 9;
		if (reset)
			vb_tqp_reset(&s->qp);
		else
			vb_tqp_to_error(&s->qp);
		assert_int_equal(s->events, 0);
		assert_int_equal(s->state_changes, 0);
		expect_ack(s, VB_AETH_NAK_OPERATION, 200);
		assert_int_equal(s->qp.state, reset ? IBV_QPS_RESET : IBV_QPS_ERR);
		stand_free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_send),
		cmocka_unit_test(nobody_asked_for_an_ack),
		cmocka_unit_test(a_long_send),
		cmocka_unit_test(a_write),
		cmocka_unit_test(no_bytes_need_no_key),
		cmocka_unit_test(a_read),
		cmocka_unit_test(answers_keep_their_order),
		cmocka_unit_test(atomics_once),
		cmocka_unit_test(repeated_requests),
		cmocka_unit_test(repeated_reads),
		cmocka_unit_test(a_repeated_read_of_what_is_gone),
		cmocka_unit_test(false_repeats),
		cmocka_unit_test(half_old_runs),
		cmocka_unit_test(one_nak_for_a_gap),
		cmocka_unit_test(no_receive),
		cmocka_unit_test(refusals),
		cmocka_unit_test(rights_of_the_queue_pair),
		cmocka_unit_test(faults_of_receives),
		cmocka_unit_test(a_bad_write_with_immediate),
		cmocka_unit_test(memory_that_goes),
		cmocka_unit_test(an_answer_that_fails_later),
		cmocka_unit_test(message_order),
		cmocka_unit_test(too_many_at_once),
		cmocka_unit_test(another_number_at_once),
		cmocka_unit_test(invalidation),
		cmocka_unit_test(not_for_us),
		cmocka_unit_test(strangers),
		cmocka_unit_test(answers_are_not_answered),
		cmocka_unit_test(the_first_packet_in_rtr),
		cmocka_unit_test(the_receive_under_way),
		cmocka_unit_test(an_end_without_room),
		cmocka_unit_test(an_end_with_memory_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

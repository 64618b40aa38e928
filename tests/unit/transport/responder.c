/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The RC responder: what it executes and answers, packet by packet. */
#include "stand.h"

#include <string.h>

#define BOTH (VB_RUN_FIRST | VB_RUN_LAST)
#define ASK  (BOTH | VB_RUN_ACK_REQ)

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
	stand_expect_ack(s, VB_AETH_ACK, 200);
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
	stand_in(s, VB_OP_SEND, BOTH, 200, 10);
	assert_int_equal(s->sents, 0);
	assert_int_equal(s->recv_done[0].wc_flags, 0);
	stand_in(s, VB_OP_SEND, ASK, 201, 10);
	assert_int_equal(s->sents, 1);
	stand_expect_ack(s, VB_AETH_ACK, 201);
	stand_free(s);
}

static void a_long_send(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	stand_recv(s, 5000);
	stand_in(s, VB_OP_SEND, VB_RUN_FIRST, 200, 2048);
	stand_in(s, VB_OP_SEND, 0, 202, 1024);
	assert_int_equal(s->recv_dones, 0);
	stand_in(s, VB_OP_SEND, VB_RUN_LAST | VB_RUN_ACK_REQ, 203, 5);
	assert_int_equal(s->recv_dones, 1);
	assert_int_equal(s->recv_done[0].byte_len, 3077);
	assert_int_equal(s->inbox[2048], (uint8_t)202);
	assert_int_equal(s->inbox[3072], (uint8_t)203);
	stand_expect_ack(s, VB_AETH_ACK, 203);
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
	stand_expect_ack(s, VB_AETH_ACK, 202);
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
	stand_expect_ack(s, VB_AETH_ACK, 200);
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
	stand_in(s, VB_OP_READ_REQUEST, BOTH, 200, 9000);
	stand_in(s, VB_OP_SEND, ASK, 209, 10);
	stand_in(s, VB_OP_FETCH_ADD, BOTH, 210, 0);
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
	/*
	 * Of the SEND, not of the atomic behind it: were its response lost, rdma_rxe would take
	 * this for it.
	 */
	assert_int_equal(s->sent[3].psn, 209);
	/* The SEND comes again: the same. */
	s->room = 1;
	stand_in(s, VB_OP_SEND, ASK, 209, 10);
	vb_tqp_run(&s->qp);
	assert_int_equal(s->sents, 5);
	assert_int_equal(s->sent[4].op, VB_OP_ACK);
	assert_int_equal(s->sent[4].psn, 209);
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
	/* The first one, a third time; but with another operation under its PSN: no result. */
	run.psn = 200;
	stand_clear(s);
	stand_arrive(s, &run);
	assert_int_equal(s->sents, 1);
	assert_int_equal(stand_last(s)->op, VB_OP_DROP);
	run.op = VB_OP_FETCH_ADD;
	stand_arrive(s, &run);
	assert_true(stand_last(s)->original == before);
	assert_int_equal(s->atomics, 2);
	stand_free(s);
}

/*
 * IBA A19: an ATOMIC_WRITE is executed once and answered by a READ response of no bytes, a FLUSH
 * likewise.
 */
static void atomic_write_and_flush(void **state)
{
	struct stand *s = stand_new(true);
	struct vb_run run = stand_run(s, VB_OP_ATOMIC_WRITE, BOTH, 200, 8);
	uint64_t written;

	(void)state;
	s->qp.access |= IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT;
	run.va = 64;
	run.dma_length = 8;
	stand_arrive(s, &run);
	assert_int_equal(stand_last(s)->op, VB_OP_READ_RESPONSE);
	assert_int_equal(stand_last(s)->psn, 200);
	assert_int_equal(stand_last(s)->length, 0);
	assert_int_equal(stand_last(s)->flags & BOTH, BOTH);
	written = word(s, 64);
	assert_true((written & 0xff) == 200 && (written >> 8 & 0xff) == 203);
	memset(s->remote + 64, 0, 8);
	stand_arrive(s, &run); /* again: only answered */
	assert_int_equal(s->sents, 2);
	assert_int_equal(stand_last(s)->op, VB_OP_READ_RESPONSE);
	assert_true(word(s, 64) == 0);
	assert_int_equal(s->atomics, 1);
	run = stand_run(s, VB_OP_FLUSH, BOTH, 201, 0);
	run.va = 64;
	run.dma_length = 8;
	run.flush = VB_FETH(IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
	stand_arrive(s, &run);
	assert_int_equal(stand_last(s)->op, VB_OP_READ_RESPONSE);
	assert_int_equal(stand_last(s)->psn, 201);
	assert_int_equal(stand_last(s)->length, 0);
	assert_int_equal(s->flushes, 1);
	assert_int_equal(s->flushed, IBV_FLUSH_PERSISTENT);
	stand_arrive(s, &run);
	assert_int_equal(s->flushes, 1);
	assert_int_equal(s->sents, 4);
	stand_free(s);
}

static void repeated_requests(void **state)
{
	struct stand *s = stand_new(false);

	(void)state;
	stand_recv(s, 100);
	stand_recv(s, 100);
	stand_in(s, VB_OP_SEND, ASK, 200, 10);
	stand_clear(s);
	stand_in(s, VB_OP_SEND, ASK, 200, 10);
	assert_int_equal(s->recv_dones, 1);
	stand_expect_ack(s, VB_AETH_ACK, 200);
	stand_in(s, VB_OP_SEND, BOTH, 199, 10); /* of before the beginning, too */
	stand_expect_ack(s, VB_AETH_ACK, 200);
	assert_int_equal(s->recv_dones, 1);
	stand_free(s);
}

static void repeated_reads(void **state)
{
	struct stand *s = stand_new(false);
	struct vb_run run;

	(void)state;
	stand_in(s, VB_OP_READ_REQUEST, BOTH, 200, 5000);
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
	stand_in(s, VB_OP_READ_REQUEST, BOTH, 200, 5000);
	stand_clear(s);
	s->remote_length = 0;
	stand_in(s, VB_OP_READ_REQUEST, BOTH, 200, 5000);
	assert_int_equal(s->sents, 0);
	assert_int_equal(s->drops[s->dropped - 1], VB_REASON_RKEY_RANGE);
	assert_int_equal(s->qp.state, IBV_QPS_RTS);
	s->remote_length = STAND_MEMORY;
	stand_in(s, VB_OP_READ_REQUEST, BOTH, 200, 5000);
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
	stand_in(s, VB_OP_SEND, VB_RUN_FIRST, 200, 2048);
	stand_in(s, VB_OP_SEND, ASK, 200, 4000);
	assert_int_equal(s->recv_dones, 1);
	assert_int_equal(s->recv_done[0].byte_len, 4000);
	assert_int_equal(s->inbox[2048], (uint8_t)(2048 * 3 + 200));
	assert_int_equal(s->inbox[3999], (uint8_t)(3999 * 3 + 200));
	stand_expect_ack(s, VB_AETH_ACK, 203);
	stand_free(s);
}

static void one_nak_for_a_gap(void **state)
{
	struct stand *s = stand_new(false);

	(void)state;
	stand_recv(s, 100);
	stand_recv(s, 100);
	stand_in(s, VB_OP_SEND, ASK, 201, 10);
	stand_expect_ack(s, VB_AETH_NAK_SEQUENCE, 200);
	stand_in(s, VB_OP_SEND, ASK, 202, 10);
	stand_in(s, VB_OP_READ_REQUEST, BOTH, 203, 10);
	assert_int_equal(s->sents, 1);
	assert_int_equal(s->recv_dones, 0);
	stand_in(s, VB_OP_SEND, ASK, 200, 10);
	stand_expect_ack(s, VB_AETH_ACK, 200);
	stand_in(s, VB_OP_SEND, ASK, 202, 10); /* the next gap is told again */
	stand_expect_ack(s, VB_AETH_NAK_SEQUENCE, 201);
	stand_free(s);
}

static void no_receive(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	stand_in(s, VB_OP_SEND, ASK, 200, 10);
	stand_expect_ack(s, VB_AETH_RNR | 12, 200);
	stand_in(s, VB_OP_SEND, ASK, 201, 10); /* what follows is passed over in silence */
	assert_int_equal(s->sents, 1);
	assert_int_equal(s->events, 0);
	assert_int_equal(s->qp.state, IBV_QPS_RTS);
	stand_recv(s, 100);
	stand_in(s, VB_OP_SEND, ASK, 200, 10);
	stand_expect_ack(s, VB_AETH_ACK, 200);
	stand_in(s, VB_OP_WRITE, ASK | VB_RUN_IMM, 201, 10);
	stand_expect_ack(s, VB_AETH_RNR | 12, 201);
	stand_in(s, VB_OP_WRITE, ASK, 201, 10); /* without immediate no receive is needed */
	stand_expect_ack(s, VB_AETH_ACK, 201);
	stand_free(s);
}

/*
 * ibv_modify_qp(3) may change the number in SQD, with requests under way; for a larger one the
 * device gives a larger ring.
 */
static void another_number_at_once(void **state)
{
	static struct vb_resource larger[VB_RESOURCES];
	struct stand *s = stand_new(true);

	(void)state;
	s->room = 0;
	for (uint32_t i = 0; i < 3; i++)
		stand_in(s, VB_OP_READ_REQUEST, BOTH, 200 + i, 8);
	s->qp.max_dest_rd_atomic = 0;
	s->room = 2;
	vb_tqp_run(&s->qp);
	assert_int_equal(s->sents, 2);
	s->qp.max_dest_rd_atomic = 255;
	assert_int_equal(vb_resource_slots(255), VB_RESOURCES);
	assert_ptr_equal(vb_responder_grow(&s->qp.resp, larger, VB_RESOURCES), s->res);
	s->room = STAND_RUNS;
	vb_tqp_run(&s->qp);
	assert_int_equal(s->sents, 3);
	assert_int_equal(stand_last(s)->psn, 202);
	for (uint32_t i = 3; i < 300; i++)
		stand_in(s, VB_OP_READ_REQUEST, BOTH, 200 + i, 8);
	assert_int_equal(s->sents, 300);
	stand_clear(s);
	stand_in(s, VB_OP_READ_REQUEST, BOTH, 245, 8); /* 255 are remembered */
	assert_int_equal(s->sents, 1);
	stand_in(s, VB_OP_READ_REQUEST, BOTH, 244, 8);
	assert_int_equal(s->sents, 2);
	assert_int_equal(stand_last(s)->op, VB_OP_DROP);
	assert_int_equal(stand_last(s)->imm, VB_REASON_DROP_STALE);
	assert_int_equal(s->qp.state, IBV_QPS_RTS);
	stand_free(s);
}

static void the_first_packet_in_rtr(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	stand_recv(s, 100);
	stand_recv(s, 100);
	s->qp.state = IBV_QPS_RTR;
	stand_in(s, VB_OP_SEND, ASK, 200, 10);
	stand_in(s, VB_OP_SEND, ASK, 201, 10);
	assert_int_equal(s->recv_dones, 2);
	assert_int_equal(s->events, 1);
	assert_int_equal(s->event[0], IBV_EVENT_COMM_EST);
	stand_expect_ack(s, VB_AETH_ACK, 201); /* answered although it may not send itself */
	stand_free(s);
}

static void the_receive_under_way(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	stand_recv(s, 8000);
	stand_in(s, VB_OP_SEND, VB_RUN_FIRST, 200, 1024);
	vb_tqp_to_error(&s->qp);
	assert_int_equal(s->recv_dones, 1);
	assert_int_equal(s->recv_done[0].status, IBV_WC_WR_FLUSH_ERR);
	stand_free(s);

	s = stand_new(true);
	stand_recv(s, 8000);
	stand_in(s, VB_OP_SEND, VB_RUN_FIRST, 200, 1024);
	vb_tqp_reset(&s->qp);
	assert_int_equal(s->recv_dones, 0);
	assert_int_equal(s->untaken, 1);
	stand_free(s);
}

/*
 * What is executed but not acknowledged when the program ends it: the peer is told as soon as there
 * is room.
 */
static void an_end_without_room(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	stand_recv(s, 100);
	s->room = 0;
	stand_in(s, VB_OP_SEND, ASK, 200, 10);
	vb_tqp_to_error(&s->qp);
	s->room = 9;
	vb_tqp_run(&s->qp);
	assert_int_equal(s->sents, 1);
	assert_int_equal(stand_last(s)->op, VB_OP_DROP);
	assert_int_equal(stand_last(s)->psn, 200);
	stand_free(s);
}

/*
 * A queue pair that ends repeats the acknowledgement of what has arrived, on a lossy link only, and
 * not after a fault.
 */
static void last_acknowledgements(void **state)
{
	(void)state;
	for (int reliable = 0; reliable < 2; reliable++) {
		struct stand *s = stand_new(reliable);

		stand_recv(s, 100);
		stand_in(s, VB_OP_SEND, ASK, 200, 10);
		stand_clear(s);
		vb_tqp_reset(&s->qp);
		if (reliable) {
			assert_int_equal(s->sents, 0);
		} else {
			assert_in_range(s->sents, 1, 3);
			stand_expect_ack(s, VB_AETH_ACK, 200);
		}
		stand_clear(s);
		vb_tqp_reset(&s->qp); /* destroyed after it was reset */
		assert_int_equal(s->sents, 0);
		stand_free(s);
	}

	struct stand *s = stand_new(false);

	vb_tqp_reset(&s->qp); /* nothing has arrived */
	assert_int_equal(s->sents, 0);
	stand_service(s, VB_SERVICE_RC);
	stand_recv(s, 100);
	stand_in(s, VB_OP_SEND, ASK, 200, 10);
	vb_tqp_to_error(&s->qp);
	stand_clear(s);
	vb_tqp_reset(&s->qp);
	assert_int_equal(s->sents, 0);
	stand_free(s);
}

/* A request may go out before an acknowledgement that is owed. */
static void a_reply_before_its_acknowledgement(void **state)
{
	struct stand *s = stand_new(false);
	struct vb_run run = stand_run(s, VB_OP_SEND, ASK, 200, 10);

	(void)state;
	stand_recv(s, 100);
	vb_tqp_receive(&s->qp, &run, s->payload);
	assert_true(vb_tqp_owes_ack_alone(&s->qp));
	stand_wqe(s, IBV_WR_SEND, 10);
	s->qp.sq_posted++;
	assert_false(vb_tqp_run_reply(&s->qp));
	assert_int_equal(s->sents, 2);
	assert_int_equal(s->sent[0].op, VB_OP_SEND);
	stand_expect_ack(s, VB_AETH_ACK, 200);
	assert_false(vb_tqp_owes_ack_alone(&s->qp));
	stand_in(s, VB_OP_READ_REQUEST, BOTH, 201, 8);
	run = stand_run(s, VB_OP_READ_REQUEST, BOTH, 202, 8);
	vb_tqp_receive(&s->qp, &run, s->payload);
	assert_false(vb_tqp_owes_ack_alone(&s->qp)); /* data is owed */
	stand_free(s);
}

/* On a link that carries them an acknowledgement and a request are one run. */
static void an_acknowledgement_rides(void **state)
{
	struct stand *s = stand_new(true);
	struct vb_run run = stand_run(s, VB_OP_SEND, ASK, 200, 10);

	(void)state;
	s->qp.acks_ride = true;
	stand_recv(s, 100);
	vb_tqp_receive(&s->qp, &run, s->payload);
	stand_wqe(s, IBV_WR_SEND, 10);
	assert_false(stand_post(s));
	assert_int_equal(s->sents, 1);
	assert_int_equal(s->sent[0].op, VB_OP_SEND);
	assert_true(s->sent[0].flags & VB_RUN_ACKS);
	assert_int_equal(s->sent[0].ack_psn, 200);
	assert_false(s->qp.resp.owed);

	/* The peer's next message takes the acknowledgement of that one along. */
	stand_recv(s, 100);
	run = stand_run(s, VB_OP_SEND, ASK | VB_RUN_ACKS, 201, 10);
	run.ack_psn = 100;
	vb_tqp_receive(&s->qp, &run, s->payload);
	stand_expect_done(s, 0, IBV_WC_SUCCESS);

	/* A READ takes none along, and does not go before it. */
	stand_clear(s);
	assert_false(stand_request(s, IBV_WR_RDMA_READ, 10));
	assert_int_equal(s->sents, 2);
	assert_int_equal(s->sent[0].op, VB_OP_ACK);
	assert_int_equal(s->sent[0].psn, 201);
	assert_int_equal(s->sent[1].op, VB_OP_READ_REQUEST);
	assert_false(s->sent[1].flags & VB_RUN_ACKS);
	stand_free(s);
}

/* Nothing rides but an acknowledgement: a refusal is a run of its own, before the request. */
static void a_refusal_does_not_ride(void **state)
{
	struct stand *s = stand_new(true);
	struct vb_run run = stand_run(s, VB_OP_SEND, ASK, 200, 10);

	(void)state;
	s->qp.acks_ride = true;
	vb_tqp_receive(&s->qp, &run, s->payload); /* there is no receive */
	stand_wqe(s, IBV_WR_SEND, 10);
	assert_false(stand_post(s));
	assert_int_equal(s->sents, 2);
	assert_int_equal(s->sent[0].op, VB_OP_ACK);
	assert_int_equal(VB_AETH_CLASS(s->sent[0].syndrome), VB_AETH_RNR);
	assert_int_equal(s->sent[1].op, VB_OP_SEND);
	assert_false(s->sent[1].flags & VB_RUN_ACKS);
	stand_free(s);
}

static void expect_psn_drop(const struct stand *s, uint32_t psn, uint32_t expected)
{
	assert_int_equal(stand_last(s)->op, VB_OP_DROP);
	assert_int_equal(stand_last(s)->imm, VB_REASON_DROP_PSN);
	assert_int_equal(stand_last(s)->psn, psn);
	assert_int_equal(stand_last(s)->msn, expected);
	assert_int_equal(s->drops[s->dropped - 1], VB_REASON_DROP_PSN);
}

/*
 * On a reliable link, what lies before everything that was executed is no repeated request: to
 * acknowledge it would be a lie.
 */
static void before_the_first_psn(void **state)
{
	(void)state;
	for (int reliable = 0; reliable < 2; reliable++) {
		struct stand *s = stand_new(reliable);

		stand_recv(s, 100);
		stand_in(s, VB_OP_SEND, BOTH | VB_RUN_ACK_REQ, 199, 8);
		stand_in(s, VB_OP_READ_REQUEST, BOTH, 198, 8);
		assert_int_equal(s->recv_dones, 0);
		if (reliable)
			expect_psn_drop(s, 198, 200);
		else
			stand_expect_ack(s, VB_AETH_ACK, 199);
		assert_int_equal(s->sents, reliable ? 2 : 1);
		stand_in(s, VB_OP_SEND, BOTH | VB_RUN_ACK_REQ, 200, 8);
		stand_expect_ack(s, VB_AETH_ACK, 200);
		stand_clear(s);
		stand_in(s, VB_OP_SEND, BOTH | VB_RUN_ACK_REQ, 200, 8); /* repeated indeed */
		stand_expect_ack(s, VB_AETH_ACK, 200);
		stand_clear(s);
		stand_in(s, VB_OP_SEND, BOTH | VB_RUN_ACK_REQ, 199, 8);
		if (reliable)
			expect_psn_drop(s, 199, 201);
		else
			stand_expect_ack(s, VB_AETH_ACK, 200);
		assert_int_equal(s->sents, 1);
		assert_int_equal(s->qp.state, IBV_QPS_RTS);
		stand_free(s);
	}
}

/* After 2^23 packets everything that compares as older was executed. */
static void every_old_psn(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	stand_recv(s, 100);
	stand_recv(s, 100);
	s->qp.resp.executed = VB_EXECUTED_MOST - 1;
	for (uint32_t i = 0; i < 2; i++) {
		stand_in(s, VB_OP_SEND, BOTH | VB_RUN_ACK_REQ, 200 + i, 1);
		assert_int_equal(s->qp.resp.executed, VB_EXECUTED_MOST);
	}
	stand_clear(s);
	stand_in(s, VB_OP_SEND, BOTH | VB_RUN_ACK_REQ, vb_psn_add(202, 1u << 23), 1);
	stand_expect_ack(s, VB_AETH_ACK, 201);
	stand_free(s);
}

/*
 * One NAK for a gap (IBA 9.7.5.2.6). Where nothing gets lost, the same run once more shows a sender
 * that counts otherwise.
 */
static void the_same_gap_again(void **state)
{
	(void)state;
	for (int reliable = 0; reliable < 2; reliable++) {
		struct stand *s = stand_new(reliable);

		stand_recv(s, 100);
		stand_in(s, VB_OP_SEND, BOTH | VB_RUN_ACK_REQ, 205, 8);
		stand_expect_ack(s, VB_AETH_NAK_SEQUENCE, 200);
		stand_in(s, VB_OP_SEND, BOTH | VB_RUN_ACK_REQ, 206, 8); /* of the same volley */
		assert_int_equal(s->sents, 1);
		for (unsigned int i = 0; i < 3; i++) {
			stand_in(s, VB_OP_SEND, BOTH | VB_RUN_ACK_REQ, 206 - i % 2, 8);
			assert_int_equal(s->sents, reliable ? 2 + i : 1);
			if (reliable)
				expect_psn_drop(s, 206 - i % 2, 200);
		}
		stand_in(s, VB_OP_SEND, BOTH | VB_RUN_ACK_REQ, 200, 8);
		stand_expect_ack(s, VB_AETH_ACK, 200);
		stand_in(s, VB_OP_SEND, BOTH | VB_RUN_ACK_REQ, 206, 8); /* another gap */
		stand_expect_ack(s, VB_AETH_NAK_SEQUENCE, 201);
		stand_free(s);
	}
}

/* Why it does not serve: not yet, not any more, or because something went wrong. */
static void why_not(struct stand *s, enum ibv_qp_state state, enum vb_reason reason)
{
	s->qp.state = (uint8_t)state;
	stand_clear(s);
	stand_in(s, VB_OP_SEND, BOTH, 200, 8);
	assert_int_equal(stand_last(s)->op, VB_OP_DROP);
	assert_int_equal(stand_last(s)->imm, reason);
}

static void reasons_of_states(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	s->qp.was_ready = false; /* as it was made */
	vb_tqp_reset(&s->qp);
	why_not(s, IBV_QPS_RESET, VB_REASON_DROP_NOT_YET);
	why_not(s, IBV_QPS_INIT, VB_REASON_DROP_NOT_YET);
	vb_tqp_to_error(&s->qp);
	why_not(s, IBV_QPS_ERR, VB_REASON_DROP_STATE);
	vb_tqp_reset(&s->qp);
	why_not(s, IBV_QPS_INIT, VB_REASON_DROP_NOT_YET);
	vb_tqp_start_responder(&s->qp, 200);
	vb_tqp_start_requester(&s->qp, 100);
	s->qp.state = IBV_QPS_RTS;
	vb_tqp_to_error(&s->qp);
	why_not(s, IBV_QPS_ERR, VB_REASON_DROP_STATE);
	vb_tqp_reset(&s->qp);
	why_not(s, IBV_QPS_RESET, VB_REASON_DROP_STATE);
	why_not(s, IBV_QPS_INIT, VB_REASON_DROP_STATE);
	vb_tqp_start_responder(&s->qp, 200);
	vb_tqp_start_requester(&s->qp, 100);
	s->qp.state = IBV_QPS_RTS;
	s->gather_fault = VB_REASON_LKEY_UNKNOWN;
	stand_request(s, IBV_WR_SEND, 8);
	assert_int_equal(s->qp.state, IBV_QPS_ERR);
	why_not(s, IBV_QPS_ERR, VB_REASON_DROP_FAILED);
	vb_tqp_to_error(&s->qp); /* the program has taken note */
	why_not(s, IBV_QPS_ERR, VB_REASON_DROP_STATE);
	stand_free(s);
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
		cmocka_unit_test(atomic_write_and_flush),
		cmocka_unit_test(repeated_requests),
		cmocka_unit_test(repeated_reads),
		cmocka_unit_test(a_repeated_read_of_what_is_gone),
		cmocka_unit_test(false_repeats),
		cmocka_unit_test(half_old_runs),
		cmocka_unit_test(one_nak_for_a_gap),
		cmocka_unit_test(no_receive),
		cmocka_unit_test(another_number_at_once),
		cmocka_unit_test(before_the_first_psn),
		cmocka_unit_test(every_old_psn),
		cmocka_unit_test(the_same_gap_again),
		cmocka_unit_test(reasons_of_states),
		cmocka_unit_test(the_first_packet_in_rtr),
		cmocka_unit_test(the_receive_under_way),
		cmocka_unit_test(an_end_without_room),
		cmocka_unit_test(last_acknowledgements),
		cmocka_unit_test(a_reply_before_its_acknowledgement),
		cmocka_unit_test(an_acknowledgement_rides),
		cmocka_unit_test(a_refusal_does_not_ride),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

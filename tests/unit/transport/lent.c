/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Long SENDs whose payload is lent: which are, what happens when the receiver cannot fetch, and that a message is
 * received once, when all of it is there.
 */
#include "stand.h"

#include <string.h>

enum { LONG = 40960, BOTH = VB_RUN_FIRST | VB_RUN_LAST, PACKETS = LONG / 1024 };

static unsigned int lends, fetches;
static bool may_lend;
static enum vb_fetch fetched[8]; /* the answers, in order */
static uint64_t fetched_from, fetched_to;

static bool lend(struct vb_tqp *qp, struct vb_send_wqe *wqe, uint64_t offset, uint32_t length,
		 struct vb_lent *lent)
{
	(void)qp;
	lends++;
	assert_true(offset + length <= wqe->length);
	*lent = (struct vb_lent){.addr = 0x10000 + offset, .key = 7};
	return may_lend;
}

static enum vb_fetch fetch(struct vb_tqp *qp, struct vb_recv_wqe *recv, uint64_t offset,
			   const struct vb_run *run, uint64_t from, enum vb_reason *reason)
{
	(void)qp;
	assert_true(offset + run->length <= recv->length);
	assert_true(run->flags & VB_RUN_LENT);
	fetched_from = from;
	fetched_to = offset;
	*reason = VB_REASON_LKEY_ACCESS;
	return fetched[fetches++ % 8];
}

static struct vb_env env;

static struct stand *lending(void)
{
	struct stand *s = stand_new(true);

	env = *s->qp.env;
	env.link.lend = lend;
	env.link.fetch = fetch;
	s->qp.env = &env;
	s->qp.lends = true;
	lends = fetches = 0;
	may_lend = true;
	memset(fetched, 0, sizeof(fetched));
	return s;
}

static void dropped(struct stand *s, uint32_t psn)
{
	struct vb_run run = stand_run(s, VB_OP_DROP, BOTH, psn, 0);

	run.imm = VB_REASON_DROP_LENT;
	stand_arrive(s, &run);
}

static void long_sends_are_lent(void **state)
{
	struct stand *s = lending();

	(void)state;
	stand_request(s, IBV_WR_SEND_WITH_IMM, LONG);
	assert_int_equal(s->sents, 1);
	assert_true(s->sent[0].flags & VB_RUN_LENT);
	assert_true(s->sent[0].flags & VB_RUN_IMM);
	assert_int_equal(s->sent[0].length, LONG);
	assert_int_equal(s->sent[0].segments, PACKETS);
	assert_true(s->sent[0].lent.addr == 0x10000);
	stand_ack(s, 100 + PACKETS - 1, VB_AETH_ACK);
	stand_expect_done(s, 0, IBV_WC_SUCCESS);
	stand_free(s);
}

static void others_are_not(void **state)
{
	struct stand *s = lending();

	(void)state;
	stand_request(s, IBV_WR_SEND, VB_LEND_LEAST - 1);
	stand_request(s, IBV_WR_RDMA_WRITE, LONG);
	s->qp.lends = false;
	stand_request(s, IBV_WR_SEND, LONG);
	assert_int_equal(lends, 0);
	s->qp.lends = true;
	may_lend = false;
	stand_request(s, IBV_WR_SEND, LONG);
	assert_true(lends > 0);
	for (unsigned int i = 0; i < s->sents; i++) {
		assert_false(s->sent[i].flags & VB_RUN_LENT);
		assert_true(s->sent[i].length <= s->qp.max_run_bytes);
	}
	stand_free(s);
}

/* A very long one is lent in parts, of which the last may be too short for that. */
static void parts_are_lent(void **state)
{
	struct stand *s = lending();

	(void)state;
	stand_wqe(s, IBV_WR_SEND, VB_LEND_MOST + VB_LEND_LEAST + 10);
	stand_post(s);
	assert_int_equal(s->sents, 2);
	assert_int_equal(s->sent[0].length, VB_LEND_MOST);
	assert_int_equal(s->sent[1].length, VB_LEND_LEAST + 10);
	assert_true(s->sent[1].lent.addr == 0x10000 + VB_LEND_MOST);
	assert_int_equal(s->sent[1].psn, 100 + VB_LEND_MOST / 1024);
	stand_free(s);
}

/* No try is counted and nothing is waited for: the same bytes are sent at once. */
static void what_cannot_be_fetched_is_sent(void **state)
{
	struct stand *s = lending();

	(void)state;
	s->qp.retry_cnt = 0;
	stand_request(s, IBV_WR_SEND, LONG);
	stand_clear(s);
	dropped(s, 100);
	assert_int_equal(s->sents, LONG / 8192);
	assert_int_equal(s->sent[0].psn, 100);
	for (unsigned int i = 0; i < s->sents; i++)
		assert_false(s->sent[i].flags & VB_RUN_LENT);
	assert_int_equal(s->dones, 0);
	stand_ack(s, 100 + PACKETS - 1, VB_AETH_ACK);
	stand_expect_done(s, 0, IBV_WC_SUCCESS);
	assert_int_equal(lends, 1);
	/* After some runs it is tried again. */
	s->qp.req.lend_pause = 1;
	stand_clear(s);
	stand_request(s, IBV_WR_SEND, LONG);
	assert_int_equal(lends, 2);
	/* An old answer says nothing. */
	stand_ack(s, 100 + 2 * PACKETS - 1, VB_AETH_ACK);
	s->qp.req.lend_pause = 0;
	dropped(s, 100);
	assert_int_equal(s->qp.req.lend_pause, 0);
	stand_free(s);
}

static void arrive(struct stand *s, uint32_t psn, uint8_t flags)
{
	struct vb_run run =
		stand_run(s, VB_OP_SEND, flags | VB_RUN_LENT | VB_RUN_ACK_REQ, psn, LONG);

	/* Never read here. */
	vb_tqp_receive(&s->qp, &run, (const void *)(uintptr_t)0x4321000);
	vb_tqp_run(&s->qp);
}

static void a_payload_is_fetched(void **state)
{
	struct stand *s = lending();

	(void)state;
	stand_recv(s, LONG);
	fetched[0] = fetched[1] = VB_FETCH_LATER;
	for (int i = 0; i < 2; i++) {
		arrive(s, 200, BOTH);
		assert_int_equal(s->recv_dones, 0);
		assert_int_equal(s->sents, 0);
		assert_int_equal(s->recvs_taken, 1);
	}
	arrive(s, 200, BOTH);
	assert_int_equal(fetches, 3);
	assert_int_equal(s->recv_dones, 1);
	assert_int_equal(s->recv_done[0].byte_len, LONG);
	stand_expect_ack(s, VB_AETH_ACK, 200 + PACKETS - 1);
	/* A repeated one is not fetched again. */
	arrive(s, 200, BOTH);
	assert_int_equal(fetches, 3);
	assert_int_equal(s->recv_dones, 1);
	stand_free(s);
}

static void parts_are_fetched(void **state)
{
	struct stand *s = lending();

	(void)state;
	stand_recv(s, 2 * LONG);
	arrive(s, 200, VB_RUN_FIRST);
	arrive(s, 200 + PACKETS, VB_RUN_LAST);
	assert_true(fetched_to == LONG);
	assert_true(fetched_from == 0x4321000);
	assert_int_equal(s->recv_dones, 1);
	assert_int_equal(s->recv_done[0].byte_len, 2 * LONG);
	stand_free(s);
}

/* What was lent in other parts the first time: only the end of it is fetched, from its place. */
static void half_old_payloads(void **state)
{
	struct stand *s = lending();
	struct vb_run run;

	(void)state;
	stand_recv(s, LONG);
	run = stand_run(s, VB_OP_SEND, VB_RUN_FIRST, 200, 8192);
	stand_arrive(s, &run);
	arrive(s, 200, BOTH);
	assert_true(fetched_to == 8192);
	assert_true(fetched_from == 0x4321000 + 8192);
	assert_int_equal(s->recv_dones, 1);
	stand_free(s);
}

static void the_payload_is_asked_for(void **state)
{
	struct stand *s = lending();
	struct vb_run run;

	(void)state;
	stand_recv(s, LONG);
	stand_recv(s, LONG);
	fetched[0] = VB_FETCH_DECLINED;
	arrive(s, 200, BOTH);
	assert_int_equal(stand_last(s)->op, VB_OP_DROP);
	assert_int_equal(stand_last(s)->imm, VB_REASON_DROP_LENT);
	assert_int_equal(stand_last(s)->psn, 200);
	stand_clear(s);
	arrive(s, 200 + PACKETS, BOTH); /* was on its way: no NAK, which would count as a try */
	assert_int_equal(s->sents, 0);
	run = stand_run(s, VB_OP_SEND, BOTH | VB_RUN_ACK_REQ, 200, LONG);
	stand_arrive(s, &run);
	stand_expect_ack(s, VB_AETH_ACK, 200 + PACKETS - 1);
	assert_int_equal(s->recv_dones, 1);
	assert_int_equal(s->recvs_taken, 1);
	stand_free(s);
}

static enum vb_reason no_match_reason;

static struct vb_recv_wqe *match(struct vb_tqp *qp, const struct vb_run *run, const void *payload)
{
	(void)qp, (void)run, (void)payload;
	no_match_reason = VB_REASON_ARG; /* it looks at the payload */
	return NULL;
}

/* Where nothing can fetch, or the payload decides about the receive, it has to come. */
static void only_who_can_fetches(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct stand *s = lending();

		if (i)
			env.queue.recv_match = match;
		else
			env.link.fetch = NULL;
		stand_recv(s, LONG);
		arrive(s, 200, BOTH);
		assert_int_equal(fetches, 0);
		assert_int_equal(no_match_reason, 0);
		assert_int_equal(stand_last(s)->imm, VB_REASON_DROP_LENT);
		stand_free(s);
	}
}

static void a_receive_that_cannot_take_it(void **state)
{
	struct stand *s = lending();

	(void)state;
	stand_recv(s, LONG);
	fetched[0] = VB_FETCH_FAILED;
	arrive(s, 200, BOTH);
	stand_expect_ack(s, VB_AETH_NAK_OPERATION, 200);
	assert_int_equal(s->recv_done[0].status, IBV_WC_LOC_PROT_ERR);
	stand_free(s);
}

/* The request to which a part that the receiver asks for belongs. */
static void the_lender_finds_its_request(void **state)
{
	struct stand *s = lending();
	struct vb_tqp *qp = &s->qp;
	uint64_t offset = 1;

	(void)state;
	assert_null(vb_requester_lent(qp, 100, 1, &offset));
	stand_request(s, IBV_WR_SEND, 10);
	stand_request(s, IBV_WR_RDMA_READ, LONG);
	stand_request(s, IBV_WR_SEND, LONG);
	assert_ptr_equal(vb_requester_lent(qp, 101 + PACKETS, LONG, &offset), vb_tqp_wqe(qp, 2));
	assert_true(offset == 0);
	assert_ptr_equal(vb_requester_lent(qp, 103 + PACKETS, LONG - 2048, &offset),
			 vb_tqp_wqe(qp, 2));
	assert_true(offset == 2048);
	assert_null(vb_requester_lent(qp, 101 + PACKETS, LONG + 1, &offset));
	assert_null(vb_requester_lent(qp, 103 + PACKETS, LONG, &offset));
	assert_null(vb_requester_lent(qp, 102, 8, &offset)); /* a READ */
	assert_null(vb_requester_lent(qp, 99, 8, &offset));
	assert_null(vb_requester_lent(qp, 101 + 2 * PACKETS, 8, &offset));
	stand_ack(s, 100, VB_AETH_ACK);
	assert_null(vb_requester_lent(qp, 100, 1, &offset));
	stand_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_sends_are_lent),
		cmocka_unit_test(others_are_not),
		cmocka_unit_test(parts_are_lent),
		cmocka_unit_test(what_cannot_be_fetched_is_sent),
		cmocka_unit_test(a_payload_is_fetched),
		cmocka_unit_test(parts_are_fetched),
		cmocka_unit_test(half_old_payloads),
		cmocka_unit_test(the_payload_is_asked_for),
		cmocka_unit_test(only_who_can_fetches),
		cmocka_unit_test(a_receive_that_cannot_take_it),
		cmocka_unit_test(the_lender_finds_its_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* When and how often a request is sent again. */
#include "stand.h"

static void rnr_timers(void **state)
{
	/* IBA table 45, in microseconds, for the codes 0 to 31. */
	static const uint32_t us[32] = {
		655360, 10,    20,    30,    40,    60,     80,     120,    160,    240,    320,
		480,    640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240,  15360,
		20480,  30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
	};

	(void)state;
	for (unsigned int i = 0; i < 32; i++)
		assert_true(vb_retry_rnr_ns((uint8_t)i) == us[i] * 1000ull);
}

static void ack_timeouts(void **state)
{
	(void)state;
	assert_true(vb_retry_ack_ns(0) == 0);
	assert_true(vb_retry_ack_ns(1) == 8192);
	assert_true(vb_retry_ack_ns(14) == 67108864);
	assert_true(vb_retry_ack_ns(31) == 4096ull << 31);
}

static void tries_run_out(void **state)
{
	struct stand *s = stand_new(false);

	(void)state;
	stand_request(s, IBV_WR_SEND, 10);
	assert_true(s->timer_ns == vb_retry_ack_ns(14));
	stand_expire(s); /* looks back: the request was fresh */
	assert_int_equal(s->sents, 1);
	for (unsigned int i = 0; i < 3; i++) {
		stand_expire(s);
		assert_int_equal(s->sents, 2 + i);
		assert_int_equal(stand_last(s)->psn, 100);
	}
	assert_int_equal(s->dones, 0);
	stand_expire(s); /* retry_cnt = 3 further tries have been made */
	assert_int_equal(s->sents, 4);
	assert_int_equal(s->done[0].status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(s->done[0].reason, VB_REASON_RETRY_EXCEEDED);
	assert_int_equal(s->qp.state, IBV_QPS_ERR);
	assert_true(s->timer_ns == 0);
	stand_free(s);
}

static void no_tries(void **state)
{
	struct stand *s = stand_new(false);

	(void)state;
	s->qp.retry_cnt = 0;
	stand_request(s, IBV_WR_SEND, 10);
	stand_expire(s);
	stand_expire(s);
	assert_int_equal(s->sents, 1);
	assert_int_equal(s->done[0].status, IBV_WC_RETRY_EXC_ERR);
	stand_free(s);
}

static void timeout_0_waits_for_ever(void **state)
{
	struct stand *s = stand_new(false);

	(void)state;
	s->qp.timeout = 0;
	stand_request(s, IBV_WR_SEND, 10);
	assert_int_equal(s->timers, 0);
	stand_free(s);
}

static void progress_refills(void **state)
{
	struct stand *s = stand_new(false);

	(void)state;
	stand_request(s, IBV_WR_SEND, 4096);
	stand_request(s, IBV_WR_SEND, 4096);
	stand_expire(s);
	for (uint32_t round = 0; round < 6; round++) {
		for (int i = 0; i < 3; i++)
			stand_expire(s);
		stand_ack(s, 100 + round, VB_AETH_ACK);
		stand_expire(s); /* there was progress: no try */
	}
	assert_int_equal(s->dones, 1);
	assert_int_equal(s->done[0].status, IBV_WC_SUCCESS);
	assert_int_equal(s->qp.state, IBV_QPS_RTS);
	stand_free(s);
}

/* The timer is not touched for each request: it is armed once, and finds out when it expires. */
static void a_lazy_timer(void **state)
{
	struct stand *s = stand_new(false);

	(void)state;
	for (uint32_t i = 0; i < 10; i++) {
		stand_request(s, IBV_WR_SEND, 10);
		stand_ack(s, 100 + i, VB_AETH_ACK);
	}
	assert_int_equal(s->timers, 1);
	stand_expire(s); /* nothing is in flight: not armed again */
	assert_true(s->timer_ns == 0);
	stand_request(s, IBV_WR_SEND, 10);
	assert_int_equal(s->timers, 2);
	stand_free(s);
}

static void everything_from_the_gap_on(void **state)
{
	struct stand *s = stand_new(false);

	(void)state;
	for (int i = 0; i < 4; i++)
		stand_request(s, IBV_WR_SEND, 10);
	stand_clear(s);
	stand_ack(s, 101, VB_AETH_NAK_SEQUENCE);
	assert_int_equal(s->dones, 1);
	assert_int_equal(s->sents, 3);
	assert_int_equal(s->sent[0].psn, 101);
	assert_int_equal(s->sent[2].psn, 103);
	stand_ack(s, 101, VB_AETH_NAK_SEQUENCE); /* the same loss again: known */
	assert_int_equal(s->sents, 3);
	stand_ack(s, 102, VB_AETH_NAK_SEQUENCE); /* progress, and another loss */
	assert_int_equal(s->sents, 5);
	assert_int_equal(s->sent[3].psn, 102);
	stand_free(s);
}

/* An acknowledgement of what is being sent again: no need to go on with that. */
static void a_late_ack(void **state)
{
	struct stand *s = stand_new(false);

	(void)state;
	for (int i = 0; i < 4; i++)
		stand_request(s, IBV_WR_SEND, 10);
	stand_expire(s);
	stand_clear(s);
	s->room = 1;
	stand_expire(s);
	assert_int_equal(stand_last(s)->psn, 100);
	s->room = 9;
	stand_ack(s, 102, VB_AETH_ACK);
	assert_int_equal(s->dones, 3);
	assert_int_equal(s->sents, 2);
	assert_int_equal(stand_last(s)->psn, 103);
	stand_free(s);
}

static void patience_with_receivers(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	stand_request(s, IBV_WR_SEND, 10);
	stand_request(s, IBV_WR_SEND, 10);
	for (unsigned int i = 0; i < 2; i++) { /* rnr_retry = 2 */
		stand_clear(s);
		stand_ack(s, 100, VB_AETH_RNR | 5);
		assert_true(s->timer_ns == 60000);
		stand_request(s, IBV_WR_SEND, 10);
		assert_int_equal(s->sents, 0);      /* nothing moves while waiting */
		stand_ack(s, 100, VB_AETH_RNR | 5); /* the same refusal again counts once */
		stand_ack(s, 100, VB_AETH_NAK_SEQUENCE);
		stand_expire(s);
		assert_int_equal(s->sents, 1); /* one asks, the others wait for its answer */
		assert_int_equal(stand_last(s)->psn, 100);
		assert_true(stand_last(s)->flags & VB_RUN_ACK_REQ);
		if (i == 0) { /* progress: the tries begin afresh */
			stand_ack(s, 100, VB_AETH_ACK);
			assert_int_equal(s->dones, 1);
			assert_int_equal(s->sents, 3);
			stand_ack(s, 101, VB_AETH_RNR | 5);
			stand_expire(s);
			stand_ack(s, 101, VB_AETH_RNR | 5);
			stand_expire(s);
			assert_int_equal(s->qp.state, IBV_QPS_RTS);
			break;
		}
	}
	stand_ack(s, 101, VB_AETH_RNR | 5);
	assert_int_equal(s->done[1].status, IBV_WC_RNR_RETRY_EXC_ERR);
	assert_int_equal(s->done[1].reason, VB_REASON_RNR_EXCEEDED);
	stand_free(s);
}

static void rnr_retry_0_and_7(void **state)
{
	struct stand *s = stand_new(false);

	(void)state;
	s->qp.rnr_retry = 0;
	stand_request(s, IBV_WR_SEND, 10);
	stand_ack(s, 100, VB_AETH_RNR | 1);
	assert_int_equal(s->done[0].status, IBV_WC_RNR_RETRY_EXC_ERR);
	stand_free(s);

	s = stand_new(false);
	s->qp.rnr_retry = 7;
	stand_request(s, IBV_WR_SEND, 10);
	for (int i = 0; i < 300; i++) {
		stand_ack(s, 100, VB_AETH_RNR | 1);
		stand_expire(s);
		stand_clear(s);
	}
	assert_int_equal(s->dones, 0);
	stand_free(s);
}

static void dropped_because(struct stand *s, uint32_t psn, enum vb_reason reason)
{
	struct vb_run run = stand_run(s, VB_OP_DROP, 0, psn, 0);

	run.imm = reason;
	run.msn = 333; /* what the peer expects */
	stand_arrive(s, &run);
}

static void dropped(struct stand *s, uint32_t psn)
{
	dropped_because(s, psn, VB_REASON_DROP_STATE);
}

/*
 * 50 us, doubling to 20 ms, until the tries that were asked for are over; the last wait ends with
 * them.
 */
static void a_peer_that_is_not_ready(void **state)
{
	struct stand *s = stand_new(true);
	uint64_t want = 50000;
	uint64_t waited = 0;
	uint64_t all = 4 * vb_retry_ack_ns(14);

	(void)state;
	stand_request(s, IBV_WR_SEND, 10);
	stand_request(s, IBV_WR_SEND, 10);
	while (waited < all) {
		if (want > all - waited)
			want = all - waited;
		dropped(s, 100);
		dropped(s, 101); /* of the same volley: counts once */
		assert_true(s->timer_ns == want);
		waited += want;
		want = want * 2 > 20000000 ? 20000000 : want * 2;
		stand_clear(s);
		stand_expire(s);
		assert_int_equal(s->sents, 1);
	}
	assert_int_equal(s->dones, 0);
	dropped(s, 100);
	assert_int_equal(s->done[0].status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(s->done[0].reason, VB_REASON_PEER_NOT_READY);
	assert_int_equal(s->done[1].status, IBV_WC_WR_FLUSH_ERR);
	stand_free(s);
}

/*
 * The time from the first refusal to giving up, where each answer takes `lag` longer than its
 * timer.
 */
static uint64_t patience(uint8_t timeout, uint8_t retry_cnt, enum vb_reason reason, uint64_t lag,
			 enum vb_reason verdict)
{
	struct stand *s = stand_new(true);
	uint64_t waited;

	s->qp.timeout = timeout;
	s->qp.retry_cnt = retry_cnt;
	stand_request(s, IBV_WR_SEND, 10);
	for (int i = 0; i < 2000; i++) {
		dropped_because(s, 100, reason);
		if (s->dones)
			break;
		stand_clear(s);
		s->now_ns += lag;
		stand_expire(s);
	}
	waited = s->dones ? s->now_ns : UINT64_MAX;
	if (s->dones) {
		assert_int_equal(s->done[0].status, IBV_WC_RETRY_EXC_ERR);
		assert_int_equal(s->done[0].reason, verdict);
	}
	stand_free(s);
	return waited;
}

/*
 * By the clock, not by the sum of the pauses. All tries, but no more than 1.5 s where nothing but a
 * command could help; a time-out of 0 is for ever.
 */
static void how_long_it_waits(void **state)
{
	static const struct {
		enum vb_reason told, verdict;
		bool in_vain;
	} rows[] = {
		{VB_REASON_DROP_STATE, VB_REASON_PEER_NOT_READY, true},
		{VB_REASON_DROP_QPN, VB_REASON_PEER_NO_QP, true},
		{VB_REASON_DROP_TYPE, VB_REASON_PEER_TYPE, true},
		{VB_REASON_DROP_NOT_YET, VB_REASON_PEER_NOT_YET, false},
		{VB_REASON_DROP_FAILED, VB_REASON_PEER_FAILED, false},
		{VB_REASON_DROP_SOURCE, VB_REASON_PEER_SOURCE, false},
		{VB_REASON_DROP_PKEY, VB_REASON_PEER_PKEY, false},
		{VB_REASON_DROP_PSN, VB_REASON_PEER_PSN, false},
		{VB_REASON_DROP_INBOX, VB_REASON_RETRY_EXCEEDED, false},
		{(enum vb_reason)0xfffff, VB_REASON_RETRY_EXCEEDED, false},
	};
	uint64_t all = 6 * vb_retry_ack_ns(18);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum vb_reason told = rows[i].told;
		enum vb_reason verdict = rows[i].verdict;

		assert_true(patience(0, 7, told, 0, verdict) == UINT64_MAX);
		assert_true(patience(1, 0, told, 0, verdict) == vb_retry_ack_ns(1));
		assert_true(patience(14, 7, told, 0, verdict) == 8 * vb_retry_ack_ns(14));
		assert_true(patience(18, 5, told, 0, verdict) ==
			    (rows[i].in_vain ? VB_IN_VAIN_NS : all));
		/* A crowded machine: each answer is 30 ms late, and that counts. */
		assert_in_range(patience(18, 5, told, 30000000, verdict), VB_IN_VAIN_NS,
				rows[i].in_vain ? VB_IN_VAIN_NS + 50000000 : all + 50000000);
	}
}

/*
 * What was told last decides: a peer that was brought back to INIT for good is not waited for like
 * one that may come.
 */
static void the_last_word_counts(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	s->qp.timeout = 18;
	s->qp.retry_cnt = 5;
	stand_request(s, IBV_WR_SEND, 10);
	while (s->now_ns < 2000000000) {
		dropped_because(s, 100, VB_REASON_DROP_NOT_YET);
		stand_clear(s);
		stand_expire(s);
	}
	assert_int_equal(s->dones, 0);
	dropped(s, 100);
	assert_int_equal(s->done[0].reason, VB_REASON_PEER_NOT_READY);
	stand_free(s);
}

/*
 * A peer that has no receive is there. How long it was not, and how long it has none, is nothing to
 * a drop that comes later.
 */
static void a_receiver_in_between(void **state)
{
	struct stand *s = stand_new(true);
	uint64_t all = 6 * vb_retry_ack_ns(18);
	uint64_t since;

	(void)state;
	s->qp.timeout = 18;
	s->qp.retry_cnt = 5;
	s->qp.rnr_retry = 7;
	stand_request(s, IBV_WR_SEND, 10);
	dropped_because(s, 100, VB_REASON_DROP_NOT_YET);
	stand_expire(s);
	while (s->now_ns < 2 * all) {
		stand_clear(s);
		stand_ack(s, 100, VB_AETH_RNR | 31);
		stand_expire(s);
		assert_int_equal(s->sents, 1);
	}
	since = s->now_ns;
	for (int i = 0; i < 2000 && !s->dones; i++) {
		stand_clear(s);
		dropped_because(s, 100, VB_REASON_DROP_FAILED);
		if (!s->dones)
			stand_expire(s);
	}
	assert_int_equal(s->done[0].status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(s->done[0].reason, VB_REASON_PEER_FAILED);
	assert_true(s->now_ns == since + all);
	stand_free(s);
}

/*
 * The peer asks for a PSN that was never sent, or says that ours cannot be: both numbers are kept.
 */
static void another_psn(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	stand_request(s, IBV_WR_SEND, 10);
	stand_request(s, IBV_WR_SEND, 10);
	stand_ack(s, 77, VB_AETH_NAK_SEQUENCE);
	assert_int_equal(s->qp.req.peer_psn, 77);
	assert_true(s->timer_ns == 50000); /* not after half a second */
	while (!s->dones) {
		stand_clear(s);
		stand_expire(s);
		assert_int_equal(s->sents, 1);
		dropped_because(s, 101,
				VB_REASON_DROP_PSN); /* of another than the oldest: nothing */
		assert_true(s->timer_ns == 500000000);
		dropped_because(s, 100, VB_REASON_DROP_PSN);
	}
	assert_true(s->now_ns == 4 * vb_retry_ack_ns(14));
	assert_int_equal(s->done[0].status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(s->done[0].reason, VB_REASON_PEER_PSN);
	assert_int_equal(s->qp.req.peer_psn, 333);
	assert_int_equal(s->done[1].status, IBV_WC_WR_FLUSH_ERR);
	stand_free(s);
}

/*
 * Where packets get lost and late, the tries are as for silence, and the reason is told if nothing
 * ever fitted.
 */
static void another_psn_on_a_lossy_link(void **state)
{
	static const uint32_t expected[] = {77, 400};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct stand *s = stand_new(false);

		stand_request(s, IBV_WR_SEND, 10);
		stand_ack(s, expected[i], VB_AETH_NAK_SEQUENCE);
		assert_true(s->timer_ns == vb_retry_ack_ns(14));
		for (int n = 0; n < 5; n++)
			stand_expire(s);
		assert_int_equal(s->done[0].status, IBV_WC_RETRY_EXC_ERR);
		assert_int_equal(s->done[0].reason, VB_REASON_PEER_PSN);
		assert_int_equal(s->qp.req.peer_psn, expected[i]);
		stand_free(s);
	}
	struct stand *s = stand_new(false);

	stand_request(s, IBV_WR_SEND, 10);
	stand_ack(s, 100, VB_AETH_ACK);
	stand_request(s, IBV_WR_SEND, 10);
	stand_ack(s, 100, VB_AETH_NAK_SEQUENCE); /* late */
	for (int n = 0; n < 6 && !s->dones; n++)
		stand_expire(s);
	while (s->dones < 2)
		stand_expire(s);
	assert_int_equal(s->done[1].reason, VB_REASON_RETRY_EXCEEDED);
	stand_free(s);
}

static void ready_at_last(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	for (int i = 0; i < 4; i++)
		stand_request(s, IBV_WR_SEND, 10);
	dropped(s, 100);
	stand_clear(s);
	stand_expire(s);
	assert_int_equal(s->sents, 1);
	stand_ack(s, 100, VB_AETH_ACK);
	assert_int_equal(s->sents, 4);
	assert_int_equal(s->dones, 1);
	dropped(s, 101); /* a later one waits from the beginning */
	assert_true(s->timer_ns == 50000);
	dropped(s, 99); /* of what is long done, or was never sent: nothing */
	dropped(s, 900);
	stand_free(s);
}

static void nobody_there(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	vb_tqp_unreachable(&s->qp, VB_REASON_DROP_UNREACHABLE); /* nothing to send: nothing to do */
	assert_int_equal(s->timers, 0);
	s->room = 0;
	assert_true(stand_request(s, IBV_WR_SEND, 10));
	s->qp.timeout = 1;
	vb_tqp_unreachable(&s->qp, VB_REASON_DROP_UNREACHABLE);
	assert_true(s->timer_ns ==
		    4 * vb_retry_ack_ns(1)); /* all tries are over sooner than 50 us */
	assert_false(vb_tqp_run(&s->qp));    /* waits, and not for the link */
	stand_expire(s);
	vb_tqp_unreachable(&s->qp, VB_REASON_DROP_UNREACHABLE);
	assert_int_equal(s->done[0].status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(s->done[0].reason, VB_REASON_DROP_UNREACHABLE);
	stand_free(s);
}

static void a_dead_peer(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	stand_recv(s, 100);
	stand_request(s, IBV_WR_SEND, 10);
	stand_request(s, IBV_WR_SEND, 10);
	vb_tqp_peer_dead(&s->qp);
	assert_int_equal(s->done[0].status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(s->done[0].reason, VB_REASON_PEER_DEAD);
	assert_int_equal(s->done[1].status, IBV_WC_WR_FLUSH_ERR);
	stand_free(s);

	s = stand_new(true);
	vb_tqp_peer_dead(&s->qp); /* nothing under way: the state stays, receives stay */
	assert_int_equal(s->qp.state, IBV_QPS_RTS);
	assert_int_equal(s->recv_dones, 0);
	stand_request(s, IBV_WR_RDMA_WRITE, 10);
	assert_int_equal(s->sents, 0);
	assert_int_equal(s->done[0].status, IBV_WC_RETRY_EXC_ERR);
	stand_free(s);
}

/*
 * On a reliable link an answer can only go down with its queue pair; it is asked for again,
 * quietly, for ever.
 */
static void a_lost_answer(void **state)
{
	struct stand *s = stand_new(true);

	(void)state;
	stand_request(s, IBV_WR_SEND, 3000);
	stand_request(s, IBV_WR_SEND, 10);
	assert_true(s->timer_ns == 500000000);
	stand_expire(s);
	assert_int_equal(s->sents, 2);
	for (int i = 0; i < 50; i++) {
		stand_clear(s);
		stand_expire(s);
		assert_int_equal(s->sents, 1);
		assert_int_equal(stand_last(s)->psn, 100);
		assert_int_equal(stand_last(s)->segments, 1);
	}
	assert_int_equal(s->dones, 0);
	stand_ack(s, 103, VB_AETH_ACK);
	assert_int_equal(s->dones, 2);
	stand_expire(s);
	assert_true(s->timer_ns == 0);
	stand_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rnr_timers),
		cmocka_unit_test(ack_timeouts),
		cmocka_unit_test(tries_run_out),
		cmocka_unit_test(no_tries),
		cmocka_unit_test(timeout_0_waits_for_ever),
		cmocka_unit_test(progress_refills),
		cmocka_unit_test(a_lazy_timer),
		cmocka_unit_test(everything_from_the_gap_on),
		cmocka_unit_test(a_late_ack),
		cmocka_unit_test(patience_with_receivers),
		cmocka_unit_test(rnr_retry_0_and_7),
		cmocka_unit_test(a_peer_that_is_not_ready),
		cmocka_unit_test(how_long_it_waits),
		cmocka_unit_test(the_last_word_counts),
		cmocka_unit_test(a_receiver_in_between),
		cmocka_unit_test(another_psn),
		cmocka_unit_test(another_psn_on_a_lossy_link),
		cmocka_unit_test(ready_at_last),
		cmocka_unit_test(nobody_there),
		cmocka_unit_test(a_dead_peer),
		cmocka_unit_test(a_lost_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

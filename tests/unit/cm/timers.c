/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* When messages are repeated, for how long, and what happens then. */
#include <errno.h>
#include <string.h>

#include "stand.h"

/* The times of Linux: 16 tries in distances of 6.144 s and 4.096 s. */
#define REQUEST_MS 98304u
#define REPLY_MS   65536u

static void check_silence(uint8_t state, bool active, uint16_t message, uint64_t whole_ms,
			  int event, uint8_t next)
{
	struct stand *s = stand_new();
	struct vb_cm_conn *conn = stand_in(s, state, active);
	uint64_t start = s->now;
	unsigned int tries;

	assert_non_null(conn);
	stand_pass(s, whole_ms * MSEC - 1);
	tries = s->sents;
	/* Five at distances of a second, the others at those of Linux. */
	assert_int_equal(tries, 5 + (whole_ms - 5000 - 1) / (whole_ms / 16));
	for (unsigned int i = 0; i < tries; i++) {
		assert_int_equal(s->sent[i].attribute, message);
		if (i < 5)
			assert_int_equal(s->sent_at[i] - start, (i + 1) * SECOND);
		else
			assert_int_equal(s->sent_at[i] - s->sent_at[i - 1], whole_ms / 16 * MSEC);
	}
	assert_int_equal(s->events, 0);
	stand_pass(s, 1);
	assert_int_equal(s->events, 1);
	assert_int_equal(s->event[0].event.type, event);
	assert_int_equal(s->event[0].event.status, -ETIMEDOUT);
	assert_int_equal(conn->state, next);
	assert_int_equal(stand_dropped(s, VB_REASON_CM_TIMEOUT), 1);
	/* Nothing more, but for TIMEWAIT_EXIT. */
	stand_pass(s, 1000 * SECOND);
	assert_int_equal(conn->state, VB_CM_IDLE);
	assert_int_equal(s->events, 1 + (next == VB_CM_TIMEWAIT));
	assert_true(s->sents <= tries + 1);
	stand_release(s, conn);
	stand_free(s);
}

static void silence_is_reported_after_the_time_of_linux(void **state)
{
	(void)state;
	check_silence(VB_CM_REQ_SENT, true, VB_CM_REQ, REQUEST_MS, VB_CM_EVENT_UNREACHABLE,
		      VB_CM_REJ_SENT);
	check_silence(VB_CM_REP_SENT, false, VB_CM_REP, REPLY_MS, VB_CM_EVENT_UNREACHABLE,
		      VB_CM_REJ_SENT);
	check_silence(VB_CM_DREQ_SENT, true, VB_CM_DREQ, REQUEST_MS, VB_CM_EVENT_DISCONNECTED,
		      VB_CM_TIMEWAIT);
	check_silence(VB_CM_DREQ_SENT, false, VB_CM_DREQ, REPLY_MS, VB_CM_EVENT_DISCONNECTED,
		      VB_CM_TIMEWAIT);
	check_silence(VB_CM_SIDR_REQ_SENT, true, VB_CM_SIDR_REQ, REPLY_MS, VB_CM_EVENT_UNREACHABLE,
		      VB_CM_IDLE);
}

/* Who gives up tells the peer: REJ with reason 4 and its GUID. */
static void giving_up_sends_reason_4(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_conn *conn = stand_in(s, VB_CM_REQ_SENT, true);
	const uint8_t guid[8] = {2, 0, 0, 0, 0, 0, 0, 1};
	struct vb_cm_message rep;

	(void)state;
	stand_pass(s, REQUEST_MS * MSEC);
	assert_int_equal(stand_last(s)->attribute, VB_CM_REJ);
	assert_int_equal(stand_last(s)->rej.reason, VB_CM_REJ_TIMEOUT);
	assert_int_equal(stand_last(s)->rej.info_length, 8);
	assert_memory_equal(stand_last(s)->rej.info, guid, 8);
	assert_int_equal(stand_last(s)->local_id, conn->local_id);
	assert_int_equal(stand_last(s)->remote_id, 0);
	/* A REP that comes too late gets the same answer. */
	stand_clear(s);
	rep = stand_message(s, conn, VB_CM_REP);
	stand_arrive(s, &rep);
	assert_int_equal(stand_last(s)->rej.reason, VB_CM_REJ_TIMEOUT);
	stand_free(s);
}

static void an_mra_stretches_the_try(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_conn *conn = stand_in(s, VB_CM_REQ_SENT, true);
	struct vb_cm_message mra = stand_message(s, conn, VB_CM_MRA);
	const uint64_t asked = (4096ull << 22) + 2 * SECOND;

	(void)state;
	stand_pass(s, 1500 * MSEC);
	assert_int_equal(s->sents, 1);
	stand_arrive(s, &mra);
	stand_clear(s);
	stand_pass(s, asked - 1);
	assert_int_equal(s->sents, 0);
	stand_pass(s, 1);
	assert_int_equal(s->sents, 1);
	/* The whole time begins anew. */
	stand_pass(s, REQUEST_MS * MSEC - 1);
	assert_int_equal(s->events, 0);
	stand_pass(s, 1);
	assert_int_equal(s->events, 1);
	stand_free(s);
}

/* Code 31 would be 2.4 hours; what Linux asks for is granted, and not for ever. */
static void an_mra_is_bounded(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_conn *conn = stand_in(s, VB_CM_REP_SENT, false);
	struct vb_cm_message mra = stand_message(s, conn, VB_CM_MRA);
	const uint64_t most = (4096ull << 24) + 2 * SECOND;
	uint64_t start = s->now;

	(void)state;
	mra.mra.service_timeout = 31;
	stand_arrive(s, &mra);
	stand_pass(s, most - 1);
	assert_int_equal(s->sents, 0);
	stand_pass(s, 1);
	assert_int_equal(s->sents, 1);
	for (unsigned int i = 0; i < 100 && !s->events; i++) {
		stand_arrive(s, &mra);
		stand_pass(s, most);
	}
	assert_int_equal(s->events, 1);
	assert_int_equal(s->event[0].event.type, VB_CM_EVENT_UNREACHABLE);
	assert_true(s->now - start <= 20 * most);
	stand_free(s);
}

/* Copies of an MRA ask for no more time, and do not count. */
static void an_mra_counts_once_for_each_try(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_conn *conn = stand_in(s, VB_CM_REQ_SENT, true);
	struct vb_cm_message mra = stand_message(s, conn, VB_CM_MRA);
	const uint64_t asked = (4096ull << 22) + 2 * SECOND;

	(void)state;
	for (unsigned int i = 0; i < 100; i++) {
		stand_arrive(s, &mra);
		stand_pass(s, 100 * MSEC);
	}
	assert_int_equal(stand_dropped(s, VB_REASON_CM_STATE), 99);
	assert_int_equal(s->sents, 0);
	stand_pass(s, asked - 10 * SECOND);
	assert_int_equal(s->sents, 1);
	stand_arrive(s, &mra);
	stand_pass(s, asked - 1);
	assert_int_equal(s->sents, 1);
	stand_free(s);
}

/* An MRA for another message than the one that waits stretches nothing. */
static void a_wrong_mra_is_dropped(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_conn *conn = stand_in(s, VB_CM_REQ_SENT, true);
	struct vb_cm_message mra = stand_message(s, conn, VB_CM_MRA);

	(void)state;
	mra.mra.answered = VB_CM_ANSWERED_REP;
	stand_arrive(s, &mra);
	assert_int_equal(stand_dropped(s, VB_REASON_CM_STATE), 1);
	stand_pass(s, SECOND);
	assert_int_equal(s->sents, 1);
	stand_free(s);
}

static void timewait_ends_with_an_event(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_conn *conn = stand_in(s, VB_CM_TIMEWAIT, true);

	(void)state;
	stand_pass(s, 2048 * MSEC - 1);
	assert_int_equal(s->events, 0);
	stand_pass(s, 1);
	assert_int_equal(s->events, 1);
	assert_int_equal(s->event[0].event.type, VB_CM_EVENT_TIMEWAIT_EXIT);
	assert_int_equal(s->event[0].state, VB_CM_IDLE);
	assert_int_equal(s->live, 1);
	stand_release(s, conn);
	assert_int_equal(s->live, 0);
	stand_free(s);
}

static void what_is_released_reports_nothing_and_goes(void **state)
{
	struct stand *s = stand_new();

	(void)state;
	for (unsigned int of = 0; of < VB_CM_STATE_COUNT; of++) {
		for (unsigned int active = 0; active < 2; active++) {
			struct vb_cm_conn *conn = stand_in(s, of, active);

			if (!conn)
				continue;
			stand_release(s, conn);
			stand_pass(s, 200 * SECOND);
			assert_int_equal(s->events, 0);
			assert_int_equal(s->live, 0);
		}
	}
	stand_free(s);
}

static void times_are_scaled(void **state)
{
	struct stand *s = stand_scaled(10);
	struct vb_cm_conn *conn = stand_in(s, VB_CM_REQ_SENT, true);

	(void)state;
	stand_pass(s, 10 * MSEC);
	assert_int_equal(s->sents, 1);
	stand_pass(s, (REQUEST_MS / 100 - 10) * MSEC);
	assert_int_equal(s->events, 0);
	stand_pass(s, MSEC);
	assert_int_equal(s->events, 1);
	assert_int_equal(s->event[0].event.type, VB_CM_EVENT_UNREACHABLE);
	stand_release(s, conn);
	conn = stand_in(s, VB_CM_TIMEWAIT, true);
	stand_pass(s, 21 * MSEC);
	assert_int_equal(conn->state, VB_CM_IDLE);
	stand_free(s);
}

static void a_refusal_is_remembered_for_a_while(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_message m = stand_req(s);
	struct vb_cm_conn *conn;

	(void)state;
	stand_arrive(s, &m);
	conn = s->event[0].conn;
	assert_int_equal(vb_cm_reject(&s->cm, conn, VB_CM_REJ_CONSUMER, "no", 3, s->now), 0);
	stand_release(s, conn);
	stand_clear(s);
	stand_pass(s, 13 * SECOND); /* two tries of Linux */
	stand_arrive(s, &m);
	assert_int_equal(s->events, 0);
	assert_int_equal(stand_last(s)->rej.reason, VB_CM_REJ_CONSUMER);
	assert_string_equal((const char *)stand_last(s)->private_data, "no");
	stand_pass(s, 2 * SECOND);
	assert_int_equal(s->live, 0);
	stand_free(s);
}

/* Who was asked for time by an MRA tries again after that time only. */
static void a_refusal_after_an_mra_is_remembered_longer(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_message m = stand_req(s);

	(void)state;
	stand_arrive(s, &m);
	stand_arrive(s, &m);
	assert_int_equal(stand_last(s)->attribute, VB_CM_MRA);
	assert_int_equal(stand_last(s)->mra.service_timeout, 24);
	stand_release(s, s->event[0].conn);
	stand_clear(s);
	stand_pass(s, 70 * SECOND);
	stand_arrive(s, &m);
	assert_int_equal(s->events, 0);
	assert_int_equal(stand_last(s)->attribute, VB_CM_REJ);
	stand_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silence_is_reported_after_the_time_of_linux),
		cmocka_unit_test(giving_up_sends_reason_4),
		cmocka_unit_test(an_mra_stretches_the_try),
		cmocka_unit_test(an_mra_is_bounded),
		cmocka_unit_test(an_mra_counts_once_for_each_try),
		cmocka_unit_test(a_wrong_mra_is_dropped),
		cmocka_unit_test(timewait_ends_with_an_event),
		cmocka_unit_test(what_is_released_reports_nothing_and_goes),
		cmocka_unit_test(times_are_scaled),
		cmocka_unit_test(a_refusal_is_remembered_for_a_while),
		cmocka_unit_test(a_refusal_after_an_mra_is_remembered_longer),
	};

	return cmocka_run_group_tests_name("cm_timers", tests, NULL, NULL);
}

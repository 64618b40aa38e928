/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What each call does in each state: the result, the message that leaves, the next state. */
#include <errno.h>
#include <string.h>

#include "stand.h"

enum call {
	ACCEPT,
	ESTABLISH,
	REJECT,
	DISCONNECT,
	NOTIFY,
	REPLY,
	RELEASE,
	CALLS,
};

#define A    true
#define P    false
#define FREE VB_CM_STATE_COUNT /* after release: the core has given it back */

/* Calls that are not here: -EINVAL, nothing is sent, the state stays. */
static const struct row {
	uint8_t state;
	bool active;
	uint8_t call;
	int result;
	uint16_t sent;
	int detail; /* reason of REJ, status of SIDR_REP */
	int event;  /* -1: none */
	uint8_t next;
} rows[] = {
#define ROW(state, side, call, result, sent, detail, event, next) \
	{VB_CM_##state, side, call, result, sent, detail, event, VB_CM_##next},
#define VB_CM_FREE FREE
	/* clang-format off */
	ROW(IDLE, A, RELEASE, 0, 0, 0, -1, FREE)
	ROW(IDLE, P, RELEASE, 0, 0, 0, -1, FREE)
	ROW(REQ_SENT, A, RELEASE, 0, VB_CM_REJ, VB_CM_REJ_TIMEOUT, -1, REJ_SENT)
	ROW(REP_RCVD, A, ESTABLISH, 0, VB_CM_RTU, 0, -1, ESTABLISHED)
	ROW(REP_RCVD, A, REJECT, 0, VB_CM_REJ, VB_CM_REJ_CONSUMER, -1, REJ_SENT)
	ROW(REP_RCVD, A, RELEASE, 0, VB_CM_REJ, VB_CM_REJ_CONSUMER, -1, REJ_SENT)
	ROW(REQ_RCVD, P, ACCEPT, 0, VB_CM_REP, 0, -1, REP_SENT)
	ROW(REQ_RCVD, P, REJECT, 0, VB_CM_REJ, VB_CM_REJ_CONSUMER, -1, REJ_SENT)
	ROW(REQ_RCVD, P, RELEASE, 0, VB_CM_REJ, VB_CM_REJ_CONSUMER, -1, REJ_SENT)
	ROW(REP_SENT, P, NOTIFY, 0, 0, 0, VB_CM_EVENT_ESTABLISHED, ESTABLISHED)
	ROW(REP_SENT, P, REJECT, 0, VB_CM_REJ, VB_CM_REJ_CONSUMER, -1, REJ_SENT)
	ROW(REP_SENT, P, DISCONNECT, 0, 0, 0, -1, REP_SENT) /* it waits for the RTU */
	ROW(REP_SENT, P, RELEASE, 0, VB_CM_REJ, VB_CM_REJ_CONSUMER, -1, REJ_SENT)
	ROW(ESTABLISHED, A, NOTIFY, -EISCONN, 0, 0, -1, ESTABLISHED)
	ROW(ESTABLISHED, P, NOTIFY, -EISCONN, 0, 0, -1, ESTABLISHED)
	ROW(ESTABLISHED, A, DISCONNECT, 0, VB_CM_DREQ, 0, -1, DREQ_SENT)
	ROW(ESTABLISHED, P, DISCONNECT, 0, VB_CM_DREQ, 0, -1, DREQ_SENT)
	ROW(ESTABLISHED, A, RELEASE, 0, VB_CM_DREQ, 0, -1, DREQ_SENT)
	ROW(ESTABLISHED, P, RELEASE, 0, VB_CM_DREQ, 0, -1, DREQ_SENT)
	ROW(DREQ_SENT, A, DISCONNECT, 0, 0, 0, -1, DREQ_SENT)
	ROW(DREQ_SENT, P, DISCONNECT, 0, 0, 0, -1, DREQ_SENT)
	ROW(DREQ_SENT, A, RELEASE, 0, 0, 0, -1, DREQ_SENT)
	ROW(DREQ_SENT, P, RELEASE, 0, 0, 0, -1, DREQ_SENT)
	ROW(DREQ_RCVD, A, DISCONNECT, 0, VB_CM_DREP, 0, -1, TIMEWAIT)
	ROW(DREQ_RCVD, P, DISCONNECT, 0, VB_CM_DREP, 0, -1, TIMEWAIT)
	ROW(DREQ_RCVD, A, RELEASE, 0, VB_CM_DREP, 0, -1, TIMEWAIT)
	ROW(DREQ_RCVD, P, RELEASE, 0, VB_CM_DREP, 0, -1, TIMEWAIT)
	ROW(TIMEWAIT, A, DISCONNECT, 0, 0, 0, -1, TIMEWAIT)
	ROW(TIMEWAIT, P, DISCONNECT, 0, 0, 0, -1, TIMEWAIT)
	ROW(TIMEWAIT, A, RELEASE, 0, 0, 0, -1, TIMEWAIT)
	ROW(TIMEWAIT, P, RELEASE, 0, 0, 0, -1, TIMEWAIT)
	ROW(REJ_SENT, A, RELEASE, 0, 0, 0, -1, REJ_SENT)
	ROW(REJ_SENT, P, RELEASE, 0, 0, 0, -1, REJ_SENT)
	ROW(SIDR_REQ_SENT, A, RELEASE, 0, 0, 0, -1, FREE)
	ROW(SIDR_REQ_RCVD, P, REPLY, 0, VB_CM_SIDR_REP, VB_CM_SIDR_VALID, -1, SIDR_REP_SENT)
	ROW(SIDR_REQ_RCVD, P, RELEASE, 0, VB_CM_SIDR_REP, VB_CM_SIDR_REJECTED, -1, SIDR_REP_SENT)
	ROW(SIDR_REP_SENT, P, RELEASE, 0, 0, 0, -1, SIDR_REP_SENT)
	/* clang-format on */
};

static int call(struct stand *s, struct vb_cm_conn *conn, enum call what)
{
	switch (what) {
	case ACCEPT:
		return stand_accept(s, conn);
	case ESTABLISH:
		return vb_cm_establish(&s->cm, conn, s->now);
	case REJECT:
		return vb_cm_reject(&s->cm, conn, VB_CM_REJ_CONSUMER, "no", 3, s->now);
	case DISCONNECT:
		return vb_cm_disconnect(&s->cm, conn, s->now);
	case NOTIFY:
		return vb_cm_notify(&s->cm, conn, s->now);
	case REPLY:
		return stand_reply(s, conn);
	default:
		stand_release(s, conn);
		return 0;
	}
}

static void check_sent(const struct stand *s, const struct row *row)
{
	assert_int_equal(s->sents, row->sent != 0);
	if (!row->sent)
		return;
	assert_int_equal(s->sent[0].attribute, row->sent);
	if (row->sent == VB_CM_REJ)
		assert_int_equal(s->sent[0].rej.reason, row->detail);
	if (row->sent == VB_CM_SIDR_REP)
		assert_int_equal(s->sent[0].sidr_rep.status, row->detail);
}

static void try_row(const struct row *row)
{
	struct stand *s = stand_new();
	struct vb_cm_conn *conn = stand_in(s, row->state, row->active);

	assert_non_null(conn);
	assert_int_equal(call(s, conn, row->call), row->result);
	check_sent(s, row);
	assert_int_equal(s->events, row->event >= 0);
	if (s->events)
		assert_int_equal(s->event[0].event.type, row->event);
	if (row->next == FREE)
		assert_int_equal(s->live, 0);
	else
		assert_int_equal(conn->state, row->next);
	stand_free(s);
}

static struct row ordinary(unsigned int state, bool active, unsigned int what)
{
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].state == state && rows[i].active == active && rows[i].call == what)
			return rows[i];
	}
	return (struct row){(uint8_t)state, active, (uint8_t)what, -EINVAL, 0, 0, -1,
			    (uint8_t)state};
}

/* stand_in() leaves DISCONNECTED reported where it was. */
static bool was_disconnected(struct stand *s, unsigned int state, bool active)
{
	struct vb_cm_conn *conn = stand_in(s, state, active);

	return conn && conn->disconnected;
}

static void every_call_in_every_state(void **state)
{
	(void)state;
	for (unsigned int of = 0; of < VB_CM_STATE_COUNT; of++) {
		for (unsigned int active = 0; active < 2; active++) {
			struct stand *s = stand_new();
			bool exists = stand_in(s, of, active) != NULL;

			stand_free(s);
			for (unsigned int what = 0; exists && what < CALLS; what++) {
				struct row row = ordinary(of, active, what);

				print_message("%s %s call %u\n", vb_cm_state_name(of),
					      active ? "active" : "passive", what);
				try_row(&row);
			}
		}
	}
}

/* rdma_disconnect() after the end is silent. */
static void disconnect_succeeds_after_the_end(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_conn *conn = stand_in(s, VB_CM_TIMEWAIT, true);

	(void)state;
	assert_true(conn->disconnected);
	stand_pass(s, 10 * SECOND);
	assert_int_equal(conn->state, VB_CM_IDLE);
	stand_clear(s);
	assert_int_equal(vb_cm_disconnect(&s->cm, conn, s->now), 0);
	assert_int_equal(s->sents, 0);
	stand_release(s, conn);
	assert_int_equal(s->live, 0);
	assert_false(was_disconnected(s, VB_CM_REP_SENT, false));
	stand_free(s);
}

/* A disconnect in REP_SENT waits for the RTU, and is what every end is reported as. */
static void disconnect_waits_for_the_rtu(void **state)
{
	static const struct {
		uint16_t message, answer;
		uint8_t next;
	} ways[] = {
		{VB_CM_RTU, VB_CM_DREQ, VB_CM_DREQ_SENT},
		{VB_CM_MRA, VB_CM_DREQ, VB_CM_DREQ_SENT},
		{VB_CM_DREQ, VB_CM_DREP, VB_CM_TIMEWAIT},
		{VB_CM_REJ, 0, VB_CM_TIMEWAIT},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct stand *s = stand_new();
		struct vb_cm_conn *conn = stand_in(s, VB_CM_REP_SENT, false);
		struct vb_cm_message m = stand_message(s, conn, ways[i].message);

		assert_int_equal(vb_cm_disconnect(&s->cm, conn, s->now), 0);
		stand_arrive(s, &m);
		assert_int_equal(conn->state, ways[i].next);
		assert_int_equal(s->sents, ways[i].answer != 0);
		if (ways[i].answer)
			assert_int_equal(stand_last(s)->attribute, ways[i].answer);
		if (ways[i].next == VB_CM_DREQ_SENT) {
			assert_int_equal(s->events, 0);
			m = stand_message(s, conn, VB_CM_DREP);
			stand_arrive(s, &m);
		}
		assert_int_equal(s->events, 1);
		assert_int_equal(s->event[0].event.type, VB_CM_EVENT_DISCONNECTED);
		assert_int_equal(s->event[0].event.status, 0);
		stand_free(s);
	}
}

/* An RTU that comes after the end of what was never established meets a REJ. */
static void a_late_rtu_is_rejected(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_conn *conn = stand_in(s, VB_CM_REP_SENT, false);
	struct vb_cm_message m = stand_message(s, conn, VB_CM_REJ);

	(void)state;
	stand_arrive(s, &m);
	assert_int_equal(conn->state, VB_CM_TIMEWAIT);
	m = stand_message(s, conn, VB_CM_RTU);
	stand_arrive(s, &m);
	assert_int_equal(stand_last(s)->rej.reason, VB_CM_REJ_CONSUMER);
	assert_int_equal(stand_last(s)->rej.answered, VB_CM_ANSWERED_OTHER);
	assert_int_equal(stand_last(s)->local_id, conn->local_id);
	stand_free(s);
}

static void disconnect_of_a_silent_peer_ends(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_conn *conn = stand_in(s, VB_CM_REP_SENT, false);
	struct vb_cm_message m = stand_req(s);

	(void)state;
	assert_int_equal(vb_cm_disconnect(&s->cm, conn, s->now), 0);
	stand_pass(s, 65536 * MSEC);
	assert_int_equal(s->event[0].event.type, VB_CM_EVENT_DISCONNECTED);
	assert_int_equal(s->event[0].event.status, -ETIMEDOUT);
	assert_int_equal(stand_last(s)->rej.reason, VB_CM_REJ_TIMEOUT);
	/* The peer may still repeat its REQ, which is no new one. */
	stand_clear(s);
	stand_pass(s, 13 * SECOND);
	m.local_id = conn->remote_id;
	m.req.qpn = conn->remote_qpn;
	stand_arrive(s, &m);
	assert_int_equal(s->events, 0);
	assert_int_equal(stand_last(s)->rej.reason, VB_CM_REJ_STALE);
	stand_free(s);
}

/* After REP nothing of the peer may come that the REJ answers again: it is repeated unasked. */
static void a_rejection_after_rep_is_repeated(void **state)
{
	struct stand *s = stand_new();

	(void)state;
	stand_release(s, stand_in(s, VB_CM_REP_SENT, false));
	assert_int_equal(s->sents, 1);
	stand_pass(s, 20 * SECOND);
	assert_int_equal(stand_count(s, VB_CM_REJ), 6);
	assert_int_equal(s->live, 0);
	stand_clear(s);
	stand_release(s, stand_in(s, VB_CM_REQ_RCVD, false));
	stand_pass(s, 20 * SECOND);
	assert_int_equal(s->sents, 1);
	stand_free(s);
}

static void too_much_private_data_is_refused(void **state)
{
	static const uint8_t data[256];
	struct vb_cm_connect connect = {.private_data = data, .private_length = 57};
	struct vb_cm_sidr_request resolve = {.private_data = data, .private_length = 181};
	struct vb_cm_accept accept = {.private_data = data, .private_length = 197};
	struct vb_cm_sidr_reply reply = {.private_data = data, .private_length = 137};
	struct stand *s = stand_new();
	struct vb_cm_conn *conn;

	(void)state;
	connect.path = resolve.path = s->path;
	assert_int_equal(vb_cm_connect(&s->cm, &connect, s->now, &conn), -EINVAL);
	connect.service = VB_CM_UD;
	connect.private_length = 0;
	assert_int_equal(vb_cm_connect(&s->cm, &connect, s->now, &conn), -EINVAL);
	assert_int_equal(vb_cm_sidr_request(&s->cm, &resolve, s->now, &conn), -EINVAL);
	conn = stand_in(s, VB_CM_REQ_RCVD, false);
	assert_int_equal(vb_cm_accept(&s->cm, conn, &accept, s->now), -EINVAL);
	assert_int_equal(vb_cm_reject(&s->cm, conn, VB_CM_REJ_CONSUMER, data, 149, s->now),
			 -EINVAL);
	assert_int_equal(vb_cm_reject(&s->cm, conn, VB_CM_REJ_CONSUMER, data, 148, s->now), 0);
	conn = stand_in(s, VB_CM_SIDR_REQ_RCVD, false);
	assert_int_equal(vb_cm_sidr_reply(&s->cm, conn, &reply, s->now), -EINVAL);
	assert_int_equal(s->sents, 0);
	stand_free(s);
}

/* vb_cm_end() says a last word for each connection, once, and frees all. */
static void the_end_says_the_last_word(void **state)
{
	struct stand *s = stand_new();

	(void)state;
	stand_in(s, VB_CM_ESTABLISHED, true);
	stand_in(s, VB_CM_REQ_RCVD, false);
	stand_in(s, VB_CM_SIDR_REQ_RCVD, false);
	stand_release(s, stand_in(s, VB_CM_ESTABLISHED, false));
	stand_clear(s);
	vb_cm_end(&s->cm, s->now);
	assert_int_equal(s->live, 0);
	assert_int_equal(s->sents, 3);
	assert_int_equal(stand_count(s, VB_CM_DREQ), 1);
	assert_int_equal(stand_count(s, VB_CM_REJ), 1);
	assert_int_equal(stand_count(s, VB_CM_SIDR_REP), 1);
	assert_int_equal(s->events, 0);
	stand_free(s);
}

/* What release would send first is sent, for each state, and nothing changes. */
static void last_words_change_nothing(void **state)
{
	(void)state;
	for (unsigned int of = 0; of < VB_CM_STATE_COUNT; of++) {
		for (unsigned int active = 0; active < 2; active++) {
			struct stand *s = stand_new();
			struct vb_cm_conn *conn = stand_in(s, of, active);
			struct vb_cm_message said;
			struct vb_cm_conn before;

			if (conn) {
				before = *conn;
				vb_cm_last_words(&s->cm);
				assert_memory_equal(&before, conn, sizeof(before));
				said = s->sent[0];
				if (of != VB_CM_DREQ_SENT) { /* release leaves that to the tries */
					unsigned int sents = s->sents;

					stand_clear(s);
					stand_release(s, conn);
					assert_int_equal(s->sents, sents);
					if (sents)
						assert_memory_equal(&said, &s->sent[0],
								    sizeof(said));
				} else {
					assert_int_equal(said.attribute, VB_CM_DREQ);
				}
			}
			stand_free(s);
		}
	}
}

static void a_lost_device_is_not_used(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_conn *gone = stand_in(s, VB_CM_ESTABLISHED, true);
	struct vb_cm_conn *stays;

	(void)state;
	stand_release(s, stand_in(s, VB_CM_ESTABLISHED, true));
	stand_clear(s);
	s->path.ifindex = 8;
	stays = stand_in(s, VB_CM_ESTABLISHED, true);
	vb_cm_device_lost(&s->cm, STAND_IFINDEX);
	assert_int_equal(s->live, 2);
	assert_int_equal(gone->state, VB_CM_IDLE);
	assert_int_equal(stays->state, VB_CM_ESTABLISHED);
	assert_int_equal(s->sents + s->events, 0);
	stand_release(s, gone);
	assert_int_equal(s->live, 1);
	stand_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_in_every_state),
		cmocka_unit_test(disconnect_succeeds_after_the_end),
		cmocka_unit_test(disconnect_waits_for_the_rtu),
		cmocka_unit_test(a_late_rtu_is_rejected),
		cmocka_unit_test(disconnect_of_a_silent_peer_ends),
		cmocka_unit_test(a_rejection_after_rep_is_repeated),
		cmocka_unit_test(too_much_private_data_is_refused),
		cmocka_unit_test(the_end_says_the_last_word),
		cmocka_unit_test(last_words_change_nothing),
		cmocka_unit_test(a_lost_device_is_not_used),
	};

	return cmocka_run_group_tests_name("cm_calls", tests, NULL, NULL);
}

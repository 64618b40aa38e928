/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A process of this host that was killed: what its connections become here in each state; and which
 * connections are published, so that the peers of this process can be told if it is killed.
 */
#include <string.h>

#include "stand.h"

#define NOTHING  (-1)
#define ID_BITS  18u
#define PEER_IDS (STAND_PEER_ID >> ID_BITS << ID_BITS)

static bool near_answer;

static bool is_near(const uint8_t gid[16])
{
	(void)gid;
	return near_answer;
}

static const struct row {
	enum vb_cm_state state;
	bool active;
	int event, status;
	enum vb_cm_state next;
} rows[] = {
	{VB_CM_IDLE, true, NOTHING, 0, VB_CM_IDLE},
	{VB_CM_REQ_SENT, true, NOTHING, 0, VB_CM_REQ_SENT},
	{VB_CM_REP_RCVD, true, VB_CM_EVENT_REJECTED, VB_CM_REJ_CONSUMER, VB_CM_IDLE},
	{VB_CM_REQ_RCVD, false, VB_CM_EVENT_REJECTED, VB_CM_REJ_TIMEOUT, VB_CM_TIMEWAIT},
	{VB_CM_REP_SENT, false, VB_CM_EVENT_REJECTED, VB_CM_REJ_CONSUMER, VB_CM_TIMEWAIT},
	{VB_CM_ESTABLISHED, true, VB_CM_EVENT_DISCONNECTED, 0, VB_CM_TIMEWAIT},
	{VB_CM_ESTABLISHED, false, VB_CM_EVENT_DISCONNECTED, 0, VB_CM_TIMEWAIT},
	{VB_CM_DREQ_SENT, true, VB_CM_EVENT_DISCONNECTED, 0, VB_CM_TIMEWAIT},
	{VB_CM_DREQ_SENT, false, VB_CM_EVENT_DISCONNECTED, 0, VB_CM_TIMEWAIT},
	{VB_CM_DREQ_RCVD, true, NOTHING, 0, VB_CM_DREQ_RCVD},
	{VB_CM_DREQ_RCVD, false, NOTHING, 0, VB_CM_DREQ_RCVD},
	{VB_CM_TIMEWAIT, true, NOTHING, 0, VB_CM_TIMEWAIT},
	{VB_CM_REJ_SENT, false, NOTHING, 0, VB_CM_REJ_SENT},
	{VB_CM_SIDR_REQ_SENT, true, NOTHING, 0, VB_CM_SIDR_REQ_SENT},
	{VB_CM_SIDR_REQ_RCVD, false, NOTHING, 0, VB_CM_SIDR_REQ_RCVD},
	{VB_CM_SIDR_REP_SENT, false, NOTHING, 0, VB_CM_SIDR_REP_SENT},
};

static void check_row(const struct row *row)
{
	struct stand *s = stand_new();
	struct vb_cm_conn *conn = stand_in(s, row->state, row->active);

	assert_non_null(conn);
	near_answer = true;
	vb_cm_peer_ended(&s->cm, PEER_IDS, ID_BITS, is_near, s->now);
	assert_int_equal(s->sents, 0);
	assert_int_equal(conn->state, row->next);
	assert_int_equal(s->events, row->event != NOTHING);
	if (row->event != NOTHING) {
		assert_int_equal(stand_event(s)->event.type, row->event);
		assert_int_equal(stand_event(s)->event.status, row->status);
		assert_int_equal(stand_event(s)->event.private_length,
				 row->event == VB_CM_EVENT_REJECTED ? VB_CM_PRIVATE_REJ : 0);
	}
	stand_free(s);
}

static void each_state_ends(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_row(&rows[i]);
}

/* Another block, and the same numbers on another host. */
static void others_go_on(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_conn *conn = stand_in(s, VB_CM_ESTABLISHED, true);

	(void)state;
	near_answer = true;
	vb_cm_peer_ended(&s->cm, PEER_IDS + (1u << ID_BITS), ID_BITS, is_near, s->now);
	near_answer = false;
	vb_cm_peer_ended(&s->cm, PEER_IDS, ID_BITS, is_near, s->now);
	assert_int_equal(conn->state, VB_CM_ESTABLISHED);
	assert_int_equal(s->events, 0);
	stand_free(s);
}

/* Released connections have nobody to tell, and go. */
static void released_ones_are_freed(void **state)
{
	struct stand *s = stand_new();

	(void)state;
	for (int i = 0; i < 3; i++)
		stand_release(s, stand_in(s, VB_CM_ESTABLISHED, i & 1));
	near_answer = true;
	stand_clear(s);
	vb_cm_peer_ended(&s->cm, PEER_IDS, ID_BITS, is_near, s->now);
	stand_pass(s, 3 * SECOND);
	assert_int_equal(s->live, 0);
	assert_int_equal(s->events, 0);
	stand_free(s);
}

/* Who has asked for a minute and was killed is not waited for: the request is sent again at once. */
static void an_asker_is_not_waited_for(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_conn *conn = stand_in(s, VB_CM_REQ_SENT, true);
	struct vb_cm_message m = stand_message(s, conn, VB_CM_MRA);

	(void)state;
	m.mra.answered = VB_CM_ANSWERED_REQ;
	m.mra.service_timeout = 24;
	m.local_id = STAND_PEER_ID;
	stand_arrive(s, &m);
	stand_pass(s, 10 * SECOND);
	assert_int_equal(s->sents, 0);
	near_answer = true;
	vb_cm_peer_ended(&s->cm, PEER_IDS, ID_BITS, is_near, s->now);
	stand_pass(s, MSEC);
	assert_int_equal(stand_count(s, VB_CM_REQ), 1);
	stand_free(s);
}

/* The process that asked was killed, and another one has its place: REP is refused, not dropped. */
static void a_reply_to_nobody_is_rejected(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_message m = {
		.attribute = VB_CM_REP, .local_id = STAND_PEER_ID, .remote_id = STAND_BASE + 77};

	(void)state;
	stand_arrive(s, &m);
	assert_int_equal(s->sents, 1);
	assert_int_equal(stand_last(s)->attribute, VB_CM_REJ);
	assert_int_equal(stand_last(s)->rej.reason, VB_CM_REJ_INVALID_COMM_ID);
	assert_int_equal(stand_last(s)->rej.answered, VB_CM_ANSWERED_REP);
	assert_int_equal(stand_last(s)->remote_id, STAND_PEER_ID);
	assert_int_equal(stand_last(s)->local_id, STAND_BASE + 77);
	stand_free(s);
}

/* Published is what the peer can have as established, with the numbers that a DREQ needs. */
static void connections_are_published(void **state)
{
	(void)state;
	for (enum vb_cm_state of = 0; of < VB_CM_STATE_COUNT; of++) {
		bool wanted = of == VB_CM_REP_SENT || of == VB_CM_ESTABLISHED ||
			      of == VB_CM_DREQ_SENT || of == VB_CM_DREQ_RCVD;

		for (int active = 0; active < 2; active++) {
			struct stand *s = stand_new();
			struct vb_cm_conn *conn = stand_in(s, of, active);

			assert_int_equal(s->published, conn && wanted);
			if (conn && wanted)
				assert_true(conn->place && conn->remote_id && conn->remote_qpn);
			stand_free(s);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_state_ends),
		cmocka_unit_test(others_go_on),
		cmocka_unit_test(released_ones_are_freed),
		cmocka_unit_test(an_asker_is_not_waited_for),
		cmocka_unit_test(a_reply_to_nobody_is_rejected),
		cmocka_unit_test(connections_are_published),
	};

	return cmocka_run_group_tests_name("cm_peer_ended", tests, NULL, NULL);
}

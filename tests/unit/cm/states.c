/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What each message does in each state: the answer, the event, the next state. A row that is missing
 * fails the test, and so does one that is there twice.
 */
#include <errno.h>
#include <string.h>

#include "stand.h"

#define NOTHING (-1)
#define A       true
#define P       false

static const struct row {
	uint8_t state;
	bool active;
	uint16_t message;
	uint16_t answer; /* attribute; 0: none */
	int detail;      /* reason of a REJ, what an MRA answers, status of a SIDR_REP */
	int event;
	int status;
	uint8_t next;
} rows[] = {
#define ROW(state, side, message, answer, detail, event, status, next) \
	{VB_CM_##state, side, VB_CM_##message, answer, detail, event, status, VB_CM_##next},
#define DROPS(state, side, message) ROW(state, side, message, 0, 0, NOTHING, 0, state)
#define NEW(state, side)                                           \
	ROW(state, side, REQ, 0, 0, VB_CM_EVENT_REQUEST, 0, state) \
	ROW(state, side, SIDR_REQ, 0, 0, VB_CM_EVENT_SIDR_REQUEST, 0, state)
/* REQ of the peer with the numbers that the connection has already, and another one of SIDR. */
#define STALE(state, side, next)                                            \
	ROW(state, side, REQ, VB_CM_REJ, VB_CM_REJ_STALE, NOTHING, 0, next) \
	ROW(state, side, SIDR_REQ, 0, 0, VB_CM_EVENT_SIDR_REQUEST, 0, state)
#include "states.inc"
};

/* The REQ that began the connection, or one with its numbers where this side was the active one. */
static struct vb_cm_message request_again(struct stand *s, const struct vb_cm_conn *conn)
{
	struct vb_cm_message m = stand_req(s);

	if (!conn->remote_id || conn->service == VB_CM_UD)
		return m;
	m.local_id = conn->remote_id;
	m.req.qpn = conn->remote_qpn;
	return m;
}

static struct vb_cm_message resolution_again(struct stand *s, const struct vb_cm_conn *conn)
{
	struct vb_cm_message m = stand_sidr_req(s);

	if (conn->service == VB_CM_UD && !conn->active)
		m.local_id = conn->remote_id;
	return m;
}

static void check_answer(const struct stand *s, const struct row *row)
{
	if (!row->answer) {
		assert_int_equal(s->sents, 0);
		return;
	}
	assert_true(s->sents >= 1);
	assert_int_equal(s->sent[0].attribute, row->answer);
	if (row->answer == VB_CM_REJ)
		assert_int_equal(s->sent[0].rej.reason, row->detail);
	if (row->answer == VB_CM_MRA)
		assert_int_equal(s->sent[0].mra.answered, row->detail);
	if (row->answer == VB_CM_SIDR_REP)
		assert_int_equal(s->sent[0].sidr_rep.status, row->detail);
	/*
	 * The connection that the REQ shows to be over is ended, too; and what the peer asks about
	 * is sent again.
	 */
	assert_int_equal(s->sents,
			 1 + ((row->next == VB_CM_DREQ_SENT && row->state != row->next) ||
			      (row->message == VB_CM_DREQ && (row->state == VB_CM_REQ_SENT ||
							      row->state == VB_CM_SIDR_REQ_SENT))));
}

static void try_row(const struct row *row)
{
	struct stand *s = stand_new();
	struct vb_cm_conn *conn = stand_in(s, row->state, row->active);
	struct vb_cm_message m;

	assert_non_null(conn);
	if (row->message == VB_CM_REQ)
		m = request_again(s, conn);
	else if (row->message == VB_CM_SIDR_REQ)
		m = resolution_again(s, conn);
	else
		m = stand_message(s, conn, row->message);
	stand_arrive(s, &m);
	check_answer(s, row);
	assert_int_equal(s->events, row->event != NOTHING);
	if (s->events) {
		assert_int_equal(s->event[0].event.type, row->event);
		assert_int_equal(s->event[0].event.status, row->status);
	}
	assert_int_equal(conn->state, row->next);
	/* What changes nothing is counted. */
	if (!row->answer && row->event == NOTHING && row->state == row->next &&
	    row->message != VB_CM_MRA)
		assert_int_equal(s->drops, 1);
	stand_release(s, conn);
	stand_free(s);
}

static void every_message_in_every_state(void **state)
{
	static unsigned int seen[VB_CM_STATE_COUNT][2][VB_CM_SIDR_REP + 1];

	(void)state;
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		print_message("%s %s 0x%x\n", vb_cm_state_name(rows[i].state),
			      rows[i].active ? "active" : "passive", rows[i].message);
		try_row(&rows[i]);
		seen[rows[i].state][rows[i].active][rows[i].message]++;
	}
	for (unsigned int of = 0; of < VB_CM_STATE_COUNT; of++) {
		for (unsigned int active = 0; active < 2; active++) {
			struct stand *s = stand_new();
			bool exists = stand_in(s, of, active) != NULL;

			for (unsigned int m = VB_CM_REQ; m <= VB_CM_SIDR_REP; m++)
				assert_int_equal(seen[of][active][m], exists);
			stand_free(s);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_message_in_every_state),
	};

	return cmocka_run_group_tests_name("cm_states", tests, NULL, NULL);
}

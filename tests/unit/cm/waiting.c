/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests that nobody goes on with: how many of them are kept, for how long, and who is let in
 * beside them.
 */
#include <errno.h>
#include <string.h>

#include "cm/core.h"
#include "stand.h"

enum { FLOOD = 400, UNKNOWN_MOST = VB_CM_WAIT_UNKNOWN + VB_CM_WAIT_UNKNOWN / 4 + 1 };

static struct vb_cm_path path_from(const struct stand *s, unsigned int peer)
{
	struct vb_cm_path path = s->path;

	stand_v4(path.dgid, (uint8_t)peer);
	path.dgid[14] = (uint8_t)(peer >> 8);
	return path;
}

static struct vb_cm_message request_of(struct stand *s, const struct vb_cm_path *path)
{
	struct vb_cm_message m = stand_req(s);

	memcpy(m.req.primary.local_gid, path->dgid, 16);
	stand_source(&m, path->dgid);
	return m;
}

/* The program accepts every request at once. True: there was one. */
static bool arrives(struct stand *s, const struct vb_cm_path *path, const struct vb_cm_message *m)
{
	unsigned int before = s->events;

	stand_arrive_from(s, path, m);
	if (s->events == before)
		return false;
	assert_int_equal(stand_event(s)->event.type, VB_CM_EVENT_REQUEST);
	vb_cm_taken(&s->cm, stand_event(s)->conn);
	assert_int_equal(stand_accept(s, stand_event(s)->conn), 0);
	return true;
}

/* Requests of as many addresses, 1000 and on. Returns how many the program saw. */
static unsigned int flood(struct stand *s)
{
	unsigned int seen = 0;

	for (unsigned int i = 0; i < FLOOD; i++) {
		struct vb_cm_path path = path_from(s, 1000 + i);
		struct vb_cm_message m = request_of(s, &path);

		seen += arrives(s, &path, &m);
	}
	return seen;
}

static void requests_that_wait_are_bounded(void **state)
{
	struct stand *s = stand_new();

	(void)state;
	assert_int_equal(flood(s), UNKNOWN_MOST);
	assert_int_equal(s->live, UNKNOWN_MOST);
	assert_int_equal(stand_count(s, VB_CM_REP), UNKNOWN_MOST);
	assert_int_equal(stand_count(s, VB_CM_DREQ), FLOOD - UNKNOWN_MOST);
	assert_int_equal(stand_dropped(s, VB_REASON_CM_HALF_OPEN), FLOOD - UNKNOWN_MOST);
	stand_free(s);
}

static void processes_of_the_host_are_not_bounded(void **state)
{
	struct stand *s = stand_new();

	(void)state;
	s->path.near = true;
	assert_int_equal(flood(s), FLOOD);
	stand_free(s);
}

/* What was accepted and goes on, or was refused, makes room again. */
static void what_goes_on_does_not_wait(void **state)
{
	struct stand *s = stand_new();

	(void)state;
	for (unsigned int i = 0; i < FLOOD; i++) {
		struct vb_cm_path path = path_from(s, 1000 + i);
		struct vb_cm_message m = request_of(s, &path), rtu;

		assert_true(arrives(s, &path, &m));
		if (i % 2) {
			stand_release(s, stand_event(s)->conn);
			continue;
		}
		rtu = stand_message(s, stand_event(s)->conn, VB_CM_RTU);
		stand_arrive_from(s, &path, &rtu);
		assert_int_equal(stand_event(s)->event.type, VB_CM_EVENT_ESTABLISHED);
	}
	stand_free(s);
}

/* The answer of any connection manager to the question that was sent last. */
static struct vb_cm_message answer_of(const struct stand *s, const struct vb_cm_message *req)
{
	const struct vb_cm_message *question = stand_last(s);

	assert_int_equal(question->attribute, VB_CM_DREQ);
	assert_int_equal(question->remote_id, req->local_id);
	assert_int_equal(question->local_id, vb_cm_question_id(&s->cm));
	return (struct vb_cm_message){
		.attribute = VB_CM_DREP,
		.tid = question->tid,
		.local_id = question->remote_id,
		.remote_id = question->local_id,
	};
}

static void a_sender_that_answers_is_let_in(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_path path = path_from(s, 66), other = path_from(s, 67);
	struct vb_cm_message m = request_of(s, &path), drep;

	(void)state;
	(void)flood(s);
	assert_false(arrives(s, &path, &m));
	drep = answer_of(s, &m);
	/* Nobody guesses it, and nobody answers for another address. */
	drep.tid ^= 1;
	stand_arrive_from(s, &path, &drep);
	assert_false(arrives(s, &path, &m));
	drep.tid ^= 1;
	stand_arrive_from(s, &other, &drep);
	assert_false(arrives(s, &path, &m));
	stand_arrive_from(s, &path, &drep);
	assert_true(arrives(s, &path, &m));
	stand_free(s);
}

static void an_answer_is_of_use_for_two_minutes(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_path path = path_from(s, 66);
	struct vb_cm_message m = request_of(s, &path), drep;

	(void)state;
	(void)flood(s);
	assert_false(arrives(s, &path, &m));
	drep = answer_of(s, &m);
	stand_pass(s, 140 * SECOND);
	stand_clear(s);
	(void)flood(s);
	stand_arrive_from(s, &path, &drep);
	assert_false(arrives(s, &path, &m));
	stand_free(s);
}

static void establish(struct stand *s, const struct vb_cm_path *path, struct vb_cm_conn *conn)
{
	struct vb_cm_message rtu = stand_message(s, conn, VB_CM_RTU);

	stand_arrive_from(s, path, &rtu);
	assert_int_equal(conn->state, VB_CM_ESTABLISHED);
}

/* A peer with one connection, and its further requests. Returns how many the program saw at once. */
static unsigned int known_peer(struct stand *s, const struct vb_cm_path *path,
			       unsigned int requests)
{
	struct vb_cm_message m = request_of(s, path);
	unsigned int let_in = 0;

	assert_true(arrives(s, path, &m));
	establish(s, path, stand_event(s)->conn);
	(void)flood(s);
	for (unsigned int i = 0; i < requests; i++) {
		m = request_of(s, path);
		let_in += arrives(s, path, &m);
	}
	return let_in;
}

/* Whoever has had a connection is known for some minutes, and has room of its own then. */
static void peers_are_known(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_path path = path_from(s, 66);

	(void)state;
	assert_int_equal(known_peer(s, &path, 2 * FLOOD), VB_CM_WAIT_KNOWN);
	/* Nothing was asked of it, and nothing was lost. */
	assert_int_equal(stand_count(s, VB_CM_DREQ), FLOOD - UNKNOWN_MOST);
	assert_int_equal(stand_dropped(s, VB_REASON_CM_HALF_OPEN), FLOOD - UNKNOWN_MOST);
	stand_free(s);
}

/* Of requests beyond that the program hears as others go on, in the order in which they came. */
static void known_peers_wait_for_their_turn(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_path path = path_from(s, 66);
	unsigned int told = 0;
	uint32_t last = 0;

	(void)state;
	(void)known_peer(s, &path, FLOOD);
	for (unsigned int i = 0; i < s->events; i++) {
		struct vb_cm_conn *conn = s->event[i].conn;

		if (s->event[i].event.type != VB_CM_EVENT_REQUEST ||
		    memcmp(conn->path.dgid, path.dgid, 16))
			continue;
		if (conn->state == VB_CM_REQ_RCVD) { /* its turn has come */
			assert_string_equal((const char *)s->event[i].private_data, "hello");
			vb_cm_taken(&s->cm, conn);
			assert_int_equal(stand_accept(s, conn), 0);
		}
		if (conn->state == VB_CM_REP_SENT)
			establish(s, &path, conn);
		assert_true(s->cm.senders.waiting[VB_CM_SENDER_KNOWN] <= VB_CM_WAIT_KNOWN);
		stand_pass(s, MSEC);
		assert_true(conn->remote_id > last);
		last = conn->remote_id;
		told++;
	}
	assert_int_equal(told, 1 + FLOOD);
	stand_free(s);
}

/* What the program was not told of goes without a word: its sender gives up, or nobody listens. */
static void who_waits_for_its_turn_may_go(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_path path = path_from(s, 66);
	struct vb_cm_message m, rej;
	unsigned int events;

	(void)state;
	(void)known_peer(s, &path, FLOOD);
	m = request_of(s, &path);
	stand_arrive_from(s, &path, &m);
	events = s->events;
	/* By the GUID of the request, since it knows no number of this side. */
	rej = (struct vb_cm_message){
		.attribute = VB_CM_REJ,
		.local_id = m.local_id,
		.rej = {.reason = VB_CM_REJ_TIMEOUT, .info_length = 8},
	};
	for (unsigned int i = 0; i < 8; i++)
		rej.rej.info[i] = (uint8_t)(m.req.guid >> (56 - 8 * i));
	stand_arrive_from(s, &path, &rej);
	assert_int_equal(s->events, events);
	vb_cm_unlisten(&s->cm, &s->listener);
	memset(&s->listener, 0xee, sizeof(s->listener));
	/* Room comes, and nobody is there. */
	for (unsigned int i = 0; i < events; i++) {
		if (s->event[i].conn->state == VB_CM_REP_SENT)
			stand_release(s, s->event[i].conn);
	}
	stand_pass(s, SECOND);
	assert_int_equal(s->events, events);
	stand_free(s);
}

/* The backlog has a place for a peer that is known, whatever others have put in. */
static void the_backlog_has_room_for_those_that_are_known(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_path path = path_from(s, 66);
	struct vb_cm_message m = request_of(s, &path), drep;

	(void)state;
	s->listener.backlog = 4;
	for (unsigned int i = 0; i < 10; i++) {
		struct vb_cm_path from = path_from(s, 1000 + i);
		struct vb_cm_message req = request_of(s, &from);

		stand_arrive_from(s, &from, &req);
	}
	assert_int_equal(s->events, 4 + 4 / 4 + 1);
	assert_int_equal(stand_dropped(s, VB_REASON_CM_BACKLOG), 4);
	assert_false(arrives(s, &path, &m));
	drep = answer_of(s, &m);
	stand_arrive_from(s, &path, &drep);
	assert_true(arrives(s, &path, &m));
	stand_free(s);
}

static void those_that_say_nothing_are_given_up_early(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_path path = path_from(s, 1000);
	struct vb_cm_message mra;

	(void)state;
	assert_int_equal(flood(s), UNKNOWN_MOST);
	/* One of them exists, and its program takes its time. */
	mra = stand_message(s, s->event[0].conn, VB_CM_MRA);
	mra.mra.answered = VB_CM_ANSWERED_REP;
	mra.mra.service_timeout = 24;
	stand_arrive_from(s, &path, &mra);
	stand_clear(s);
	stand_pass(s, 6 * SECOND);
	assert_int_equal(s->events, UNKNOWN_MOST - 1);
	for (unsigned int i = 0; i < s->events; i++) {
		assert_int_equal(s->event[i].event.type, VB_CM_EVENT_UNREACHABLE);
		assert_int_equal(s->event[i].event.status, -ETIMEDOUT);
	}
	assert_int_equal(flood(s), UNKNOWN_MOST);
	stand_free(s);
}

/* Where there is room they are waited for as long as Linux does. */
static void nobody_is_given_up_early_without_need(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_path path = path_from(s, 66);
	struct vb_cm_message m = request_of(s, &path);

	(void)state;
	assert_true(arrives(s, &path, &m));
	stand_pass(s, 60 * SECOND);
	assert_int_equal(s->events, 1);
	stand_pass(s, 6 * SECOND);
	assert_int_equal(s->events, 2);
	stand_free(s);
}

static void resolutions_are_bounded_until_they_are_read(void **state)
{
	struct stand *s = stand_new();

	(void)state;
	for (unsigned int round = 0; round < 2; round++) {
		unsigned int before = s->events, seen;

		for (unsigned int i = 0; i < FLOOD; i++) {
			struct vb_cm_path path = path_from(s, 1000 + i);
			struct vb_cm_message m = stand_sidr_req(s);

			stand_source(&m, path.dgid);
			stand_arrive_from(s, &path, &m);
		}
		seen = s->events - before;
		assert_int_equal(seen, UNKNOWN_MOST);
		for (unsigned int i = before; i < before + seen; i++)
			vb_cm_taken(&s->cm, s->event[i].conn);
	}
	stand_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_that_wait_are_bounded),
		cmocka_unit_test(processes_of_the_host_are_not_bounded),
		cmocka_unit_test(what_goes_on_does_not_wait),
		cmocka_unit_test(a_sender_that_answers_is_let_in),
		cmocka_unit_test(an_answer_is_of_use_for_two_minutes),
		cmocka_unit_test(peers_are_known),
		cmocka_unit_test(known_peers_wait_for_their_turn),
		cmocka_unit_test(who_waits_for_its_turn_may_go),
		cmocka_unit_test(the_backlog_has_room_for_those_that_are_known),
		cmocka_unit_test(those_that_say_nothing_are_given_up_early),
		cmocka_unit_test(nobody_is_given_up_early_without_need),
		cmocka_unit_test(resolutions_are_bounded_until_they_are_read),
	};

	return cmocka_run_group_tests_name("cm_waiting", tests, NULL, NULL);
}

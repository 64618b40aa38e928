/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers that begin anew, strangers, identifiers; and the messages of Linux: what it sent is
 * understood, and what the core sends has the same bytes.
 */
#include <errno.h>
#include <string.h>

#include "captured_mads.h"
#include "stand.h"
#include "wire/bytes.h"

/* The same queue pair of the peer under another id: REJ 10, and the old connection ends. */
static void a_stale_connection_ends(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_conn *old = stand_in(s, VB_CM_ESTABLISHED, false);
	struct vb_cm_message m = stand_req(s);
	struct vb_cm_message drep;

	(void)state;
	m.req.qpn = old->remote_qpn;
	stand_arrive(s, &m);
	assert_int_equal(s->sents, 2);
	assert_int_equal(s->sent[0].rej.reason, VB_CM_REJ_STALE);
	assert_int_equal(s->sent[0].remote_id, m.local_id);
	assert_int_equal(s->sent[1].attribute, VB_CM_DREQ);
	assert_int_equal(s->sent[1].remote_id, old->remote_id);
	assert_int_equal(s->events, 0);
	assert_int_equal(stand_dropped(s, VB_REASON_CM_STALE), 1);
	stand_arrive(s, &m); /* a copy */
	assert_int_equal(s->sents, 3);
	assert_int_equal(stand_last(s)->rej.reason, VB_CM_REJ_STALE);
	/* The peer knows no such connection, and says DREP all the same. */
	drep = stand_message(s, old, VB_CM_DREP);
	stand_arrive(s, &drep);
	assert_int_equal(stand_event(s)->event.type, VB_CM_EVENT_DISCONNECTED);
	/* The next try is a new connection. */
	stand_clear(s);
	m.local_id++;
	stand_arrive(s, &m);
	assert_int_equal(stand_event(s)->event.type, VB_CM_EVENT_REQUEST);
	stand_free(s);
}

static void an_undecided_stale_request_ends(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_conn *old = stand_in(s, VB_CM_REQ_RCVD, false);
	struct vb_cm_message m = stand_req(s);

	(void)state;
	m.req.qpn = old->remote_qpn;
	stand_arrive(s, &m);
	assert_int_equal(stand_last(s)->rej.reason, VB_CM_REJ_STALE);
	assert_int_equal(stand_event(s)->event.type, VB_CM_EVENT_REJECTED);
	assert_int_equal(stand_accept(s, old), -EINVAL);
	stand_clear(s);
	stand_arrive(s, &m); /* a copy */
	assert_int_equal(stand_last(s)->rej.reason, VB_CM_REJ_STALE);
	assert_int_equal(s->events, 0);
	stand_pass(s, 3 * SECOND);
	m.local_id++;
	stand_arrive(s, &m);
	assert_int_equal(stand_event(s)->event.type, VB_CM_EVENT_REQUEST);
	stand_free(s);
}

/* The same id for another queue pair: the peer's process was started anew. */
static void an_id_with_another_queue_pair_is_stale(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_conn *old = stand_in(s, VB_CM_ESTABLISHED, false);
	struct vb_cm_message m = stand_req(s);

	(void)state;
	m.local_id = old->remote_id;
	stand_arrive(s, &m);
	assert_int_equal(s->sents, 2);
	assert_int_equal(s->sent[0].rej.reason, VB_CM_REJ_STALE);
	assert_int_equal(old->state, VB_CM_DREQ_SENT);
	stand_free(s);
}

/* Numbers of another device, and of the same device at another address, are others. */
static void equal_numbers_of_others_do_not_meet(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_conn *old = stand_in(s, VB_CM_ESTABLISHED, false);
	struct vb_cm_message m = stand_req(s);
	struct vb_cm_path path = s->path;

	(void)state;
	m.local_id = old->remote_id;
	m.req.qpn = old->remote_qpn;
	m.req.guid = STAND_PEER + 1;
	stand_arrive(s, &m);
	assert_int_equal(s->events, 1);
	m.req.guid = STAND_PEER;
	stand_v4(path.dgid, 66);
	memcpy(m.req.primary.local_gid, path.dgid, 16);
	stand_source(&m, path.dgid);
	stand_arrive_from(s, &path, &m);
	assert_int_equal(s->events, 2);
	assert_int_equal(old->state, VB_CM_ESTABLISHED);
	stand_free(s);
}

/* A REP with a queue pair that has a connection here: REJ 10 to the REP; REQ goes on. */
static void a_stale_reply_is_rejected(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_conn *old = stand_in(s, VB_CM_ESTABLISHED, true);
	struct vb_cm_conn *conn = stand_in(s, VB_CM_REQ_SENT, true);
	struct vb_cm_message m = stand_message(s, conn, VB_CM_REP);

	(void)state;
	m.rep.qpn = old->remote_qpn;
	stand_arrive(s, &m);
	assert_int_equal(s->sents, 2);
	assert_int_equal(s->sent[0].rej.reason, VB_CM_REJ_STALE);
	assert_int_equal(s->sent[0].rej.answered, VB_CM_ANSWERED_REP);
	assert_int_equal(s->sent[0].local_id, conn->local_id);
	assert_int_equal(s->sent[1].attribute, VB_CM_DREQ);
	assert_int_equal(conn->state, VB_CM_REQ_SENT);
	stand_free(s);
}

/* From another address nothing reaches a connection, whatever ids it names. */
static void strangers_reach_nothing(void **state)
{
	static const uint16_t messages[] = {VB_CM_REP,  VB_CM_RTU,  VB_CM_REJ,     VB_CM_MRA,
					    VB_CM_DREQ, VB_CM_DREP, VB_CM_SIDR_REP};

	(void)state;
	for (unsigned int of = 0; of < VB_CM_STATE_COUNT; of++) {
		for (unsigned int i = 0; i < 2 * sizeof(messages) / sizeof(messages[0]); i++) {
			struct stand *s = stand_new();
			struct vb_cm_conn *conn = stand_in(s, of, i % 2);
			struct vb_cm_path path = s->path;

			stand_v4(path.dgid, 66);
			if (conn) {
				struct vb_cm_message m = stand_message(s, conn, messages[i / 2]);

				stand_arrive_from(s, &path, &m);
				assert_int_equal(conn->state, of);
				assert_int_equal(s->sents, 0);
				assert_int_equal(s->events, 0);
				assert_int_equal(s->drops, 1);
			}
			stand_free(s);
		}
	}
}

/* The peer's id is part of the key as soon as it is known. */
static void another_id_of_the_peer_reaches_nothing(void **state)
{
	static const uint16_t messages[] = {VB_CM_REP, VB_CM_RTU, VB_CM_REJ, VB_CM_MRA, VB_CM_DREP};
	struct stand *s = stand_new();
	struct vb_cm_conn *conn = stand_in(s, VB_CM_ESTABLISHED, true);
	struct vb_cm_message m;

	(void)state;
	for (unsigned int i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		m = stand_message(s, conn, messages[i]);
		m.local_id ^= 1;
		stand_arrive(s, &m);
	}
	assert_int_equal(stand_dropped(s, VB_REASON_CM_UNKNOWN), 5);
	assert_int_equal(s->sents, 0);
	m = stand_message(s, conn, VB_CM_DREQ);
	m.dreq.remote_qpn ^= 1;
	stand_arrive(s, &m);
	assert_int_equal(s->sents, 0);
	assert_int_equal(conn->state, VB_CM_ESTABLISHED);
	m.local_id ^= 1;
	stand_arrive(s, &m);
	assert_int_equal(conn->state, VB_CM_ESTABLISHED);
	assert_int_equal(stand_last(s)->attribute, VB_CM_DREP);
	stand_free(s);
}

/*
 * A REJ that names no connection answers a REQ. When another copy of the REQ was answered by a REP,
 * it is late.
 */
static void a_late_rejection_ends_nothing(void **state)
{
	static const enum vb_cm_state states[] = {VB_CM_REP_RCVD, VB_CM_ESTABLISHED,
						  VB_CM_DREQ_SENT};

	(void)state;
	for (unsigned int i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		struct stand *s = stand_new();
		struct vb_cm_conn *conn = stand_in(s, states[i], true);
		struct vb_cm_message m = stand_message(s, conn, VB_CM_REJ);

		m.local_id = 0;
		m.rej.answered = VB_CM_ANSWERED_REQ;
		m.rej.reason = VB_CM_REJ_INVALID_SERVICE_ID;
		stand_arrive(s, &m);
		assert_int_equal(conn->state, states[i]);
		assert_int_equal(s->events, 0);
		stand_free(s);
	}
}

/* DREP with ids exchanged for whoever asks. */
static void a_dreq_of_nobody_is_answered(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_message m = {.attribute = VB_CM_DREQ,
				  .tid = 0x1234567890,
				  .local_id = 0x11111111,
				  .remote_id = 0x22222222,
				  .dreq = {.remote_qpn = 5}};

	(void)state;
	stand_arrive(s, &m);
	assert_int_equal(stand_last(s)->attribute, VB_CM_DREP);
	assert_int_equal(stand_last(s)->local_id, 0x22222222);
	assert_int_equal(stand_last(s)->remote_id, 0x11111111);
	assert_int_equal(stand_last(s)->tid, 0x1234567890);
	assert_int_equal(s->live, 0);
	m.attribute = VB_CM_REJ;
	stand_arrive(s, &m);
	assert_int_equal(s->sents, 1);
	assert_int_equal(stand_dropped(s, VB_REASON_CM_UNKNOWN), 2);
	stand_free(s);
}

/* REJ 4 names no id of the receiver: it is found by the sender's GUID and id. */
static void who_gives_up_is_found_by_its_guid(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_conn *conn = stand_in(s, VB_CM_REP_SENT, false);
	struct vb_cm_message m = stand_message(s, conn, VB_CM_REJ);

	(void)state;
	m.remote_id = 0;
	m.rej.reason = VB_CM_REJ_TIMEOUT;
	stand_arrive(s, &m);
	assert_int_equal(conn->state, VB_CM_REP_SENT);
	m.rej.info_length = 8;
	vb_put64(m.rej.info, STAND_PEER + 1);
	stand_arrive(s, &m);
	assert_int_equal(conn->state, VB_CM_REP_SENT);
	vb_put64(m.rej.info, STAND_PEER);
	stand_arrive(s, &m);
	assert_int_equal(conn->state, VB_CM_TIMEWAIT);
	assert_int_equal(stand_event(s)->event.type, VB_CM_EVENT_REJECTED);
	assert_int_equal(stand_event(s)->event.status, VB_CM_REJ_TIMEOUT);
	stand_free(s);
}

static void a_stale_rejection_waits(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_conn *conn = stand_in(s, VB_CM_REQ_SENT, true);
	struct vb_cm_message m = stand_message(s, conn, VB_CM_REJ);

	(void)state;
	m.local_id = 0;
	m.rej.reason = VB_CM_REJ_STALE;
	m.rej.answered = VB_CM_ANSWERED_REQ;
	stand_arrive(s, &m);
	assert_int_equal(conn->state, VB_CM_TIMEWAIT);
	assert_int_equal(stand_event(s)->event.status, VB_CM_REJ_STALE);
	assert_int_equal(stand_event(s)->event.private_length, 148);
	stand_pass(s, 3 * SECOND);
	assert_int_equal(conn->state, VB_CM_IDLE);
	assert_int_equal(s->events, 1); /* a connection that never was has no TIMEWAIT_EXIT */
	stand_free(s);
}

static void ids_are_unique_and_of_the_block(void **state)
{
	struct stand *s = stand_new();
	uint32_t first = 0;

	(void)state;
	for (unsigned int i = 0; i < 1000; i++) {
		struct vb_cm_conn *conn = stand_connect(s);

		assert_int_equal(conn->local_id & ~((1u << 18) - 1), STAND_BASE);
		assert_int_not_equal(conn->local_id, first);
		if (!i)
			first = conn->local_id;
		stand_clear(s);
	}
	stand_free(s);
}

/* 256 numbers, three quarters of which are given away; none twice while it is in use. */
static void ids_run_out_and_come_back(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_connect how = {.path = s->path};
	struct vb_cm_conn *conn[256];
	bool seen[256] = {false};
	unsigned int given = 0;

	(void)state;
	s->cm.id_mask = 255;
	while (!vb_cm_connect(&s->cm, &how, s->now, &conn[given])) {
		uint32_t low = conn[given]->local_id & 255;

		assert_false(seen[low]);
		seen[low] = true;
		given++;
		stand_clear(s);
	}
	assert_int_equal(given, 255 / 4 * 3);
	assert_int_equal(vb_cm_connect(&s->cm, &how, s->now, &conn[255]), -EADDRNOTAVAIL);
	assert_int_equal(stand_dropped(s, VB_REASON_CM_NO_IDS), 2);
	stand_release(s, conn[0]);
	stand_pass(s, 20 * SECOND);
	assert_int_equal(vb_cm_connect(&s->cm, &how, s->now, &conn[0]), 0);
	stand_free(s);
}

/* Both ends of a connection in one core, by one device, and even by one queue pair. */
static void a_process_connects_to_itself(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_conn *active;
	struct vb_cm_conn *passive;

	(void)state;
	memcpy(s->path.dgid, s->path.sgid, 16);
	active = stand_connect(s);
	stand_arrive(s, &s->sent[0]);
	passive = stand_event(s)->conn;
	assert_int_equal(stand_event(s)->event.type, VB_CM_EVENT_REQUEST);
	assert_int_equal(stand_accept(s, passive), 0);
	stand_arrive(s, &s->sent[1]);
	assert_int_equal(stand_event(s)->event.type, VB_CM_EVENT_RESPONSE);
	assert_int_equal(stand_event(s)->event.private_length, 196);
	assert_int_equal(vb_cm_establish(&s->cm, active, s->now), 0);
	stand_arrive(s, &s->sent[2]);
	assert_int_equal(stand_event(s)->event.type, VB_CM_EVENT_ESTABLISHED);
	assert_ptr_equal(stand_event(s)->conn, passive);
	assert_int_equal(vb_cm_disconnect(&s->cm, active, s->now), 0);
	stand_arrive(s, &s->sent[3]);
	assert_ptr_equal(stand_event(s)->conn, passive);
	assert_int_equal(vb_cm_disconnect(&s->cm, passive, s->now), 0);
	stand_arrive(s, &s->sent[4]);
	assert_ptr_equal(stand_event(s)->conn, active);
	assert_int_equal(s->events, 5);
	assert_int_equal(s->sents, 5);
	stand_free(s);
}

static void arrive_captured(struct stand *s, const char *name)
{
	uint8_t mad[VB_MAD_BYTES];

	assert_true(captured_mad_find(name, mad));
	vb_cm_receive(&s->cm, &s->path, mad, sizeof(mad), s->now);
}

/* What Linux said to Linux, said to this core as the server of rping. */
static void linux_connects(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_conn *conn;
	struct vb_cm_accept how = {.qp_num = 0x11,
				   .psn = 0xc3a013,
				   .responder_resources = 1,
				   .initiator_depth = 1,
				   .rnr_retry_count = 7,
				   .ack_delay = 15};
	uint8_t mad[VB_MAD_BYTES];
	uint8_t mine[VB_MAD_BYTES];

	(void)state;
	stand_v4(s->path.sgid, 2);
	stand_v4(s->path.dgid, 1);
	s->path.guid = 0x000000fffe000102u;
	arrive_captured(s, "v4_cm_rping 1");
	assert_int_equal(stand_event(s)->event.type, VB_CM_EVENT_REQUEST);
	assert_int_equal(stand_event(s)->event.private_length, 56);
	conn = stand_event(s)->conn;
	assert_int_equal(vb_cm_accept(&s->cm, conn, &how, s->now), 0);
	assert_true(captured_mad_find("v4_cm_rping 2", mad));
	vb_put32(mad + 24, conn->local_id);
	vb_cm_message_encode(stand_last(s), mine);
	assert_memory_equal(mine, mad, sizeof(mad));
	/* The rest of the exchange has this side's id. */
	assert_true(captured_mad_find("v4_cm_rping 3", mad));
	vb_put32(mad + 28, conn->local_id);
	vb_cm_receive(&s->cm, &s->path, mad, sizeof(mad), s->now);
	assert_int_equal(stand_event(s)->event.type, VB_CM_EVENT_ESTABLISHED);
	assert_true(captured_mad_find("v4_cm_rping 28", mad));
	vb_put32(mad + 28, conn->local_id);
	vb_cm_receive(&s->cm, &s->path, mad, sizeof(mad), s->now);
	assert_int_equal(stand_event(s)->event.type, VB_CM_EVENT_DISCONNECTED);
	stand_release(s, conn);
	assert_true(captured_mad_find("v4_cm_rping 29", mad));
	vb_put32(mad + 24, conn->local_id);
	vb_cm_message_encode(stand_last(s), mine);
	assert_memory_equal(mine, mad, sizeof(mad));
	stand_free(s);
}

/* REQ and SIDR_REQ have the bytes of Linux's, but for the numbers that each sender chooses. */
static void requests_look_like_those_of_linux(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_connect how = {
		.path = s->path,
		.service_id = STAND_SERVICE,
		.address = {.version = 4, .port = 0x9488},
		.qp_num = 0x11,
		.psn = 0x08c6ca,
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 15,
	};
	struct vb_cm_sidr_request resolve = {.service_id = STAND_UD,
					     .address = {.version = 4, .port = 0xe90e}};
	struct vb_cm_conn *conn;
	uint8_t mad[VB_MAD_BYTES];
	uint8_t mine[VB_MAD_BYTES];

	(void)state;
	how.path.guid = 0x000000fffe000101u;
	how.path.mtu = 5;
	how.path.flow_label = 0x2187e;
	memcpy(how.address.source, s->path.sgid, 16);
	memcpy(how.address.destination, s->path.dgid, 16);
	assert_int_equal(vb_cm_connect(&s->cm, &how, s->now, &conn), 0);
	assert_true(captured_mad_find("v4_cm_rping 1", mad));
	vb_put32(mad + 24, conn->local_id);
	vb_put64(mad + 8, stand_last(s)->tid);
	vb_cm_message_encode(stand_last(s), mine);
	assert_memory_equal(mine, mad, sizeof(mad));

	resolve.path = how.path;
	memcpy(resolve.address.source, s->path.sgid, 16);
	memcpy(resolve.address.destination, s->path.dgid, 16);
	assert_int_equal(vb_cm_sidr_request(&s->cm, &resolve, s->now, &conn), 0);
	assert_true(captured_mad_find("v4_cm_udaddy_sidr 1", mad));
	vb_put32(mad + 24, conn->local_id);
	vb_put64(mad + 8, stand_last(s)->tid);
	vb_cm_message_encode(stand_last(s), mine);
	assert_memory_equal(mine, mad, sizeof(mad));
	stand_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stale_connection_ends),
		cmocka_unit_test(an_undecided_stale_request_ends),
		cmocka_unit_test(an_id_with_another_queue_pair_is_stale),
		cmocka_unit_test(equal_numbers_of_others_do_not_meet),
		cmocka_unit_test(a_stale_reply_is_rejected),
		cmocka_unit_test(strangers_reach_nothing),
		cmocka_unit_test(another_id_of_the_peer_reaches_nothing),
		cmocka_unit_test(a_late_rejection_ends_nothing),
		cmocka_unit_test(a_dreq_of_nobody_is_answered),
		cmocka_unit_test(who_gives_up_is_found_by_its_guid),
		cmocka_unit_test(a_stale_rejection_waits),
		cmocka_unit_test(ids_are_unique_and_of_the_block),
		cmocka_unit_test(ids_run_out_and_come_back),
		cmocka_unit_test(a_process_connects_to_itself),
		cmocka_unit_test(linux_connects),
		cmocka_unit_test(requests_look_like_those_of_linux),
	};

	return cmocka_run_group_tests_name("cm_peers", tests, NULL, NULL);
}

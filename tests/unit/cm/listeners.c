/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which listener takes a request, what others get, and what a flood of requests cannot do. */
#include <errno.h>
#include <string.h>

#include "stand.h"

static const struct vb_cm_message *refused(struct stand *s, const struct vb_cm_message *m,
					   enum vb_reason reason)
{
	stand_clear(s);
	stand_arrive(s, m);
	assert_int_equal(s->events, 0);
	assert_int_equal(s->sents, 1);
	assert_int_equal(s->drops, 1);
	assert_int_equal(s->drop[0], reason);
	return stand_last(s);
}

static void a_request_is_reported_from_this_side(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_message m = stand_req(s);
	const struct stand_event *e;

	(void)state;
	m.modifier = 0x12345678;
	m.req.vendor_id = 0x9abcde;
	m.req.srq = m.req.flow_control = true;
	stand_arrive(s, &m);
	assert_int_equal(s->events, 1);
	assert_int_equal(s->sents, 0);
	e = stand_event(s);
	assert_int_equal(e->event.type, VB_CM_EVENT_REQUEST);
	assert_ptr_equal(e->event.listener, &s->listener);
	/* Exchanged: what the peer initiates is responded to here. */
	assert_int_equal(e->event.responder_resources, 5);
	assert_int_equal(e->event.initiator_depth, 3);
	assert_int_equal(e->event.retry_count, 6);
	assert_int_equal(e->event.rnr_retry_count, 4);
	assert_true(e->event.srq);
	assert_true(e->event.flow_control);
	assert_int_equal(e->event.qp_num, m.req.qpn);
	assert_int_equal(e->event.psn, 0xabcd);
	assert_int_equal(e->event.ece_vendor, 0x9abcde);
	assert_int_equal(e->event.ece_options, 0x12345678);
	assert_int_equal(e->event.private_length, 56);
	assert_string_equal((const char *)e->private_data, "hello");
	for (unsigned int i = 6; i < 56; i++)
		assert_int_equal(e->private_data[i], 0);
	assert_int_equal(e->event.address.version, 4);
	assert_int_equal(e->event.address.port, 40000);
	assert_memory_equal(e->event.address.source, s->path.dgid, 16);
	assert_memory_equal(e->path.sgid, s->path.sgid, 16);
	assert_memory_equal(e->path.dgid, s->path.dgid, 16);
	assert_int_equal(e->path.ifindex, STAND_IFINDEX);
	assert_int_equal(e->path.flow_label, 0x54321);
	assert_int_equal(e->path.mtu, 3);
	assert_int_equal(e->path.ack_timeout, 19);
	assert_int_equal(e->path.hop_limit, 64);
	assert_int_equal(e->path.pkey, 0xffff);
	stand_free(s);
}

static void a_resolution_is_reported(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_message m = stand_sidr_req(s);
	const struct stand_event *e;

	(void)state;
	stand_arrive(s, &m);
	e = stand_event(s);
	assert_int_equal(e->event.type, VB_CM_EVENT_SIDR_REQUEST);
	assert_ptr_equal(e->event.listener, &s->datagrams);
	assert_int_equal(e->event.private_length, 180);
	assert_string_equal((const char *)e->private_data, "hello");
	assert_int_equal(stand_reply(s, e->conn), 0);
	assert_int_equal(stand_last(s)->remote_id, m.local_id);
	assert_int_equal(stand_last(s)->tid, m.tid);
	assert_int_equal(stand_last(s)->sidr_rep.service_id, STAND_UD);
	assert_int_equal(stand_last(s)->sidr_rep.qpn, STAND_QPN);
	stand_free(s);
}

static void nobody_listens(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_message m = stand_req(s);
	const struct vb_cm_message *answer;

	(void)state;
	m.req.service_id++;
	answer = refused(s, &m, VB_REASON_CM_NO_LISTENER);
	assert_int_equal(answer->attribute, VB_CM_REJ);
	assert_int_equal(answer->rej.reason, VB_CM_REJ_INVALID_SERVICE_ID);
	assert_int_equal(answer->rej.answered, VB_CM_ANSWERED_REQ);
	assert_int_equal(answer->local_id, 0);
	assert_int_equal(answer->remote_id, m.local_id);
	assert_int_equal(answer->tid, m.tid);
	/* A listener for datagrams does not count. */
	m.req.service_id = STAND_UD;
	answer = refused(s, &m, VB_REASON_CM_NO_LISTENER);
	assert_int_equal(answer->rej.reason, VB_CM_REJ_INVALID_SERVICE_ID);
	m = stand_sidr_req(s);
	m.sidr_req.service_id = STAND_SERVICE;
	answer = refused(s, &m, VB_REASON_CM_NO_LISTENER);
	assert_int_equal(answer->attribute, VB_CM_SIDR_REP);
	assert_int_equal(answer->sidr_rep.status, VB_CM_SIDR_NO_SERVICE);
	assert_int_equal(answer->remote_id, m.local_id);
	assert_int_equal(s->live, 0);
	vb_cm_unlisten(&s->cm, &s->listener);
	m = stand_req(s);
	answer = refused(s, &m, VB_REASON_CM_NO_LISTENER);
	assert_int_equal(answer->rej.reason, VB_CM_REJ_INVALID_SERVICE_ID);
	assert_int_equal(vb_cm_listen(&s->cm, &s->listener), 0);
	stand_free(s);
}

/* REJ 28 without data: the address, the type of queue pair, no addresses at all. */
static void the_listener_does_not_fit(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_message m = stand_req(s);

	(void)state;
	m.req.service = VB_CM_UC;
	assert_int_equal(refused(s, &m, VB_REASON_CM_NO_MATCH)->rej.reason, VB_CM_REJ_CONSUMER);
	m.req.service = VB_CM_RD;
	assert_int_equal(refused(s, &m, VB_REASON_CM_NO_MATCH)->rej.reason, VB_CM_REJ_CONSUMER);
	m.req.service = VB_CM_XRC;
	m.req.extended = 1;
	assert_int_equal(refused(s, &m, VB_REASON_CM_NO_MATCH)->rej.reason, VB_CM_REJ_CONSUMER);
	m = stand_req(s);
	m.private_data[0] = 0x10;
	assert_int_equal(refused(s, &m, VB_REASON_CM_NO_MATCH)->rej.reason, VB_CM_REJ_CONSUMER);
	m.private_data[0] = 0;
	m.private_data[1] = 0; /* AF_IB has no addresses there */
	assert_int_equal(refused(s, &m, VB_REASON_CM_NO_MATCH)->rej.reason, VB_CM_REJ_CONSUMER);
	m.private_data[1] = 0x60; /* an IPv4 listener */
	assert_int_equal(refused(s, &m, VB_REASON_CM_NO_MATCH)->rej.reason, VB_CM_REJ_CONSUMER);
	m = stand_sidr_req(s);
	m.private_data[1] = 0x60;
	assert_int_equal(refused(s, &m, VB_REASON_CM_NO_MATCH)->sidr_rep.status,
			 VB_CM_SIDR_REJECTED);
	stand_free(s);
}

static void xrc_has_its_own_type(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_listener xrc = s->listener;
	struct vb_cm_message m = stand_req(s);

	(void)state;
	xrc.service = VB_CM_XRC;
	assert_int_equal(vb_cm_listen(&s->cm, &xrc), 0);
	m.req.service = VB_CM_XRC;
	m.req.extended = 2;
	assert_int_equal(refused(s, &m, VB_REASON_CM_NO_MATCH)->rej.reason, VB_CM_REJ_CONSUMER);
	m.req.extended = 1;
	stand_arrive(s, &m);
	assert_ptr_equal(stand_event(s)->event.listener, &xrc);
	assert_int_equal(stand_accept(s, stand_event(s)->conn), 0);
	assert_int_equal(stand_last(s)->rep.eecn, STAND_QPN);
	assert_int_equal(stand_last(s)->rep.qpn, 0);
	assert_true(stand_last(s)->rep.srq);
	vb_cm_unlisten(&s->cm, &xrc);
	stand_free(s);
}

static void the_closest_address_wins(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_listener exact = s->listener;
	struct vb_cm_listener same = s->listener;
	struct vb_cm_listener other = s->listener;
	struct vb_cm_message m = stand_req(s);

	(void)state;
	assert_int_equal(vb_cm_listen(&s->cm, &same), -EADDRINUSE);
	vb_cm_unlisten(&s->cm, &s->listener);
	stand_v4(exact.address, 1);
	stand_v4(other.address, 9);
	assert_int_equal(vb_cm_listen(&s->cm, &exact), 0);
	assert_int_equal(vb_cm_listen(&s->cm, &other), 0);
	assert_int_equal(vb_cm_listen(&s->cm, &s->listener), -EADDRINUSE);
	stand_arrive(s, &m);
	assert_ptr_equal(stand_event(s)->event.listener, &exact);
	vb_cm_unlisten(&s->cm, &exact);
	m = stand_req(s);
	assert_int_equal(refused(s, &m, VB_REASON_CM_NO_MATCH)->rej.reason, VB_CM_REJ_CONSUMER);
	vb_cm_unlisten(&s->cm, &other);
	assert_int_equal(vb_cm_listen(&s->cm, &s->listener), 0);
	stand_free(s);
}

static void the_wildcard_of_ipv6_takes_both(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_message m = stand_req(s);

	(void)state;
	vb_cm_unlisten(&s->cm, &s->listener);
	memset(s->listener.address, 0, 16);
	assert_int_equal(vb_cm_listen(&s->cm, &s->listener), 0);
	stand_arrive(s, &m);
	assert_int_equal(s->events, 1);
	vb_cm_unlisten(&s->cm, &s->listener);
	s->listener.afonly = true;
	assert_int_equal(vb_cm_listen(&s->cm, &s->listener), 0);
	m = stand_req(s);
	refused(s, &m, VB_REASON_CM_NO_MATCH);
	stand_free(s);
}

/* A REQ whose GIDs are not those of its packet would send data elsewhere. */
static void gids_must_be_those_of_the_packet(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_message m = stand_req(s);
	const struct vb_cm_message *answer;

	(void)state;
	m.req.primary.local_gid[15] ^= 1;
	answer = refused(s, &m, VB_REASON_CM_GID);
	assert_int_equal(answer->rej.reason, VB_CM_REJ_INVALID_GID);
	assert_int_equal(answer->rej.info_length, 16);
	assert_memory_equal(answer->rej.info, s->path.sgid, 16);
	m.req.primary.local_gid[15] ^= 1;
	m.req.primary.remote_gid[15] ^= 1;
	assert_int_equal(refused(s, &m, VB_REASON_CM_GID)->rej.reason, VB_CM_REJ_INVALID_GID);
	m.req.primary.remote_gid[15] ^= 1;
	m.req.mtu = 0;
	assert_int_equal(refused(s, &m, VB_REASON_CM_NO_MATCH)->rej.reason, VB_CM_REJ_INVALID_MTU);
	m.req.mtu = 6;
	assert_int_equal(refused(s, &m, VB_REASON_CM_NO_MATCH)->rej.reason, VB_CM_REJ_INVALID_MTU);
	stand_free(s);
}

static void from(struct stand *s, struct vb_cm_message *m, struct vb_cm_path *path, uint8_t last)
{
	*path = s->path;
	stand_v4(path->dgid, last);
	memcpy(m->req.primary.local_gid, path->dgid, 16);
	stand_source(m, path->dgid);
}

/* Programs let peers in by the address that they see: it is the packet's, or the request is refused. */
static void nobody_speaks_for_another_address(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_message m = stand_req(s);
	uint8_t other[16];

	(void)state;
	stand_v4(other, 66);
	stand_source(&m, other);
	assert_int_equal(refused(s, &m, VB_REASON_CM_NO_MATCH)->rej.reason, VB_CM_REJ_CONSUMER);
	m = stand_sidr_req(s);
	stand_source(&m, other);
	assert_int_equal(refused(s, &m, VB_REASON_CM_NO_MATCH)->sidr_rep.status,
			 VB_CM_SIDR_REJECTED);
	stand_free(s);
}

/* Beyond the backlog there is silence, and the next try finds room again. */
static void the_backlog_is_what_was_not_read(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_message m;

	(void)state;
	s->listener.backlog = 3;
	s->path.near = true; /* others are asked (waiting.c) */
	for (unsigned int i = 0; i < 3; i++) {
		m = stand_req(s);
		stand_arrive(s, &m);
	}
	assert_int_equal(s->events, 3);
	m = stand_req(s);
	stand_arrive(s, &m);
	assert_int_equal(s->events, 3);
	assert_int_equal(s->sents, 0);
	assert_int_equal(stand_dropped(s, VB_REASON_CM_BACKLOG), 1);
	/* Accepting does not count as reading; vb_cm_taken() does, and so does release. */
	assert_int_equal(stand_accept(s, s->event[0].conn), 0);
	stand_arrive(s, &m);
	assert_int_equal(s->events, 3);
	vb_cm_taken(&s->cm, s->event[0].conn);
	stand_arrive(s, &m);
	assert_int_equal(s->events, 4);
	stand_release(s, s->event[1].conn);
	m = stand_req(s);
	stand_arrive(s, &m);
	assert_int_equal(s->events, 5);
	stand_free(s);
}

static void backlogs_of_other_sizes_mean_the_most(void **state)
{
	static const int sizes[] = {0, -1, 1024, 5000};

	(void)state;
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct stand *s = stand_new();

		s->listener.backlog = sizes[i];
		s->path.near = true; /* senders on other hosts have other bounds besides */
		for (unsigned int n = 0; n < 1100; n++) {
			struct vb_cm_message m = stand_req(s);

			stand_arrive(s, &m);
		}
		assert_int_equal(s->events, 1024);
		stand_free(s);
	}
}

/*
 * 10,000 requests from one address: memory stays bounded, and a request from another address gets
 * through although the program reads nothing.
 */
static void a_flood_stops_no_other_peer(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_message m;
	struct vb_cm_path path;

	(void)state;
	s->listener.backlog = 16;
	for (unsigned int i = 0; i < 10000; i++) {
		m = stand_req(s);
		from(s, &m, &path, 66);
		stand_arrive_from(s, &path, &m);
		/* Nothing is answered but that it is asked where it comes from (waiting.c). */
		assert_int_equal(s->sents, stand_count(s, VB_CM_DREQ));
		s->sents = s->drops = 0;
		s->now += SECOND / 10000;
		vb_cm_expire(&s->cm, s->now);
	}
	assert_int_equal(s->most, 16);
	assert_int_equal(s->events, 16);
	m = stand_req(s);
	stand_arrive(s, &m);
	assert_int_equal(s->events, 17);
	/* The second one of that peer waits like the others. */
	m = stand_req(s);
	stand_arrive(s, &m);
	assert_int_equal(s->events, 17);
	/* Many peers have a few places. */
	for (uint8_t i = 100; i < 200; i++) {
		m = stand_req(s);
		from(s, &m, &path, i);
		stand_arrive_from(s, &path, &m);
	}
	assert_int_equal(s->events, 16 + 16 / 4 + 1);
	stand_free(s);
}

/* A flood that is rejected by the program leaves no more than the bound of answers. */
static void rejected_floods_are_forgotten(void **state)
{
	struct stand *s = stand_new();

	(void)state;
	for (unsigned int i = 0; i < 3000; i++) {
		struct vb_cm_message m = stand_req(s);

		stand_arrive(s, &m);
		if (s->events)
			stand_release(s, s->event[0].conn);
		stand_clear(s);
		s->now += 20 * MSEC;
		vb_cm_expire(&s->cm, s->now);
	}
	/* 14 s of 50 a second. */
	assert_int_equal(s->most, 700);
	stand_pass(s, 20 * SECOND);
	assert_int_equal(s->live, 0);
	stand_free(s);
}

static void no_memory_means_silence(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_message m = stand_req(s);

	(void)state;
	s->allowed = 0;
	stand_arrive(s, &m);
	assert_int_equal(stand_dropped(s, VB_REASON_CM_NO_MEMORY), 1);
	s->allowed = STAND_CONNS;
	s->refuse = true;
	stand_arrive(s, &m);
	assert_int_equal(stand_dropped(s, VB_REASON_CM_NO_MEMORY), 2);
	m.attribute = VB_CM_REQ;
	assert_int_equal(s->live, 0);
	assert_int_equal(s->sents, 0);
	s->refuse = false;
	stand_arrive(s, &m);
	assert_int_equal(s->events, 1);
	stand_free(s);
}

static void requests_outlive_their_listener(void **state)
{
	struct stand *s = stand_new();
	struct vb_cm_message m = stand_req(s);
	struct vb_cm_conn *unread;

	(void)state;
	stand_arrive(s, &m);
	unread = s->event[0].conn;
	m = stand_req(s);
	stand_arrive(s, &m);
	vb_cm_unlisten(&s->cm, &s->listener);
	memset(&s->listener, 0xee, sizeof(s->listener));
	vb_cm_taken(&s->cm, unread);
	assert_int_equal(stand_accept(s, unread), 0);
	stand_release(s, s->event[1].conn);
	assert_int_equal(stand_last(s)->rej.reason, VB_CM_REJ_CONSUMER);
	stand_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_reported_from_this_side),
		cmocka_unit_test(a_resolution_is_reported),
		cmocka_unit_test(nobody_listens),
		cmocka_unit_test(the_listener_does_not_fit),
		cmocka_unit_test(xrc_has_its_own_type),
		cmocka_unit_test(the_closest_address_wins),
		cmocka_unit_test(the_wildcard_of_ipv6_takes_both),
		cmocka_unit_test(gids_must_be_those_of_the_packet),
		cmocka_unit_test(the_backlog_is_what_was_not_read),
		cmocka_unit_test(backlogs_of_other_sizes_mean_the_most),
		cmocka_unit_test(a_flood_stops_no_other_peer),
		cmocka_unit_test(nobody_speaks_for_another_address),
		cmocka_unit_test(rejected_floods_are_forgotten),
		cmocka_unit_test(no_memory_means_silence),
		cmocka_unit_test(requests_outlive_their_listener),
	};

	return cmocka_run_group_tests_name("cm_listeners", tests, NULL, NULL);
}

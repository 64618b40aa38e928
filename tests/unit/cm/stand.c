/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The test stand. */
#include "stand.h"

#include <stdlib.h>
#include <string.h>

static struct stand *stand_of(struct vb_cm *cm)
{
	return cm->owner;
}

static void env_send(struct vb_cm *cm, const struct vb_cm_path *path,
		     const uint8_t mad[VB_MAD_BYTES])
{
	struct stand *s = stand_of(cm);

	assert_true(s->sents < STAND_RECORDS);
	s->sent_by[s->sents] = *path;
	s->sent_at[s->sents] = s->now;
	assert_int_equal(vb_cm_message_decode(mad, VB_MAD_BYTES, &s->sent[s->sents]),
			 VB_REASON_NONE);
	s->sents++;
}

static bool env_event(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_event *event)
{
	struct stand *s = stand_of(cm);
	struct stand_event *record = &s->event[s->events];

	if (s->refuse)
		return false;
	assert_true(s->events++ < STAND_RECORDS);
	memset(record, 0, sizeof(*record));
	record->conn = conn;
	record->event = *event;
	record->path = *event->path;
	record->state = conn->state;
	if (event->private_length)
		memcpy(record->private_data, event->private_data, event->private_length);
	return true;
}

static struct vb_cm_conn *env_alloc(struct vb_cm *cm)
{
	struct stand *s = stand_of(cm);

	for (unsigned int i = 0; i < s->allowed; i++) {
		if (s->used[i])
			continue;
		s->used[i] = true;
		s->live++;
		if (s->live > s->most)
			s->most = s->live;
		memset(&s->conns[i], 0xa5, sizeof(s->conns[i]));
		return &s->conns[i];
	}
	return NULL;
}

static void env_free(struct vb_cm *cm, struct vb_cm_conn *conn)
{
	struct stand *s = stand_of(cm);
	unsigned int i = (unsigned int)(conn - s->conns);

	assert_true(i < STAND_CONNS && s->used[i]);
	s->used[i] = false;
	s->live--;
	memset(conn, 0x5a, sizeof(*conn));
}

static void env_publish(struct vb_cm *cm, struct vb_cm_conn *conn)
{
	struct stand *s = cm->owner;

	assert_int_equal(conn->place, 0);
	conn->place = ++s->published;
}

static void env_withdraw(struct vb_cm *cm, struct vb_cm_conn *conn)
{
	struct stand *s = cm->owner;

	assert_int_not_equal(conn->place, 0);
	s->published--;
}

static uint32_t env_random(struct vb_cm *cm)
{
	return stand_of(cm)->random = stand_of(cm)->random * 1664525u + 1013904223u;
}

static void env_drop(struct vb_cm *cm, enum vb_reason reason, const struct vb_cm_path *path,
		     const uint8_t *mad)
{
	struct stand *s = stand_of(cm);

	(void)path;
	(void)mad;
	assert_true(s->drops < STAND_RECORDS);
	s->drop[s->drops++] = reason;
}

static const struct vb_cm_env env = {
	.send = env_send,
	.event = env_event,
	.publish = env_publish,
	.withdraw = env_withdraw,
	.conn_alloc = env_alloc,
	.conn_free = env_free,
	.random = env_random,
	.drop = env_drop,
};

void stand_v4(uint8_t gid[16], uint8_t last)
{
	const uint8_t value[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 1, [15] = last};

	memcpy(gid, value, 16);
}

void stand_v6(uint8_t gid[16], uint8_t last)
{
	const uint8_t value[16] = {[0] = 0xfd, [3] = 1, [15] = last};

	memcpy(gid, value, 16);
}

struct stand *stand_scaled(unsigned int scale)
{
	struct stand *s = calloc(1, sizeof(*s));
	struct vb_cm_setup setup = {.id_base = STAND_BASE, .id_bits = 18, .scale = scale};

	assert_non_null(s);
	s->now = 1000 * SECOND;
	s->random = 12345;
	s->allowed = STAND_CONNS;
	s->next_peer_id = STAND_PEER_ID;
	s->next_peer_qpn = STAND_PEERQPN;
	setup.owner = s;
	vb_cm_init(&s->cm, &env, &setup);
	stand_v4(s->path.sgid, 1);
	stand_v4(s->path.dgid, 2);
	s->path.ifindex = STAND_IFINDEX;
	s->path.guid = STAND_GUID;
	s->path.pkey = 0xffff;
	s->path.mtu = 3;
	s->path.hop_limit = 64;
	s->path.flow_label = 0x12345;
	s->path.ack_timeout = 19;
	s->listener.service_id = STAND_SERVICE;
	stand_v4(s->listener.address, 0);
	memset(s->listener.address + 12, 0, 4);
	s->datagrams = s->listener;
	s->datagrams.service_id = STAND_UD;
	s->datagrams.service = VB_CM_UD;
	assert_int_equal(vb_cm_listen(&s->cm, &s->listener), 0);
	assert_int_equal(vb_cm_listen(&s->cm, &s->datagrams), 0);
	return s;
}

struct stand *stand_new(void)
{
	return stand_scaled(0);
}

void stand_free(struct stand *s)
{
	vb_cm_end(&s->cm, s->now);
	assert_int_equal(s->live, 0);
	assert_int_equal(s->cm.conns, 0);
	assert_int_equal(s->cm.unreads, 0);
	assert_int_equal(s->cm.remembered, 0);
	assert_int_equal(vb_cm_deadline(&s->cm), 0);
	for (unsigned int of = 0; of < VB_CM_SENDERS; of++) {
		assert_int_equal(s->cm.senders.waiting[of], 0);
		for (unsigned int i = 0; i < VB_CM_SOURCE_BUCKETS; i++)
			assert_int_equal(s->cm.senders.sources[of][i], 0);
	}
	free(s);
}

void stand_clear(struct stand *s)
{
	s->sents = s->events = s->drops = 0;
}

static void put_addresses(const struct stand *s, struct vb_cm_message *m)
{
	struct vb_cm_address address = {.version = 4, .port = 40000};

	memcpy(address.source, s->path.dgid, 16);
	memcpy(address.destination, s->path.sgid, 16);
	vb_cm_address_encode(&address, m->private_data);
}

void stand_source(struct vb_cm_message *request, const uint8_t gid[16])
{
	struct vb_cm_address address;

	assert_true(vb_cm_address_decode(request->private_data, &address));
	memcpy(address.source, gid, sizeof(address.source));
	vb_cm_address_encode(&address, request->private_data);
}

struct vb_cm_message stand_req(struct stand *s)
{
	struct vb_cm_message m = {
		.attribute = VB_CM_REQ,
		.tid = 0x100000000ull | s->next_peer_id,
		.local_id = s->next_peer_id++,
		.req =
			{
				.service_id = STAND_SERVICE,
				.guid = STAND_PEER,
				.qpn = s->next_peer_qpn++,
				.psn = 0x00abcd,
				.pkey = 0xffff,
				.responder_resources = 3,
				.initiator_depth = 5,
				.retry_count = 6,
				.rnr_retry_count = 4,
				.mtu = 3,
				.remote_timeout = 20,
				.local_timeout = 20,
				.cm_retries = 15,
				.primary = {.hop_limit = 64,
					    .flow_label = 0x54321,
					    .ack_timeout = 19},
			},
	};

	memcpy(m.req.primary.local_gid, s->path.dgid, 16);
	memcpy(m.req.primary.remote_gid, s->path.sgid, 16);
	put_addresses(s, &m);
	memcpy(m.private_data + VB_CM_ADDRESS_BYTES, "hello", 6);
	return m;
}

struct vb_cm_message stand_sidr_req(struct stand *s)
{
	struct vb_cm_message m = {
		.attribute = VB_CM_SIDR_REQ,
		.tid = 0x100000000ull | s->next_peer_id,
		.local_id = s->next_peer_id++,
		.sidr_req = {.service_id = STAND_UD, .pkey = 0xffff},
	};

	put_addresses(s, &m);
	memcpy(m.private_data + VB_CM_ADDRESS_BYTES, "hello", 6);
	return m;
}

struct vb_cm_message stand_message(const struct stand *s, const struct vb_cm_conn *conn,
				   uint16_t attribute)
{
	struct vb_cm_message m = {
		.attribute = attribute,
		.tid = conn->tid,
		.local_id = conn->remote_id ? conn->remote_id : s->next_peer_id,
		.remote_id = conn->local_id,
	};

	switch (attribute) {
	case VB_CM_REP:
		m.rep = (struct vb_cm_rep){
			.guid = STAND_PEER,
			.qpn = conn->remote_qpn ? conn->remote_qpn : s->next_peer_qpn,
			.psn = 0x00dcba,
			.responder_resources = 9,
			.initiator_depth = 11,
			.rnr_retry_count = 2,
			.ack_delay = 15,
		};
		memcpy(m.private_data, "welcome", 8);
		break;
	case VB_CM_REJ:
		m.rej.reason = VB_CM_REJ_CONSUMER;
		m.rej.answered = VB_CM_ANSWERED_OTHER;
		memcpy(m.private_data, "no", 3);
		break;
	case VB_CM_MRA:
		m.mra.answered = conn->active ? VB_CM_ANSWERED_REQ : VB_CM_ANSWERED_REP;
		m.mra.service_timeout = 22; /* 17 s */
		break;
	case VB_CM_DREQ:
		m.dreq.remote_qpn = conn->local_qpn;
		break;
	case VB_CM_SIDR_REP:
		m.local_id = 0;
		m.sidr_rep = (struct vb_cm_sidr_rep){
			.service_id = STAND_UD, .qpn = STAND_PEERQPN, .qkey = 0x01234567};
		memcpy(m.private_data, "welcome", 8);
		break;
	default:
		break;
	}
	return m;
}

void stand_arrive_from(struct stand *s, const struct vb_cm_path *path,
		       const struct vb_cm_message *message)
{
	uint8_t mad[VB_MAD_BYTES];

	vb_cm_message_encode(message, mad);
	vb_cm_receive(&s->cm, path, mad, sizeof(mad), s->now);
}

void stand_arrive(struct stand *s, const struct vb_cm_message *message)
{
	stand_arrive_from(s, &s->path, message);
}

struct vb_cm_conn *stand_connect(struct stand *s)
{
	struct vb_cm_connect how = {
		.path = s->path,
		.service_id = STAND_SERVICE,
		.address = {.version = 4, .port = 50000},
		.qp_num = STAND_QPN,
		.psn = 0x00beef,
		.responder_resources = 1,
		.initiator_depth = 2,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.private_data = "hi",
		.private_length = 3,
	};
	struct vb_cm_conn *conn;

	memcpy(how.address.source, s->path.sgid, 16);
	memcpy(how.address.destination, s->path.dgid, 16);
	assert_int_equal(vb_cm_connect(&s->cm, &how, s->now, &conn), 0);
	return conn;
}

int stand_accept(struct stand *s, struct vb_cm_conn *conn)
{
	const struct vb_cm_accept how = {
		.qp_num = STAND_QPN,
		.psn = 0x00feed,
		.responder_resources = 5,
		.initiator_depth = 3,
		.rnr_retry_count = 7,
		.ack_delay = 15,
		.private_data = "yes",
		.private_length = 4,
	};

	return vb_cm_accept(&s->cm, conn, &how, s->now);
}

struct vb_cm_conn *stand_resolve(struct stand *s)
{
	struct vb_cm_sidr_request how = {
		.path = s->path,
		.service_id = STAND_UD,
		.address = {.version = 4, .port = 50000},
	};
	struct vb_cm_conn *conn;

	memcpy(how.address.source, s->path.sgid, 16);
	memcpy(how.address.destination, s->path.dgid, 16);
	assert_int_equal(vb_cm_sidr_request(&s->cm, &how, s->now, &conn), 0);
	return conn;
}

int stand_reply(struct stand *s, struct vb_cm_conn *conn)
{
	const struct vb_cm_sidr_reply how = {
		.qp_num = STAND_QPN,
		.qkey = 0x01234567,
		.private_data = "yes",
		.private_length = 4,
	};

	return vb_cm_sidr_reply(&s->cm, conn, &how, s->now);
}

void stand_release(struct stand *s, struct vb_cm_conn *conn)
{
	vb_cm_release(&s->cm, conn, s->now);
}

static struct vb_cm_conn *request_of_peer(struct stand *s, bool sidr)
{
	struct vb_cm_message m = sidr ? stand_sidr_req(s) : stand_req(s);

	stand_arrive(s, &m);
	assert_non_null(stand_event(s));
	vb_cm_taken(&s->cm, stand_event(s)->conn);
	return stand_event(s)->conn;
}

static void answer(struct stand *s, struct vb_cm_conn *conn, uint16_t attribute)
{
	struct vb_cm_message m = stand_message(s, conn, attribute);

	stand_arrive(s, &m);
	if (attribute == VB_CM_REP) { /* these numbers are taken now */
		s->next_peer_id++;
		s->next_peer_qpn++;
	}
}

static struct vb_cm_conn *established(struct stand *s, bool active)
{
	struct vb_cm_conn *conn = active ? stand_connect(s) : request_of_peer(s, false);

	if (active) {
		answer(s, conn, VB_CM_REP);
		assert_int_equal(vb_cm_establish(&s->cm, conn, s->now), 0);
		return conn;
	}
	assert_int_equal(stand_accept(s, conn), 0);
	answer(s, conn, VB_CM_RTU);
	return conn;
}

static struct vb_cm_conn *sidr_in(struct stand *s, enum vb_cm_state state, bool active)
{
	struct vb_cm_conn *conn;

	if (active != (state == VB_CM_SIDR_REQ_SENT))
		return NULL;
	if (active)
		return stand_resolve(s);
	conn = request_of_peer(s, true);
	if (state == VB_CM_SIDR_REP_SENT)
		assert_int_equal(stand_reply(s, conn), 0);
	return conn;
}

static struct vb_cm_conn *setup_in(struct stand *s, enum vb_cm_state state, bool active)
{
	struct vb_cm_conn *conn;

	switch (state) {
	case VB_CM_REQ_SENT:
		return active ? stand_connect(s) : NULL;
	case VB_CM_REQ_RCVD:
		return active ? NULL : request_of_peer(s, false);
	case VB_CM_REP_RCVD:
		conn = active ? stand_connect(s) : NULL;
		if (conn)
			answer(s, conn, VB_CM_REP);
		return conn;
	case VB_CM_REP_SENT:
		conn = active ? NULL : request_of_peer(s, false);
		if (conn)
			assert_int_equal(stand_accept(s, conn), 0);
		return conn;
	case VB_CM_REJ_SENT:
		conn = setup_in(s, active ? VB_CM_REP_RCVD : VB_CM_REQ_RCVD, active);
		vb_cm_reject(&s->cm, conn, VB_CM_REJ_CONSUMER, "no", 3, s->now);
		return conn;
	default: /* IDLE */
		conn = setup_in(s, active ? VB_CM_REQ_SENT : VB_CM_REQ_RCVD, active);
		answer(s, conn, VB_CM_REJ);
		stand_pass(s, 3 * SECOND); /* the passive side waits for late copies */
		return conn;
	}
}

static struct vb_cm_conn *in(struct stand *s, enum vb_cm_state state, bool active)
{
	struct vb_cm_conn *conn;

	switch (state) {
	case VB_CM_ESTABLISHED:
		return established(s, active);
	case VB_CM_DREQ_SENT:
		conn = established(s, active);
		assert_int_equal(vb_cm_disconnect(&s->cm, conn, s->now), 0);
		return conn;
	case VB_CM_DREQ_RCVD:
		conn = established(s, active);
		answer(s, conn, VB_CM_DREQ);
		return conn;
	case VB_CM_TIMEWAIT:
		conn = in(s, VB_CM_DREQ_SENT, active);
		answer(s, conn, VB_CM_DREP);
		return conn;
	case VB_CM_SIDR_REQ_SENT:
	case VB_CM_SIDR_REQ_RCVD:
	case VB_CM_SIDR_REP_SENT:
		return sidr_in(s, state, active);
	default:
		return setup_in(s, state, active);
	}
}

struct vb_cm_conn *stand_in(struct stand *s, enum vb_cm_state state, bool active)
{
	struct vb_cm_conn *conn = in(s, state, active);

	if (conn)
		assert_int_equal(conn->state, state);
	stand_clear(s);
	return conn;
}

void stand_pass(struct stand *s, uint64_t ns)
{
	uint64_t end = s->now + ns;
	uint64_t due;

	while ((due = vb_cm_deadline(&s->cm)) && due <= end) {
		if (due > s->now)
			s->now = due;
		vb_cm_expire(&s->cm, s->now);
	}
	s->now = end;
	vb_cm_expire(&s->cm, end);
}

const struct vb_cm_message *stand_last(const struct stand *s)
{
	return s->sents ? &s->sent[s->sents - 1] : NULL;
}

const struct stand_event *stand_event(const struct stand *s)
{
	return s->events ? &s->event[s->events - 1] : NULL;
}

unsigned int stand_count(const struct stand *s, uint16_t attribute)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < s->sents; i++)
		count += s->sent[i].attribute == attribute;
	return count;
}

unsigned int stand_dropped(const struct stand *s, enum vb_reason reason)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < s->drops; i++)
		count += s->drop[i] == reason;
	return count;
}

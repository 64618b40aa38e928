/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target: messages of the connection manager, and its core. What is decoded is encoded again to
 * a message that means the same; whatever arrives, between whatever calls, the core sends well-formed
 * messages, reports events of connections that the program has, and in the end keeps nothing.
 */
#include <string.h>

#include "cm_input.h"
#include "cm/cm.h"
#include "demand.h"
#include "input.h"
#include "wire/bytes.h"

#define CONNS 64u
#define BASE  0x00540000u

static struct fuzz {
	struct vb_cm cm;
	uint64_t now;
	struct vb_cm_conn conn[CONNS];
	bool used[CONNS];  /* the core has it */
	bool owned[CONNS]; /* and so has the program */
	struct vb_cm_listener listener[2];
	bool listening;
	bool refuse;
	uint32_t random;
} f;

static void v4(uint8_t gid[16], uint8_t last)
{
	const uint8_t value[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 1, [15] = last};

	memcpy(gid, value, 16);
}

static unsigned int index_of(const struct vb_cm_conn *conn)
{
	unsigned int i = (unsigned int)(conn - f.conn);

	DEMAND(i < CONNS && f.used[i]);
	return i;
}

static void env_send(struct vb_cm *cm, const struct vb_cm_path *path,
		     const uint8_t mad[VB_MAD_BYTES])
{
	struct vb_cm_message message;

	(void)cm;
	DEMAND(path->ifindex == 1);
	DEMAND(vb_cm_message_decode(mad, VB_MAD_BYTES, &message) == VB_REASON_NONE);
}

static bool is_request(enum vb_cm_event_type type)
{
	return type == VB_CM_EVENT_REQUEST || type == VB_CM_EVENT_SIDR_REQUEST;
}

static bool env_event(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_event *event)
{
	unsigned int i = index_of(conn);
	uint8_t sum = 0;

	(void)cm;
	DEMAND(event->type < VB_CM_EVENT_COUNT && event->path);
	DEMAND(f.owned[i] != is_request(event->type));
	for (unsigned int n = 0; n < event->private_length; n++)
		sum ^= event->private_data[n];
	f.random ^= sum;
	if (!is_request(event->type))
		return true;
	DEMAND(event->listener == &f.listener[event->type == VB_CM_EVENT_SIDR_REQUEST]);
	if (f.refuse)
		return false;
	f.owned[i] = true;
	return true;
}

static struct vb_cm_conn *env_alloc(struct vb_cm *cm)
{
	(void)cm;
	for (unsigned int i = 0; i < CONNS; i++) {
		if (!f.used[i]) {
			f.used[i] = true;
			f.owned[i] = false;
			memset(&f.conn[i], 0xa5, sizeof(f.conn[i]));
			return &f.conn[i];
		}
	}
	return NULL;
}

static void env_free(struct vb_cm *cm, struct vb_cm_conn *conn)
{
	unsigned int i = index_of(conn);

	(void)cm;
	DEMAND(!f.owned[i]);
	f.used[i] = false;
	memset(conn, 0x5a, sizeof(*conn));
}

static uint32_t env_random(struct vb_cm *cm)
{
	(void)cm;
	return f.random = f.random * 1664525u + 1013904223u;
}

static void env_drop(struct vb_cm *cm, enum vb_reason reason, const struct vb_cm_path *path,
		     const uint8_t *mad)
{
	(void)cm;
	(void)mad;
	DEMAND(reason >= VB_REASON_CM_MALFORMED && path);
}

static const struct vb_cm_env env = {
	.send = env_send,
	.event = env_event,
	.conn_alloc = env_alloc,
	.conn_free = env_free,
	.random = env_random,
	.drop = env_drop,
};

static void listen_again(void)
{
	if (f.listening)
		return;
	f.listening = true;
	memset(f.listener, 0, sizeof(f.listener));
	f.listener[0].service_id = vb_cm_service_id(0x106, 7174);
	f.listener[0].backlog = 20;
	f.listener[1].service_id = vb_cm_service_id(0x111, 7174);
	f.listener[1].service = VB_CM_UD;
	f.listener[1].backlog = 20;
	for (unsigned int i = 0; i < 2; i++)
		DEMAND(vb_cm_listen(&f.cm, &f.listener[i]) == 0);
}

static void unlisten(void)
{
	for (unsigned int i = 0; i < 2 && f.listening; i++)
		vb_cm_unlisten(&f.cm, &f.listener[i]);
	f.listening = false;
	memset(f.listener, 0xee, sizeof(f.listener));
}

static void start(void)
{
	const struct vb_cm_setup setup = {.id_base = BASE, .id_bits = 18, .owner = &f};

	memset(&f, 0, sizeof(f));
	f.now = 1000000000ull;
	f.random = 7;
	vb_cm_init(&f.cm, &env, &setup);
	listen_again();
}

static struct vb_cm_path path_to(uint8_t last)
{
	struct vb_cm_path path = {
		.ifindex = 1, .guid = 0x1111, .mtu = 3, .pkey = 0xffff, .ack_timeout = 19};

	v4(path.sgid, 2);
	v4(path.dgid, last);
	return path;
}

/* A connection that the program has, by a number; NULL: it has none. */
static struct vb_cm_conn *choose(unsigned int number)
{
	for (unsigned int i = 0; i < CONNS; i++) {
		unsigned int at = (number + i) % CONNS;

		if (f.owned[at])
			return &f.conn[at];
	}
	return NULL;
}

static void connect_or_resolve(bool resolve)
{
	struct vb_cm_conn *conn = NULL;
	struct vb_cm_connect how = {.path = path_to(1), .service_id = 0x1061c06, .qp_num = 0x11};
	struct vb_cm_sidr_request ask = {.path = how.path, .service_id = 0x1111c06};
	int rc = resolve ? vb_cm_sidr_request(&f.cm, &ask, f.now, &conn)
			 : vb_cm_connect(&f.cm, &how, f.now, &conn);

	if (!rc)
		f.owned[index_of(conn)] = true;
}

static void call_for(struct vb_cm_conn *conn, unsigned int what)
{
	const struct vb_cm_accept accept = {
		.qp_num = 0x12, .private_data = "yes", .private_length = 4};
	const struct vb_cm_sidr_reply reply = {.qp_num = 0x12, .qkey = 5};

	switch (what) {
	case CM_CALL_ACCEPT:
		vb_cm_accept(&f.cm, conn, &accept, f.now);
		break;
	case CM_CALL_ESTABLISH:
		vb_cm_establish(&f.cm, conn, f.now);
		break;
	case CM_CALL_REJECT:
		vb_cm_reject(&f.cm, conn, VB_CM_REJ_CONSUMER, "no", 3, f.now);
		break;
	case CM_CALL_DISCONNECT:
		vb_cm_disconnect(&f.cm, conn, f.now);
		break;
	case CM_CALL_NOTIFY:
		vb_cm_notify(&f.cm, conn, f.now);
		break;
	case CM_CALL_REPLY:
		vb_cm_sidr_reply(&f.cm, conn, &reply, f.now);
		break;
	case CM_CALL_RELEASE:
		f.owned[index_of(conn)] = false;
		vb_cm_release(&f.cm, conn, f.now);
		break;
	case CM_CALL_TAKEN:
		vb_cm_taken(&f.cm, conn);
		break;
	default:
		break;
	}
}

/* Everything ends; vb_cm_end() releases what the program has. */
static void end(void)
{
	memset(f.owned, 0, sizeof(f.owned));
	vb_cm_end(&f.cm, f.now);
	f.listening = false;
	DEMAND(!f.cm.conns && !f.cm.unreads && !f.cm.remembered);
	DEMAND(!vb_cm_deadline(&f.cm));
	for (unsigned int i = 0; i < CONNS; i++)
		DEMAND(!f.used[i]);
	for (unsigned int of = 0; of < VB_CM_SENDERS; of++) {
		DEMAND(!f.cm.senders.waiting[of]);
		for (unsigned int i = 0; i < VB_CM_SOURCE_BUCKETS; i++)
			DEMAND(!f.cm.senders.sources[of][i]);
	}
}

static void call(unsigned int what, unsigned int number)
{
	struct vb_cm_conn *conn = choose(number);

	switch (what) {
	case CM_CALL_CONNECT:
	case CM_CALL_RESOLVE:
		connect_or_resolve(what == CM_CALL_RESOLVE);
		break;
	case CM_CALL_UNLISTEN:
		unlisten();
		break;
	case CM_CALL_LISTEN:
		listen_again();
		break;
	case CM_CALL_DEVICE_LOST:
		vb_cm_device_lost(&f.cm, 1);
		break;
	case CM_CALL_LAST_WORDS:
		vb_cm_last_words(&f.cm);
		break;
	case CM_CALL_END:
		end();
		listen_again();
		break;
	default:
		if (conn)
			call_for(conn, what);
		break;
	}
}

static void pass(uint64_t ns)
{
	uint64_t due;

	f.now += ns;
	due = vb_cm_expire(&f.cm, f.now);
	DEMAND(!due || due > f.now);
}

/* The message in the name of the connection's peer. */
static void dress(struct vb_cm_message *m, const struct vb_cm_conn *conn, unsigned int control)
{
	if (control & CM_DO_IDS) {
		m->remote_id = conn->local_id;
		if (conn->remote_id)
			m->local_id = conn->remote_id;
	}
	if (!(control & CM_DO_NUMBERS))
		return;
	switch (m->attribute) {
	case VB_CM_REQ:
		m->req.qpn = conn->remote_qpn;
		m->req.guid = conn->remote_guid;
		v4(m->req.primary.local_gid, 1);
		v4(m->req.primary.remote_gid, 2);
		break;
	case VB_CM_REP:
		m->rep.qpn = conn->remote_qpn;
		break;
	case VB_CM_DREQ:
		m->dreq.remote_qpn = conn->local_qpn;
		break;
	case VB_CM_REJ:
		m->rej.info_length = 8;
		vb_put64(m->rej.info, conn->remote_guid);
		break;
	default:
		break;
	}
}

static void check_codec(const struct vb_cm_message *message, uint8_t mad[VB_MAD_BYTES])
{
	struct vb_cm_message again;
	uint8_t twice[VB_MAD_BYTES];

	vb_cm_message_encode(message, mad);
	DEMAND(vb_cm_message_judge(mad, VB_MAD_BYTES) == VB_REASON_NONE);
	DEMAND(vb_cm_message_decode(mad, VB_MAD_BYTES, &again) == VB_REASON_NONE);
	vb_cm_message_encode(&again, twice);
	DEMAND(!memcmp(mad, twice, sizeof(twice)));
	DEMAND(vb_cm_message_attribute(mad) == message->attribute);
	DEMAND(vb_cm_message_receiver(mad) == message->remote_id);
	DEMAND(vb_cm_message_sender(mad) == message->local_id);
}

static void arrive(const uint8_t *data, size_t size, unsigned int control, unsigned int number)
{
	const struct vb_cm_path path = path_to(control & CM_DO_OTHER ? 66 : 1);
	const struct vb_cm_conn *conn = choose(number);
	struct vb_cm_message message;
	uint8_t *mad = malloc(size > VB_MAD_BYTES ? size : VB_MAD_BYTES);

	if (!mad)
		return;
	memcpy(mad, data, size);
	if (vb_cm_message_decode(mad, size, &message) == VB_REASON_NONE) {
		uint8_t clean[VB_MAD_BYTES];

		check_codec(&message, clean);
		if (conn && control & (CM_DO_IDS | CM_DO_NUMBERS)) {
			dress(&message, conn, control);
			vb_cm_message_encode(&message, mad);
		}
	}
	f.refuse = control & CM_DO_REFUSE;
	vb_cm_receive(&f.cm, &path, mad, size, f.now);
	if (control & CM_DO_AGAIN)
		vb_cm_receive(&f.cm, &path, mad, size, f.now);
	f.refuse = false;
	free(mad);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	start();
	while (size >= INPUT_RECORD) {
		unsigned int control = data[0];
		unsigned int number = data[1] & 0x0f;
		unsigned int what = data[1] >> 4;
		size_t length = (size_t)data[2] | (size_t)data[3] << 8;

		data += INPUT_RECORD;
		size -= INPUT_RECORD;
		if (length > size)
			length = size;
		if (control & CM_DO_TIME)
			pass(1000ull << what * 3 % 32);
		if (control & CM_DO_CALL)
			call(what, number);
		if (length)
			arrive(data, length, control, number);
		data += length;
		size -= length;
	}
	for (unsigned int i = 0; i < CONNS; i++) {
		if (f.owned[i])
			call_for(&f.conn[i], CM_CALL_RELEASE);
	}
	/* Nothing outlives its tries and times; 17 MRAs are the longest. */
	while (vb_cm_deadline(&f.cm))
		pass(vb_cm_deadline(&f.cm) > f.now ? vb_cm_deadline(&f.cm) - f.now : 1);
	DEMAND(f.now < 3000000000000000ull);
	DEMAND(!f.cm.conns);
	end();
	return 0;
}

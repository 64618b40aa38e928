/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which requests may wait, and who is asked whether it exists (cm/senders.h). */
#include <limits.h>
#include <string.h>

#include "cm/core.h"

#define EPOCH_SHIFT 36 /* of ns: 69 s */

#define LATER(l)    ((struct vb_cm_conn *)(void *)((char *)(l)-offsetof(struct vb_cm_conn, later)))

static uint64_t hash_of(const struct vb_cm *cm, const struct vb_cm_path *path)
{
	return vb_cm_hash(cm, path->dgid, sizeof(path->dgid));
}

static enum vb_cm_sender sender_of(const struct vb_cm *cm, const struct vb_cm_path *path,
				   uint64_t now)
{
	uint64_t hash = hash_of(cm, path);
	uint64_t bucket = hash % VB_CM_KNOWN_BUCKETS;

	if (path->near)
		return VB_CM_SENDER_NEAR;
	return cm->senders.known[bucket].hash == hash && now < cm->senders.known[bucket].until
		       ? VB_CM_SENDER_KNOWN
		       : VB_CM_SENDER_UNKNOWN;
}

void vb_cm_sender_known(struct vb_cm *cm, const struct vb_cm_path *path, uint64_t now)
{
	uint64_t hash, bucket;

	if (path->near)
		return;
	hash = hash_of(cm, path);
	bucket = hash % VB_CM_KNOWN_BUCKETS;
	cm->senders.known[bucket].hash = hash;
	cm->senders.known[bucket].until = now + VB_CM_KNOWN_NS;
}

static uint16_t *source_count(struct vb_cm *cm, enum vb_cm_sender sender,
			      const struct vb_cm_path *path)
{
	return &cm->senders.sources[sender][hash_of(cm, path) % VB_CM_SOURCE_BUCKETS];
}

void vb_cm_wait_begin(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now)
{
	enum vb_cm_sender sender = sender_of(cm, &conn->path, now);

	conn->waits = (uint8_t)(1 + sender);
	cm->senders.waiting[sender]++;
	(*source_count(cm, sender, &conn->path))++;
}

static void later_remove(struct vb_cm *cm, struct vb_cm_conn *conn)
{
	if (!conn->later.next)
		cm->senders.latest = conn->later.place;
	vb_cm_link_remove(&conn->later);
}

/*
 * What has waited longest is told of when the timers run next, which is when no lock of an id is
 * held.
 */
static void later_arm(struct vb_cm *cm)
{
	if (cm->senders.later && cm->senders.waiting[VB_CM_SENDER_KNOWN] < VB_CM_WAIT_KNOWN)
		vb_cm_heap_set(&cm->timers, &LATER(cm->senders.later)->timer, 1);
}

void vb_cm_wait_end(struct vb_cm *cm, struct vb_cm_conn *conn)
{
	if (vb_cm_linked(&conn->later))
		later_remove(cm, conn);
	if (conn->waits) {
		cm->senders.waiting[conn->waits - 1]--;
		(*source_count(cm, conn->waits - 1, &conn->path))--;
		conn->waits = 0;
	}
	later_arm(cm);
}

void vb_cm_later_add(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_arrival *a)
{
	conn->released = true;
	memcpy(conn->mad, a->mad, sizeof(conn->mad));
	vb_cm_link_add(cm->senders.latest, &conn->later);
	cm->senders.latest = &conn->later.next;
}

static void later_begin(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now)
{
	struct vb_cm_message message;
	struct vb_cm_address address;
	const struct vb_cm_arrival a = {
		.message = &message, .path = &conn->path, .mad = conn->mad, .now = now};

	later_remove(cm, conn);
	vb_cm_heap_remove(&cm->timers, &conn->timer);
	/* Both were judged when the request came. */
	(void)vb_cm_message_decode(conn->mad, sizeof(conn->mad), &message);
	(void)vb_cm_address_decode(message.private_data, &address);
	conn->released = false;
	vb_cm_sender_known(cm, &conn->path, now); /* it was, when the request came */
	vb_cm_request_tell(cm, conn, &a, &address);
}

void vb_cm_later_tell(struct vb_cm *cm, uint64_t now)
{
	while (cm->senders.later && cm->senders.waiting[VB_CM_SENDER_KNOWN] < VB_CM_WAIT_KNOWN)
		later_begin(cm, LATER(cm->senders.later), now);
}

/* What the answer to a question has to repeat. Nothing is kept of those that were asked. */
static uint64_t question(const struct vb_cm *cm, const struct vb_cm_path *path, uint64_t epoch)
{
	uint8_t key[24];

	memcpy(key, path->dgid, 16);
	memcpy(key + 16, &epoch, sizeof(epoch));
	return vb_cm_hash(cm, key, sizeof(key));
}

uint32_t vb_cm_question_id(const struct vb_cm *cm)
{
	return cm->id_base | cm->id_mask;
}

bool vb_cm_question_answered(struct vb_cm *cm, const struct vb_cm_arrival *a)
{
	uint64_t epoch = a->now >> EPOCH_SHIFT, tid = a->message->tid;

	if (a->message->remote_id != vb_cm_question_id(cm) ||
	    (tid != question(cm, a->path, epoch) && tid != question(cm, a->path, epoch - 1)))
		return false;
	vb_cm_sender_known(cm, a->path, a->now);
	return true;
}

/*
 * A sender that has no request waiting finds room beyond the bounds: a flood from one address does
 * not keep the others out. One that is known finds more of it in the backlog: nor does a flood from
 * made up addresses.
 */
enum vb_cm_room vb_cm_request_room(struct vb_cm *cm, const struct vb_cm_listener *listener,
				   const struct vb_cm_arrival *a)
{
	static const unsigned int most[VB_CM_SENDERS] = {
		[VB_CM_SENDER_NEAR] = INT_MAX,
		[VB_CM_SENDER_KNOWN] = VB_CM_WAIT_KNOWN,
		[VB_CM_SENDER_UNKNOWN] = VB_CM_WAIT_UNKNOWN,
	};
	enum vb_cm_sender sender = sender_of(cm, a->path, a->now);
	unsigned int spare = !*source_count(cm, sender, a->path);
	unsigned int spare_unread = spare && sender != VB_CM_SENDER_UNKNOWN ? 2 : spare;
	bool unread = vb_cm_listener_room(cm, listener, spare_unread);

	if (unread && cm->senders.waiting[sender] < vb_cm_with_spare(most[sender], spare))
		return VB_CM_ROOM_NOW;
	/* A program that is slow to read is no reason to give up what it has accepted. */
	if (unread)
		cm->senders.pressed_until = a->now + cm->times.remember;
	if (unread && sender == VB_CM_SENDER_KNOWN && a->message->attribute == VB_CM_REQ)
		return VB_CM_ROOM_LATER;
	vb_cm_drop(cm, unread ? VB_REASON_CM_HALF_OPEN : VB_REASON_CM_BACKLOG, a);
	if (sender == VB_CM_SENDER_UNKNOWN)
		vb_cm_send_question(cm, a, question(cm, a->path, a->now >> EPOCH_SHIFT));
	return VB_CM_ROOM_NONE;
}

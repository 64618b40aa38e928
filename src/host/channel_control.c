/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages about channels: the three answers to a request, and the end of one. channel_open.c serves
 * the request.
 */
#include <errno.h>
#include <string.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/reason.h"
#include "host/channel_private.h"
#include "host/control.h"
#include "host/descriptor.h"
#include "host/private.h"
#include "host/rack.h"

/* Answers queued for a peer that goes on asking without reading. */
#define ANSWERS_WAITING 32768u

void vb_channel_answer_with(struct vb_node *node, struct vb_peer *peer,
			    const struct vb_control *msg, int fd)
{
	struct vb_connection *conn = vb_connection_of(node, peer);

	if (conn && conn->queued > ANSWERS_WAITING)
		vb_peer_reject(peer, "it asks and takes no answer");
	if (conn)
		vb_connection_send(node, conn, msg, &fd, fd < 0 ? 0 : 1, true);
	else
		vb_descriptor_close(fd);
}

void vb_channel_answer(struct vb_node *node, struct vb_peer *peer, enum vb_control_type type,
		       uint32_t to_id)
{
	struct vb_control msg = {.type = type, .to_id = to_id};

	vb_channel_answer_with(node, peer, &msg, -1);
}

void vb_channel_refuse_for_room(struct vb_node *node, struct vb_peer *peer, uint32_t to_id)
{
	struct vb_control msg = {
		.type = VB_CONTROL_REFUSE, .to_id = to_id, .parts = VB_CONTROL_NO_ROOM};

	vb_note(VB_REASON_DESCRIPTORS_SHORT, "process %u: no descriptor left for a channel",
		vb_peer_pid(peer));
	vb_channel_answer_with(node, peer, &msg, -1);
}

int vb_channel_rack_see(struct vb_peer *peer, const struct vb_channel_arrival *a)
{
	const char *defect = NULL;
	int err = vb_rack_see(peer, a->conn, a->msg, a->fds, a->num_fds, &defect);

	if (err == -EBADMSG)
		vb_peer_reject(peer, defect);
	return err;
}

int vb_channel_half_take(struct vb_channel *ch, const struct vb_control *msg)
{
	const char *defect = NULL;
	int err = vb_rack_take(ch, msg, &defect);

	if (err)
		vb_peer_reject(ch->peer, defect);
	return err;
}

void vb_channel_refuse(struct vb_channel *ch, enum vb_contact why)
{
	ch->stage = VB_CHANNEL_REFUSED;
	ch->refusal = why;
	ch->asked_at = vb_node_clock();
}

/*
 * The peer's request for the same channel stands. It may wait for long among others; until then
 * nobody here asks again. It may also have come before the answer.
 */
static void give_way(struct vb_node *node, struct vb_channel *ch)
{
	const struct vb_channel *up = vb_channel_between(ch->peer, ch->engine, ch->remote_engine);

	ch->theirs = true;
	ch->asked_at = vb_node_clock();
	if (up && up->stage == VB_CHANNEL_UP)
		vb_channel_retire(node, ch);
}

/* The request that the message answers, or NULL: this side waits for no such answer. */
static struct vb_channel *request_of(const struct vb_peer *peer, const struct vb_control *msg)
{
	struct vb_channel *ch = vb_channel_by_id(peer, msg->to_id);

	return ch && ch->stage == VB_CHANNEL_ASKED && ch->ask_sent ? ch : NULL;
}

/*
 * The caller holds the lock. True if this side had sent such a request, and who waits for it must
 * ask again.
 */
static bool refusal_receive(struct vb_node *node, struct vb_peer *peer,
			    const struct vb_control *msg)
{
	struct vb_channel *ch = request_of(peer, msg);

	if (!ch)
		return false;
	vb_channel_answered(ch);
	if (msg->type == VB_CONTROL_REFUSE && msg->parts & VB_CONTROL_NO_ROOM)
		vb_racks_shut(peer);
	if (msg->type == VB_CONTROL_DUPLICATE) {
		give_way(node, ch);
		return false;
	}
	vb_channel_refuse(ch, msg->parts & VB_CONTROL_NO_ROOM ? VB_CONTACT_SHORT_THERE
							      : VB_CONTACT_ABSENT);
	return true;
}

/*
 * The caller holds the lock. The peer's end is up, and ends again. True if this side had sent such
 * a request.
 */
static bool accept_stripped(struct vb_node *node, struct vb_peer *peer,
			    const struct vb_control *msg)
{
	struct vb_channel *ch = request_of(peer, msg);

	vb_channel_tell_closed(node, peer, msg->from_id, VB_CONTROL_NO_ROOM);
	if (!ch)
		return false;
	vb_channel_answered(ch);
	vb_note(VB_REASON_DESCRIPTORS_SHORT, "process %u: no descriptor left for a channel",
		vb_peer_pid(peer));
	vb_channel_refuse(ch, VB_CONTACT_SHORT_HERE);
	return true;
}

/*
 * The caller holds the lock. The request was given up meanwhile: its engine was closed, or the
 * connection was lost. The peer's end would lead nowhere, so it ends again. Its rack stays known,
 * because later messages may name it.
 */
static void accept_unasked(struct vb_node *node, const struct vb_channel_arrival *a)
{
	struct vb_peer *peer = a->conn->peer;
	const char *defect = NULL;

	if (!vb_rack_see(peer, a->conn, a->msg, a->fds, a->num_fds, &defect))
		vb_rack_pass_over(peer, a->msg);
	vb_channel_tell_closed(node, peer, a->msg->from_id, 0);
}

/*
 * The caller holds the lock. The new end, or NULL. *changed: a request has failed, and who waits for
 * it must ask again.
 */
static struct vb_channel *accept_receive(struct vb_node *node, const struct vb_channel_arrival *a,
					 bool *changed)
{
	struct vb_peer *peer = a->conn->peer;
	struct vb_channel *ch = request_of(peer, a->msg);

	*changed = false;
	if (!ch) {
		accept_unasked(node, a);
		return NULL;
	}
	int err = vb_channel_rack_see(peer, a);

	if (err == -EMFILE) {
		*changed = accept_stripped(node, peer, a->msg);
		return NULL;
	}
	vb_channel_answered(ch);
	if (err || vb_channel_half_take(ch, a->msg)) {
		vb_channel_retire(node, ch);
		return NULL;
	}
	ch->remote_id = a->msg->from_id;
	vb_channel_bring_up(ch);
	return ch;
}

/* Without the lock: who waits for channels to this peer is to ask again. */
static void tell_changed(struct vb_node *node, const struct vb_peer *peer, bool changed)
{
	if (!changed)
		return;
	vb_channel_news_peer(peer);
	if (node->events.contact_changed)
		node->events.contact_changed(node->events.arg);
}

void vb_channel_stripped(struct vb_node *node, struct vb_peer *peer, const struct vb_control *msg)
{
	bool changed = false;

	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	peer->racks_lost = true;
	if (msg->type == VB_CONTROL_OPEN)
		vb_channel_refuse_for_room(node, peer, msg->from_id);
	else if (msg->type == VB_CONTROL_ACCEPT)
		changed = accept_stripped(node, peer, msg);
	changed |= vb_channel_asks_send(node, peer);
	vb_mutex_release(&node->lock);
	tell_changed(node, peer, changed);
}

void vb_channel_down(struct vb_channel *ch)
{
	ch->stage = VB_CHANNEL_DOWN;
	atomic_store(&ch->dead, true);
}

void vb_channel_report_down(struct vb_node *node, struct vb_channel *ch)
{
	if (!ch)
		return;
	vb_channel_news_peer(ch->peer);
	if (node->events.channel_down)
		node->events.channel_down(node->events.arg, ch->engine, ch);
}

/*
 * The caller holds the lock. The end that was up, or NULL. *changed: as for accept_receive(); the
 * peer has closed its end before the ACCEPT was read, which comes by another connection.
 */
static struct vb_channel *close_receive(struct vb_peer *peer, const struct vb_control *msg,
					bool *changed)
{
	struct vb_channel *ch = vb_channel_by_id(peer, msg->to_id);

	if (msg->parts & VB_CONTROL_NO_ROOM)
		vb_racks_shut(peer);
	*changed = request_of(peer, msg);
	if (*changed) {
		vb_channel_answered(ch);
		vb_channel_refuse(ch, VB_CONTACT_ABSENT);
	}
	if (!ch || ch->stage != VB_CHANNEL_UP)
		return NULL;
	vb_channel_down(ch);
	return ch;
}

bool vb_channel_announce(struct vb_node *node, struct vb_channel *ch)
{
	vb_channel_news_peer(ch->peer);
	return !node->events.channel_up ||
	       !node->events.channel_up(node->events.arg, ch->engine, ch);
}

static void accept_serve(struct vb_node *node, const struct vb_channel_arrival *a)
{
	struct vb_peer *peer = a->conn->peer;
	bool changed;

	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	struct vb_channel *ch = accept_receive(node, a, &changed);

	changed |= vb_channel_asks_send(node, peer);
	vb_mutex_release(&node->lock);
	tell_changed(node, peer, changed);
	if (ch && !vb_channel_announce(node, ch)) {
		vb_log(VB_LOG_DEBUG, "channel for engine %u, which is gone", ch->engine);
		vb_mutex_take(&node->lock, VB_ORDER_NODE);
		vb_channel_end(node, ch);
		vb_mutex_release(&node->lock);
	}
}

void vb_channel_message(struct vb_node *node, const struct vb_connection *conn,
			const struct vb_control *msg, const int *fds, int num_fds)
{
	const struct vb_channel_arrival arrival = {conn, msg, fds, num_fds};
	struct vb_peer *peer = conn->peer;
	struct vb_channel *down = NULL;
	bool changed = false;

	if (msg->type == VB_CONTROL_OPEN) {
		vb_channel_open_serve(node, &arrival);
		return;
	}
	if (msg->type == VB_CONTROL_ACCEPT) {
		accept_serve(node, &arrival);
		return;
	}
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	switch (msg->type) {
	case VB_CONTROL_REFUSE:
	case VB_CONTROL_DUPLICATE:
		changed = refusal_receive(node, peer, msg);
		changed |= vb_channel_asks_send(node, peer);
		break;
	case VB_CONTROL_CLOSE:
		down = close_receive(peer, msg, &changed);
		changed |= vb_channel_asks_send(node, peer);
		break;
	default:
		vb_peer_reject(peer, "it sent a message of no known type");
	}
	vb_mutex_release(&node->lock);
	vb_channel_report_down(node, down);
	tell_changed(node, peer, changed);
}

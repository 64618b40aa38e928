/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages about channels: the request for one, the three answers, and the end of one. */
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

/* A peer needs no more than one for each queue pair. One that has gone wrong is stopped here. */
#define CHANNELS_PER_PEER     VB_MAX_QPS
/* Each costs memory for a ring, which another user gets only within a bound. */
#define CHANNELS_PER_STRANGER 64u
/* Answers queued for a peer that goes on asking without reading. */
#define ANSWERS_WAITING       32768u

static void answer_with(struct vb_node *node, struct vb_peer *peer, const struct vb_control *msg,
			int fd)
{
	struct vb_connection *conn = vb_connection_of(node, peer);

	if (conn && conn->queued > ANSWERS_WAITING)
		vb_peer_reject(peer, "it asks and takes no answer");
	if (conn)
		vb_connection_send(node, conn, msg, &fd, fd < 0 ? 0 : 1, true);
	else
		vb_descriptor_close(fd);
}

static void answer(struct vb_node *node, struct vb_peer *peer, enum vb_control_type type,
		   uint32_t to_id)
{
	struct vb_control msg = {.type = type, .to_id = to_id};

	answer_with(node, peer, &msg, -1);
}

/* No descriptor is left here for a ring. */
static void refuse_for_room(struct vb_node *node, struct vb_peer *peer, uint32_t to_id)
{
	struct vb_control msg = {
		.type = VB_CONTROL_REFUSE, .to_id = to_id, .parts = VB_CONTROL_NO_ROOM};

	vb_note(VB_REASON_DESCRIPTORS_SHORT, "process %u: no descriptor left for a channel",
		vb_peer_pid(peer));
	answer_with(node, peer, &msg, -1);
}

static bool may_have_more(const struct vb_peer *peer)
{
	bool few = peer->stranger && !peer->agrees;

	if (peer->num_channels < (few ? CHANNELS_PER_STRANGER : CHANNELS_PER_PEER))
		return true;
	vb_note(VB_REASON_STRANGERS, "process %u of user %u has %u channels: no more",
		vb_peer_pid(peer), peer->uid, peer->num_channels);
	return false;
}

/* What the message brought with it. */
struct arrival {
	const struct vb_connection *conn;
	const struct vb_control *msg;
	const int *fds;
	int num_fds;
};

/* The rack that the message names. -EMFILE: it is not known here. -EBADMSG: the peer is rejected. */
static int rack_see(struct vb_peer *peer, const struct arrival *a)
{
	const char *defect = NULL;
	int err = vb_rack_see(peer, a->conn, a->msg, a->fds, a->num_fds, &defect);

	if (err == -EBADMSG)
		vb_peer_reject(peer, defect);
	return err;
}

static int half_take(struct vb_channel *ch, const struct vb_control *msg)
{
	const char *defect = NULL;
	int err = vb_rack_take(ch, msg, &defect);

	if (err)
		vb_peer_reject(ch->peer, defect);
	return err;
}

/* Both sides asked for the same channel. The request of the side with the smaller nonce stands. */
static bool request_stands(const struct vb_node *node, const struct vb_peer *peer, uint32_t engine,
			   uint32_t remote_engine)
{
	if (node->nonce > peer->nonce)
		return false;
	const struct vb_channel *ch = vb_channel_between(peer, engine, remote_engine);

	return ch && ch->stage == VB_CHANNEL_ASKED && !ch->theirs;
}

/* The channel is there: this side's request for it is not to be sent, or is waited for no more. */
static void own_request_end(struct vb_node *node, const struct vb_channel *ch)
{
	struct vb_channel *request = vb_channel_request(ch->peer, ch->engine, ch->remote_engine);

	if (request)
		vb_channel_retire(node, request);
}

/* The caller holds the lock. A new end with both halves, or NULL and -errno. */
static struct vb_channel *end_make(struct vb_node *node, struct vb_peer *peer,
				   const struct vb_control *msg, struct vb_control *accept,
				   int *half, int *err)
{
	const struct vb_connection *conn = vb_connection_of(node, peer);
	struct vb_channel *ch = vb_channel_new(node, peer, msg->to_engine, msg->from_engine);

	*err = ch ? 0 : -ENOMEM;
	if (!ch)
		return NULL;
	vb_channel_link(ch);
	*err = half_take(ch, msg);
	if (!*err)
		*err = conn ? vb_rack_give(ch, conn, accept, half) : -ENOTCONN;
	if (!*err) {
		vb_rack_hold(ch, *half >= 0);
		ch->remote_id = msg->from_id;
		vb_channel_bring_up(ch);
		own_request_end(node, ch);
		return ch;
	}
	vb_channel_retire(node, ch);
	return NULL;
}

/*
 * The caller holds the lock. Returns the new end, whose half `accept` and its descriptor name, or
 * NULL when the request was answered otherwise.
 */
static struct vb_channel *open_receive(struct vb_node *node, const struct arrival *a,
				       struct vb_control *accept, int *half)
{
	const struct vb_control *msg = a->msg;
	struct vb_peer *peer = a->conn->peer;
	struct vb_channel *ch = NULL;
	int err = 0;

	if (msg->from_engine >= VB_MAX_ENGINES) {
		vb_peer_reject(peer, "it asked for a channel from an impossible engine");
		return NULL;
	}
	bool more = may_have_more(peer);

	/* Later messages name it, too. */
	peer->racks_lost |= !more;
	if (more)
		err = rack_see(peer, a);
	if (!err && more && !request_stands(node, peer, msg->to_engine, msg->from_engine) &&
	    vb_node_has_engine(node, msg->to_engine))
		ch = end_make(node, peer, msg, accept, half, &err);
	if (ch)
		return ch;
	if (more && !err)
		vb_rack_pass_over(peer, msg);
	if (err == -EMFILE || err == -ENFILE)
		refuse_for_room(node, peer, msg->from_id);
	else if (request_stands(node, peer, msg->to_engine, msg->from_engine))
		answer(node, peer, VB_CONTROL_DUPLICATE, msg->from_id);
	else
		answer(node, peer, VB_CONTROL_REFUSE, msg->from_id);
	return NULL;
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

/*
 * The caller holds the lock. True if this side had sent such a request, and who waits for it must
 * ask again.
 */
static bool refusal_receive(struct vb_node *node, struct vb_peer *peer,
			    const struct vb_control *msg)
{
	struct vb_channel *ch = vb_channel_by_id(peer, msg->to_id);

	if (!ch || ch->stage != VB_CHANNEL_ASKED || !ch->ask_sent)
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
	struct vb_channel *ch = vb_channel_by_id(peer, msg->to_id);

	if (!ch || ch->stage != VB_CHANNEL_ASKED || !ch->ask_sent)
		return false;
	vb_channel_answered(ch);
	vb_note(VB_REASON_DESCRIPTORS_SHORT, "process %u: no descriptor left for a channel",
		vb_peer_pid(peer));
	ch->remote_id = msg->from_id;
	vb_channel_tell_closed(node, ch, VB_CONTROL_NO_ROOM);
	vb_channel_refuse(ch, VB_CONTACT_SHORT_HERE);
	return true;
}

/*
 * The caller holds the lock. The new end, or NULL. *changed: a request has failed, and who waits for
 * it must ask again.
 */
static struct vb_channel *accept_receive(struct vb_node *node, const struct arrival *a,
					 bool *changed)
{
	struct vb_peer *peer = a->conn->peer;
	struct vb_channel *ch = vb_channel_by_id(peer, a->msg->to_id);

	*changed = false;
	if (!ch || ch->stage != VB_CHANNEL_ASKED || !ch->ask_sent)
		return NULL;
	int err = rack_see(peer, a);

	if (err == -EMFILE) {
		*changed = accept_stripped(node, peer, a->msg);
		return NULL;
	}
	vb_channel_answered(ch);
	if (err || half_take(ch, a->msg)) {
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
		refuse_for_room(node, peer, msg->from_id);
	else if (msg->type == VB_CONTROL_ACCEPT)
		changed = accept_stripped(node, peer, msg);
	changed |= vb_channel_asks_send(node, peer);
	vb_mutex_release(&node->lock);
	tell_changed(node, peer, changed);
}

/* The caller holds the lock. */
static struct vb_channel *close_receive(struct vb_peer *peer, const struct vb_control *msg)
{
	struct vb_channel *ch = vb_channel_by_id(peer, msg->to_id);

	if (msg->parts & VB_CONTROL_NO_ROOM)
		vb_racks_shut(peer);
	if (!ch || ch->stage != VB_CHANNEL_UP)
		return NULL;
	ch->stage = VB_CHANNEL_DOWN;
	atomic_store(&ch->dead, true);
	return ch;
}

/* The device takes the new end, or has no such engine (any more). */
static bool announce(struct vb_node *node, struct vb_channel *ch)
{
	vb_channel_news_peer(ch->peer);
	return !node->events.channel_up ||
	       !node->events.channel_up(node->events.arg, ch->engine, ch);
}

static void open_serve(struct vb_node *node, const struct arrival *a)
{
	struct vb_control accept = {.type = VB_CONTROL_ACCEPT, .to_id = a->msg->from_id};
	struct vb_peer *peer = a->conn->peer;
	int half = -1;

	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	struct vb_channel *ch = open_receive(node, a, &accept, &half);

	vb_mutex_release(&node->lock);
	if (!ch)
		return;
	bool taken = announce(node, ch);

	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	/* It may have been closed again by now; the struct lasts until the end of this turn. */
	if (taken && ch->stage == VB_CHANNEL_UP) {
		accept.from_id = ch->id;
		answer_with(node, peer, &accept, half);
		vb_rack_hold(ch, false);
	} else {
		/* It was to be shown with this message. */
		if (half >= 0)
			vb_racks_shut(peer);
		vb_descriptor_close(half);
		answer(node, peer, VB_CONTROL_REFUSE, a->msg->from_id);
		if (!taken)
			vb_channel_retire(node, ch);
	}
	vb_mutex_release(&node->lock);
}

static void accept_serve(struct vb_node *node, const struct arrival *a)
{
	struct vb_peer *peer = a->conn->peer;
	bool changed;

	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	struct vb_channel *ch = accept_receive(node, a, &changed);

	changed |= vb_channel_asks_send(node, peer);
	vb_mutex_release(&node->lock);
	tell_changed(node, peer, changed);
	if (ch && !announce(node, ch)) {
		vb_log(VB_LOG_DEBUG, "channel for engine %u, which is gone", ch->engine);
		vb_mutex_take(&node->lock, VB_ORDER_NODE);
		vb_channel_end(node, ch);
		vb_mutex_release(&node->lock);
	}
}

void vb_channel_message(struct vb_node *node, const struct vb_connection *conn,
			const struct vb_control *msg, const int *fds, int num_fds)
{
	const struct arrival arrival = {conn, msg, fds, num_fds};
	struct vb_peer *peer = conn->peer;
	struct vb_channel *down = NULL;
	bool changed = false;

	if (msg->type == VB_CONTROL_OPEN) {
		open_serve(node, &arrival);
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
		down = close_receive(peer, msg);
		break;
	default:
		vb_peer_reject(peer, "it sent a message of no known type");
	}
	vb_mutex_release(&node->lock);
	if (down)
		vb_channel_news_peer(peer);
	if (down && node->events.channel_down)
		node->events.channel_down(node->events.arg, down->engine, down);
	tell_changed(node, peer, changed);
}

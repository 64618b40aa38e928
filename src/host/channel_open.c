/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer's request for a channel. There is one channel at most between an engine of this process and
 * one of the peer's, also where both ask at the same moment.
 */
#include <errno.h>

#include "base/lock.h"
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

static bool may_have_more(const struct vb_peer *peer)
{
	bool few = peer->stranger && !peer->agrees;

	if (peer->num_channels < (few ? CHANNELS_PER_STRANGER : CHANNELS_PER_PEER))
		return true;
	vb_note(VB_REASON_STRANGERS, "process %u of user %u has %u channels: no more",
		vb_peer_pid(peer), peer->uid, peer->num_channels);
	return false;
}

/*
 * Both sides have asked for the same channel, and the peer's request is void. While neither is
 * answered, that of the side with the smaller nonce stands. Later, it is this side's that the peer
 * has accepted: two processes that have called each other have two connections, and the answer may
 * be read before a request that was sent first. Numbers are given in sequence, so a request that is
 * older than the peer's end of the channel was made before it.
 */
static bool is_void(const struct vb_node *node, const struct vb_peer *peer,
		    const struct vb_control *msg)
{
	const struct vb_channel *ch = vb_channel_between(peer, msg->to_engine, msg->from_engine);

	if (!ch)
		return false;
	if (ch->stage == VB_CHANNEL_UP)
		return (int32_t)(msg->from_id - ch->remote_id) < 0;
	return ch->stage == VB_CHANNEL_ASKED && !ch->theirs && node->nonce < peer->nonce;
}

/*
 * A peer does not ask for a channel of which it has an end. The message that closes the end before
 * is on its way by another connection, or was lost with one. Returns this side's end of it, or NULL.
 */
static struct vb_channel *old_end(const struct vb_peer *peer, const struct vb_control *msg)
{
	struct vb_channel *ch = vb_channel_between(peer, msg->to_engine, msg->from_engine);

	if (!ch || ch->stage != VB_CHANNEL_UP)
		return NULL;
	vb_channel_down(ch);
	return ch;
}

/* The channel is there: this side's requests for it are not sent, or are waited for no more. */
static void own_requests_end(struct vb_node *node, const struct vb_channel *ch)
{
	struct vb_channel *request;

	while ((request = vb_channel_request(ch->peer, ch->engine, ch->remote_engine)))
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
	*err = vb_channel_half_take(ch, msg);
	if (!*err)
		*err = conn ? vb_rack_give(ch, conn, accept, half) : -ENOTCONN;
	if (!*err) {
		vb_rack_hold(ch, *half >= 0);
		ch->remote_id = msg->from_id;
		vb_channel_bring_up(ch);
		own_requests_end(node, ch);
		return ch;
	}
	vb_channel_retire(node, ch);
	return NULL;
}

/*
 * The caller holds the lock. Returns the new end, whose half `accept` and its descriptor name, or
 * NULL when the request was answered otherwise. *old: an end that is of no use any more, or NULL.
 */
static struct vb_channel *open_receive(struct vb_node *node, const struct vb_channel_arrival *a,
				       struct vb_control *accept, int *half,
				       struct vb_channel **old)
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
	bool void_now = is_void(node, peer, msg);

	/* Later messages name it, too. */
	peer->racks_lost |= !more;
	if (more)
		err = vb_channel_rack_see(peer, a);
	if (!void_now)
		*old = old_end(peer, msg);
	if (!err && more && !void_now && vb_node_has_engine(node, msg->to_engine))
		ch = end_make(node, peer, msg, accept, half, &err);
	if (ch)
		return ch;
	if (more && !err)
		vb_rack_pass_over(peer, msg);
	if (err == -EMFILE || err == -ENFILE)
		vb_channel_refuse_for_room(node, peer, msg->from_id);
	else if (void_now)
		vb_channel_answer(node, peer, VB_CONTROL_DUPLICATE, msg->from_id);
	else
		vb_channel_answer(node, peer, VB_CONTROL_REFUSE, msg->from_id);
	return NULL;
}

void vb_channel_open_serve(struct vb_node *node, const struct vb_channel_arrival *a)
{
	struct vb_control accept = {.type = VB_CONTROL_ACCEPT, .to_id = a->msg->from_id};
	struct vb_peer *peer = a->conn->peer;
	struct vb_channel *old = NULL;
	int half = -1;

	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	struct vb_channel *ch = open_receive(node, a, &accept, &half, &old);

	vb_mutex_release(&node->lock);
	vb_channel_report_down(node, old);
	if (!ch)
		return;
	bool taken = vb_channel_announce(node, ch);

	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	/* It may have been closed again by now; the struct lasts until the end of this turn. */
	if (taken && ch->stage == VB_CHANNEL_UP) {
		accept.from_id = ch->id;
		vb_channel_answer_with(node, peer, &accept, half);
		vb_rack_hold(ch, false);
	} else {
		/* It was to be shown with this message. */
		if (half >= 0)
			vb_racks_shut(peer);
		vb_descriptor_close(half);
		vb_channel_answer(node, peer, VB_CONTROL_REFUSE, a->msg->from_id);
		if (!taken)
			vb_channel_retire(node, ch);
	}
	vb_mutex_release(&node->lock);
}

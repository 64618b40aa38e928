/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests for channels. Some of them hold a descriptor of both processes while they are under way
 * (host/rack.h), so only so many are at a time; the others wait in a queue of the peer, and none of
 * them is made twice. A process may need thousands, and the queue pairs that wait do not ask
 * meanwhile. The first ones wait until the peer has answered the question for its memory (ask.c),
 * so that the memory comes before them and the first WRITE goes to it directly.
 */
#include <errno.h>

#include "base/list.h"
#include "base/lock.h"
#include "base/log.h"
#include "host/channel_private.h"
#include "host/control.h"
#include "host/private.h"
#include "host/rack.h"

/* Requests of one peer that are sent and not answered. */
#define ASKS_AT_ONCE 192u

static void queue_add(struct vb_peer *peer, struct vb_channel *ch)
{
	VB_LIST_APPEND(peer->asks, peer->asks_last, ch, ask_next, ask_prev);
	ch->ask_waits = true;
}

static void queue_remove(struct vb_peer *peer, struct vb_channel *ch)
{
	VB_LIST_REMOVE_FROM(peer->asks, peer->asks_last, ch, ask_next, ask_prev);
	ch->ask_waits = false;
}

void vb_channel_answered(struct vb_channel *ch)
{
	if (!ch->ask_sent)
		return;
	ch->ask_sent = false;
	ch->peer->asking--;
}

void vb_channel_ask_forget(struct vb_channel *ch)
{
	if (ch->ask_waits)
		queue_remove(ch->peer, ch);
	vb_channel_answered(ch);
}

/* What is wanted here. */
static enum vb_contact want_of(int err)
{
	if (err == -EMFILE || err == -ENFILE)
		return VB_CONTACT_SHORT_HERE;
	return err == -ENOMEM ? VB_CONTACT_NO_MEMORY : VB_CONTACT_ABSENT;
}

/* False: this side has no ring for it now. */
static bool ask_send(struct vb_node *node, struct vb_connection *conn, struct vb_channel *ch)
{
	struct vb_control msg = {
		.type = VB_CONTROL_OPEN,
		.from_id = ch->id,
		.from_engine = ch->engine,
		.to_engine = ch->remote_engine,
	};
	int fd;
	int err = vb_rack_give(ch, conn, &msg, &fd);

	if (err) {
		vb_channel_refuse(ch, want_of(err));
		return false;
	}
	ch->ask_sent = true;
	ch->peer->asking++;
	vb_connection_send(node, conn, &msg, &fd, fd < 0 ? 0 : 1, true);
	return true;
}

bool vb_channel_asks_send(struct vb_node *node, struct vb_peer *peer)
{
	struct vb_connection *conn = vb_connection_of(node, peer);
	bool failed = false;

	while (conn && !peer->ask.first && peer->asks && peer->asking < ASKS_AT_ONCE) {
		struct vb_channel *ch = peer->asks;

		queue_remove(peer, ch);
		if (vb_node_has_engine(node, ch->engine))
			failed |= !ask_send(node, conn, ch);
		else
			vb_channel_retire(node, ch);
	}
	return failed;
}

bool vb_channel_asks_go_on(struct vb_node *node, struct vb_peer *peer)
{
	bool failed = peer->asks && vb_channel_asks_send(node, peer);

	if (failed)
		vb_channel_news_peer(peer);
	return failed;
}

enum vb_contact vb_channel_ask(struct vb_node *node, struct vb_peer *peer, uint32_t block,
			       uint32_t engine, uint32_t remote_engine)
{
	struct vb_channel *ch;

	if (!vb_connection_of(node, peer))
		return vb_contact_again(node, block);
	ch = vb_channel_new(node, peer, engine, remote_engine);
	if (!ch)
		return VB_CONTACT_NO_MEMORY;
	vb_channel_link(ch);
	ch->stage = VB_CHANNEL_ASKED;
	ch->asked_at = vb_node_clock();
	queue_add(peer, ch);
	vb_channel_asks_send(node, peer);
	return ch->stage == VB_CHANNEL_REFUSED ? ch->refusal : VB_CONTACT_PENDING;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The life of an end of a channel: made, brought up, told closed, freed. */
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/lock.h"
#include "host/channel_private.h"
#include "host/control.h"
#include "host/private.h"
#include "host/rack.h"

struct vb_channel *vb_channel_new(struct vb_node *node, struct vb_peer *peer, uint32_t engine,
				  uint32_t remote_engine)
{
	struct vb_channel *ch = aligned_alloc(_Alignof(struct vb_channel), sizeof(*ch));

	if (!ch)
		return NULL;
	memset(ch, 0, sizeof(*ch));
	ch->peer = peer;
	ch->engine = engine;
	ch->remote_engine = remote_engine;
	ch->remote_asleep = &peer->page->engine[remote_engine].asleep;
	ch->id = ++node->next_channel_id;
	vb_peer_ref(peer);
	return ch;
}

static void down_remove(struct vb_node *node, struct vb_channel *ch)
{
	if (!ch->down_listed)
		return;
	VB_LIST_REMOVE(node->downs, ch, down_next, down_prev);
	ch->down_listed = false;
}

/*
 * A list of their own: thousands may be closed one after the other, among thousands that are up.
 */
void vb_channel_down_later(struct vb_node *node, struct vb_channel *ch)
{
	vb_channel_down(ch);
	if (ch->down_listed)
		return;
	VB_LIST_PUSH(node->downs, ch, down_next, down_prev);
	ch->down_listed = true;
	vb_node_todo(node);
}

bool vb_channel_downs_service(struct vb_node *node)
{
	bool told = false;

	for (;;) {
		struct vb_channel *ch;

		vb_mutex_take(&node->lock, VB_ORDER_NODE);
		ch = node->downs;
		if (ch)
			down_remove(node, ch);
		vb_mutex_release(&node->lock);
		if (!ch)
			return told;
		told = true;
		vb_channel_report_down(node, ch);
	}
}

void vb_channels_look(struct vb_node *node, struct vb_peer *peer)
{
	for (struct vb_channel *ch = peer->channels; ch; ch = ch->host_next) {
		if (ch->stage == VB_CHANNEL_UP &&
		    __atomic_load_n(&ch->peer_half->closed, __ATOMIC_ACQUIRE))
			vb_channel_down_later(node, ch);
	}
}

void vb_channel_retire(struct vb_node *node, struct vb_channel *ch)
{
	vb_channel_unlink(ch);
	down_remove(node, ch);
	ch->stage = VB_CHANNEL_CLOSED;
	atomic_store(&ch->dead, true);
	if (!ch->loop && ch->own_half)
		__atomic_store_n(&ch->own_half->closed, 1, __ATOMIC_RELEASE);
	if (!ch->loop)
		vb_rack_leave(ch);
	vb_peer_unref(ch->peer);
	ch->host_next = node->retired;
	node->retired = ch;
}

void vb_channel_free_retired(struct vb_node *node)
{
	while (node->retired) {
		struct vb_channel *ch = node->retired;

		node->retired = ch->host_next;
		free(ch);
	}
}

void vb_channel_bring_up(struct vb_channel *ch)
{
	vb_ring_tx_init(&ch->tx, ch->own_half, ch->peer_half);
	vb_ring_rx_init(&ch->rx, ch->own_half, ch->peer_half);
	ch->stage = VB_CHANNEL_UP;
}

bool vb_channel_unasked(struct vb_node *node, struct vb_peer *peer)
{
	struct vb_channel *next;
	bool any = false;

	for (struct vb_channel *ch = peer->channels; ch; ch = next) {
		next = ch->host_next;
		if (ch->stage != VB_CHANNEL_ASKED || ch->ask_waits)
			continue;
		vb_channel_retire(node, ch);
		any = true;
	}
	return any;
}

void vb_channel_tell_closed(struct vb_node *node, struct vb_peer *peer, uint32_t remote_id,
			    uint32_t parts)
{
	struct vb_connection *conn = vb_connection_of(node, peer);
	struct vb_control msg = {.type = VB_CONTROL_CLOSE, .to_id = remote_id, .parts = parts};

	if (conn)
		vb_connection_send(node, conn, &msg, NULL, 0, false);
}

void vb_channel_end(struct vb_node *node, struct vb_channel *ch)
{
	if (ch->stage == VB_CHANNEL_CLOSED)
		return;
	if (ch->stage == VB_CHANNEL_UP)
		vb_channel_tell_closed(node, ch->peer, ch->remote_id, 0);
	vb_channel_retire(node, ch);
}

void vb_channel_close(struct vb_node *node, struct vb_channel *ch)
{
	if (atomic_load(&node->forked))
		return;
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	if (ch->loop)
		vb_channel_close_loop(node, ch);
	else
		vb_channel_end(node, ch);
	vb_mutex_release(&node->lock);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Channels to engines of other processes: finding, asking for, waking, closing. */
#include "host/channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/reason.h"
#include "host/bell.h"
#include "host/channel_private.h"
#include "host/control.h"
#include "host/private.h"
#include "host/shared.h"

/* How long a refusal stands before the same is asked again. */
#define REFUSAL_NS (1 * VB_MSEC)

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

void vb_channel_retire(struct vb_node *node, struct vb_channel *ch)
{
	vb_channel_unlink(ch);
	ch->stage = VB_CHANNEL_CLOSED;
	atomic_store(&ch->dead, true);
	if (!ch->loop) {
		vb_shared_unmap(ch->own_half, sizeof(struct vb_ring_half));
		vb_shared_unmap(ch->peer_half, sizeof(struct vb_ring_half));
	}
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

int vb_channel_make_half(struct vb_channel *ch, int *fd)
{
	void *map;
	int err = vb_shared_create("verbatim-ring", sizeof(struct vb_ring_half), &map, fd);

	if (err)
		return vb_refuse(-err, VB_REASON_SYSTEM, "memory for a ring: %s", strerror(-err));
	ch->own_half = map;
	return 0;
}

/* Asks the peer for a channel. */
static enum vb_contact channel_ask(struct vb_node *node, struct vb_peer *peer, uint32_t block,
				   uint32_t engine, uint32_t remote_engine)
{
	struct vb_connection *conn = vb_connection_of(node, peer);
	struct vb_channel *ch;
	int fd;

	if (!conn)
		return vb_contact_again(node, block);
	ch = vb_channel_new(node, peer, engine, remote_engine);
	if (!ch)
		return VB_CONTACT_ABSENT;
	vb_channel_link(ch);
	int err = vb_channel_make_half(ch, &fd);

	if (err) {
		vb_channel_retire(node, ch);
		return err == -EMFILE || err == -ENFILE ? VB_CONTACT_SHORT_HERE : VB_CONTACT_ABSENT;
	}
	struct vb_control msg = {
		.type = VB_CONTROL_OPEN,
		.from_id = ch->id,
		.from_engine = engine,
		.to_engine = remote_engine,
	};

	ch->stage = VB_CHANNEL_ASKED;
	ch->asked_on = conn;
	vb_connection_send(node, conn, &msg, &fd, 1, true);
	return VB_CONTACT_PENDING;
}

bool vb_channel_unasked(struct vb_node *node, const struct vb_connection *conn)
{
	struct vb_channel *next;
	bool any = false;

	for (struct vb_channel *ch = conn->peer ? conn->peer->channels : NULL; ch; ch = next) {
		next = ch->host_next;
		if (ch->stage != VB_CHANNEL_ASKED || ch->asked_on != conn)
			continue;
		vb_channel_retire(node, ch);
		any = true;
	}
	return any;
}

static struct vb_channel *find_remote(struct vb_node *node, uint32_t engine, uint32_t dest_qpn,
				      uint64_t since, bool memory, enum vb_contact *why)
{
	struct vb_peer *peer =
		vb_contact_peer(node, dest_qpn >> VB_QPN_BLOCK_BITS, (int64_t)since, why);

	if (!peer)
		return NULL;
	*why = VB_CONTACT_ABSENT;
	const struct vb_page_qp *qp = vb_peer_qp(peer, dest_qpn);

	if (!qp || __atomic_load_n(&qp->qpn, __ATOMIC_ACQUIRE) != dest_qpn)
		return NULL;
	uint32_t remote = __atomic_load_n(&qp->engine, __ATOMIC_RELAXED);

	if (remote >= VB_MAX_ENGINES)
		return NULL;
	struct vb_channel *ch = vb_channel_between(peer, engine, remote);

	/* Before the channel is asked for, so that it is answered before. */
	if (memory)
		vb_give_ask(node, peer);
	if (ch && ch->stage == VB_CHANNEL_UP) {
		*why = VB_CONTACT_UP;
		return ch;
	}
	if (ch && ch->stage == VB_CHANNEL_REFUSED) {
		*why = ch->refusal;
		if (vb_node_clock() - ch->asked_at < REFUSAL_NS)
			return NULL;
		vb_channel_retire(node, ch);
		ch = NULL;
	}
	*why = ch ? VB_CONTACT_PENDING
		  : channel_ask(node, peer, dest_qpn >> VB_QPN_BLOCK_BITS, engine, remote);
	return NULL;
}

struct vb_channel *vb_channel_find(struct vb_node *node, uint32_t engine, uint32_t dest_qpn,
				   enum vb_contact *why)
{
	return vb_channel_find_since(node, engine, dest_qpn, 0, false, why);
}

struct vb_channel *vb_channel_find_since(struct vb_node *node, uint32_t engine, uint32_t dest_qpn,
					 uint64_t since, bool memory, enum vb_contact *why)
{
	struct vb_channel *ch;

	*why = VB_CONTACT_ABSENT;
	if (dest_qpn >> 24 || atomic_load(&node->forked))
		return NULL;
	if (vb_page_block_index(node->page, dest_qpn >> VB_QPN_BLOCK_BITS) >= 0)
		return vb_channel_find_loop(node, engine, dest_qpn, why);
	pthread_mutex_lock(&node->lock);
	ch = find_remote(node, engine, dest_qpn, since, memory, why);
	pthread_mutex_unlock(&node->lock);
	return ch;
}

void vb_channel_wake(struct vb_channel *ch)
{
	/* Pairs with the fence between the sleeper's store of `asleep` and its last look at the ring. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(ch->remote_asleep, __ATOMIC_RELAXED))
		return;
	struct vb_node *node = ch->peer->node;

	if (ch->loop) {
		vb_bell_call(node, ch->remote_engine);
		vb_node_kick(node);
	} else {
		vb_bell_ring(ch->peer, ch->remote_engine);
	}
}

void vb_channel_tell_closed(struct vb_node *node, const struct vb_channel *ch)
{
	struct vb_connection *conn = vb_connection_of(node, ch->peer);
	struct vb_control msg = {
		.type = VB_CONTROL_CLOSE, .to_id = ch->remote_id, .from_id = ch->id};

	if (conn)
		vb_connection_send(node, conn, &msg, NULL, 0, false);
}

void vb_channel_close(struct vb_node *node, struct vb_channel *ch)
{
	if (atomic_load(&node->forked))
		return;
	pthread_mutex_lock(&node->lock);
	if (ch->loop) {
		vb_channel_close_loop(node, ch);
	} else if (ch->stage != VB_CHANNEL_CLOSED) {
		if (ch->stage == VB_CHANNEL_UP)
			vb_channel_tell_closed(node, ch);
		vb_channel_retire(node, ch);
	}
	pthread_mutex_unlock(&node->lock);
}

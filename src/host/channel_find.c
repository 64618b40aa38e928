/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Finding the channel to an engine, and asking a peer for one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/reason.h"
#include "host/channel_private.h"
#include "host/control.h"
#include "host/private.h"
#include "host/shared.h"

/* How long a refusal stands before the same is asked again. */
#define REFUSAL_NS   (1 * VB_MSEC)
/* Requests for channels that wait to be sent on one connection. */
#define ASKS_AT_ONCE 64u

/* Asks the peer for a channel. */
static enum vb_contact channel_ask(struct vb_node *node, struct vb_peer *peer, uint32_t block,
				   uint32_t engine, uint32_t remote_engine)
{
	struct vb_connection *conn = vb_connection_of(node, peer);
	struct vb_channel *ch;
	int fd;

	if (!conn)
		return vb_contact_again(node, block);
	/* Each request holds a descriptor until it is sent: who has thousands asks for them in turn. */
	if (conn->queued >= ASKS_AT_ONCE)
		return VB_CONTACT_PENDING;
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
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	ch = find_remote(node, engine, dest_qpn, since, memory, why);
	vb_mutex_release(&node->lock);
	return ch;
}

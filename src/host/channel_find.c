/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Finding the channel to an engine. */
#include "base/lock.h"
#include "host/channel_private.h"
#include "host/private.h"

/* How long a refusal stands before the same is asked again. */
#define REFUSAL_NS (1 * VB_MSEC)
/* How long the peer's request for the same channel is waited for before this side asks again. */
#define THEIRS_NS  (500 * VB_MSEC)

/*
 * A request that waits in the queue, while none is under way that would send it when it is answered:
 * the connection on which the others were sent has ended. Or one that gave way to the peer's, which
 * did not come.
 */
static bool is_stuck(const struct vb_peer *peer, const struct vb_channel *ch)
{
	return ch->ask_waits && !peer->asking;
}

static bool gave_way_in_vain(const struct vb_channel *ch)
{
	return ch->theirs && vb_node_clock() - ch->asked_at >= THEIRS_NS;
}

static enum vb_contact await_answer(struct vb_node *node, struct vb_peer *peer, uint32_t block,
				    struct vb_channel *ch)
{
	if (!is_stuck(peer, ch))
		return VB_CONTACT_PENDING;
	if (!vb_connection_of(node, peer))
		return vb_contact_again(node, block);
	vb_channel_asks_send(node, peer);
	return ch->stage == VB_CHANNEL_REFUSED ? ch->refusal : VB_CONTACT_PENDING;
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
		vb_ask_memory(node, peer);
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
	if (ch && gave_way_in_vain(ch)) {
		vb_channel_retire(node, ch);
		ch = NULL;
	}
	*why = ch ? await_answer(node, peer, dest_qpn >> VB_QPN_BLOCK_BITS, ch)
		  : vb_channel_ask(node, peer, dest_qpn >> VB_QPN_BLOCK_BITS, engine, remote);
	return NULL;
}

uint32_t vb_channel_news(const struct vb_node *node, uint32_t dest_qpn)
{
	return atomic_load(&node->news[dest_qpn >> VB_QPN_BLOCK_BITS & (VB_NUM_BLOCKS - 1)]);
}

void vb_channel_news_block(struct vb_node *node, uint32_t block)
{
	if (block < VB_NUM_BLOCKS)
		atomic_fetch_add(&node->news[block], 1);
}

void vb_channel_news_peer(const struct vb_peer *peer)
{
	const struct vb_page_header *head = &peer->page->header;
	uint32_t n = __atomic_load_n(&head->num_blocks, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n && i < VB_MAX_BLOCKS; i++)
		vb_channel_news_block(peer->node,
				      __atomic_load_n(&head->block[i], __ATOMIC_RELAXED));
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

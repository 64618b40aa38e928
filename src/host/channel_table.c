/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where channels are found: by the engines that they join, and by the number that peers use for
 * them. A queue pair that waits for its channel asks again at each change, and a program may have
 * thousands. So no look-up walks all channels of a peer.
 */
#include "host/channel_private.h"
#include "host/private.h"

/* Ids are given in sequence, so they fill the buckets evenly. */
static struct vb_channel **id_bucket(struct vb_node *node, uint32_t id)
{
	return &node->channels.by_id[id % VB_CHANNEL_BUCKETS];
}

/*
 * Engine indices are the lowest free ones. They are mixed, so that 64 times 64 engines do not fall
 * into a few buckets.
 */
static struct vb_channel **engines_bucket(struct vb_node *node, const struct vb_peer *peer,
					  uint32_t engine, uint32_t remote_engine)
{
	uint64_t mixed = ((uint64_t)engine << 32 | remote_engine) ^ peer->nonce;

	mixed *= 0x9e3779b97f4a7c15ull;
	return &node->channels.by_engines[mixed >> 32 & (VB_CHANNEL_BUCKETS - 1)];
}

void vb_channel_link(struct vb_channel *ch)
{
	struct vb_node *node = ch->peer->node;
	struct vb_channel **id = id_bucket(node, ch->id);
	struct vb_channel **engines = engines_bucket(node, ch->peer, ch->engine, ch->remote_engine);

	ch->host_prev = NULL;
	ch->host_next = ch->peer->channels;
	if (ch->host_next)
		ch->host_next->host_prev = ch;
	ch->peer->channels = ch;
	ch->peer->num_channels++;
	ch->id_next = *id;
	*id = ch;
	ch->engines_next = *engines;
	*engines = ch;
}

void vb_channel_unlink(struct vb_channel *ch)
{
	struct vb_node *node = ch->peer->node;
	struct vb_channel **p = id_bucket(node, ch->id);

	while (*p && *p != ch)
		p = &(*p)->id_next;
	if (!*p) /* never linked, or not any more */
		return;
	*p = ch->id_next;
	vb_channel_ask_forget(ch);
	p = engines_bucket(node, ch->peer, ch->engine, ch->remote_engine);
	while (*p != ch)
		p = &(*p)->engines_next;
	*p = ch->engines_next;
	if (ch->host_prev)
		ch->host_prev->host_next = ch->host_next;
	else
		ch->peer->channels = ch->host_next;
	if (ch->host_next)
		ch->host_next->host_prev = ch->host_prev;
	ch->host_next = ch->host_prev = NULL;
	ch->peer->num_channels--;
}

struct vb_channel *vb_channel_by_id(const struct vb_peer *peer, uint32_t id)
{
	struct vb_channel *ch = *id_bucket(peer->node, id);

	while (ch && (ch->id != id || ch->peer != peer))
		ch = ch->id_next;
	return ch;
}

struct vb_channel *vb_channel_between(const struct vb_peer *peer, uint32_t engine,
				      uint32_t remote_engine)
{
	struct vb_channel *best = NULL;

	for (struct vb_channel *ch = *engines_bucket(peer->node, peer, engine, remote_engine); ch;
	     ch = ch->engines_next) {
		if (ch->peer != peer || ch->engine != engine ||
		    ch->remote_engine != remote_engine || ch->stage == VB_CHANNEL_DOWN)
			continue;
		if (ch->stage == VB_CHANNEL_UP)
			return ch;
		if (!best || ch->stage == VB_CHANNEL_ASKED)
			best = ch;
	}
	return best;
}

/* It waits to be sent, has given way to the peer's, or was refused. */
static bool is_request(const struct vb_channel *ch)
{
	return ch->stage == VB_CHANNEL_REFUSED ||
	       (ch->stage == VB_CHANNEL_ASKED && (ch->ask_waits || ch->theirs));
}

struct vb_channel *vb_channel_request(const struct vb_peer *peer, uint32_t engine,
				      uint32_t remote_engine)
{
	struct vb_channel *ch = *engines_bucket(peer->node, peer, engine, remote_engine);

	while (ch && (ch->peer != peer || ch->engine != engine ||
		      ch->remote_engine != remote_engine || !is_request(ch)))
		ch = ch->engines_next;
	return ch;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is known of the owner of a block of numbers that was asked for: wanted, met, absent, dead.
 */
#include <stdlib.h>

#include "base/reason.h"
#include "host/control.h"
#include "host/private.h"

/* The pause between two attempts to find an absent owner. */
#define TRY_AGAIN_NS   (1 * VB_MSEC)
/* The pause when one side lacked a descriptor or memory: turning a caller away costs more. */
#define SHORT_AGAIN_NS (10 * VB_MSEC)
/*
 * An owner that was found dead counts as dead for so long, well above the pause after which a
 * waiting queue pair asks again.
 */
#define DEAD_FOR_NS    (100 * VB_MSEC)

static struct vb_contact_entry *contact_entry(struct vb_node *node, uint32_t block, bool make)
{
	struct vb_contact_entry **bucket = &node->contacts[block % VB_CONTACT_BUCKETS];

	for (struct vb_contact_entry *c = *bucket; c; c = c->next) {
		if (c->block == block)
			return c;
	}
	struct vb_contact_entry *c = make ? calloc(1, sizeof(*c)) : NULL;

	if (c) {
		c->block = block;
		c->state = VB_CONTACT_STATE_WANTED;
		c->next = *bucket;
		*bucket = c;
	}
	return c;
}

bool vb_contact_is_short(enum vb_contact_state state)
{
	return state == VB_CONTACT_STATE_SHORT_HERE || state == VB_CONTACT_STATE_SHORT_THERE ||
	       state == VB_CONTACT_STATE_NO_MEMORY;
}

static enum vb_contact shortage(const struct vb_contact_entry *c)
{
	if (c->state == VB_CONTACT_STATE_NO_MEMORY)
		return VB_CONTACT_NO_MEMORY;
	return c->state == VB_CONTACT_STATE_SHORT_HERE ? VB_CONTACT_SHORT_HERE
						       : VB_CONTACT_SHORT_THERE;
}

static void contact_want(struct vb_node *node, struct vb_contact_entry *c)
{
	int64_t pause = vb_contact_is_short(c->state) ? SHORT_AGAIN_NS : TRY_AGAIN_NS;

	if (c->wanted || vb_node_clock() - c->tried < pause)
		return;
	c->wanted = true;
	node->contacts_wanted++;
	vb_node_todo(node);
}

/*
 * Blocks are claimed at random: the process that died may have been an earlier owner than the one
 * that is meant.
 */
static bool death_is_old(const struct vb_contact_entry *c, int64_t since)
{
	int64_t now = vb_node_clock();

	return now - c->tried >= DEAD_FOR_NS || (since && c->called <= since);
}

static bool is_under_way(const struct vb_contact_entry *c)
{
	return c->state == VB_CONTACT_STATE_CONNECTED ||
	       (c->state == VB_CONTACT_STATE_WANTED && c->wanted);
}

struct vb_peer *vb_contact_peer(struct vb_node *node, uint32_t block, int64_t since,
				enum vb_contact *why)
{
	struct vb_contact_entry *c = contact_entry(node, block, false);
	/* While its name is being called, whoever comes into contact is known by its blocks. */
	struct vb_peer *peer = c && is_under_way(c) ? vb_peer_found(node, block)
						    : vb_peer_by_block(node, block);

	if (peer && vb_peer_alive(peer)) {
		*why = VB_CONTACT_UP;
		return peer;
	}
	/* Its end is being reported; a queue pair that has never met it waits for that. */
	if (peer) {
		*why = since ? VB_CONTACT_PENDING : VB_CONTACT_DEAD;
		vb_liveness_doubt(node);
		return NULL;
	}
	c = c ? c : contact_entry(node, block, true);
	*why = c ? VB_CONTACT_ABSENT : VB_CONTACT_NO_MEMORY;
	if (!c)
		return NULL;
	switch (c->state) {
	case VB_CONTACT_STATE_WANTED:
	case VB_CONTACT_STATE_CONNECTED:
		*why = VB_CONTACT_PENDING;
		break;
	case VB_CONTACT_STATE_REFUSED:
		*why = VB_CONTACT_REFUSED;
		break;
	case VB_CONTACT_STATE_DEAD:
		if (death_is_old(c, since))
			c->state = VB_CONTACT_STATE_WANTED;
		*why = c->state == VB_CONTACT_STATE_DEAD ? VB_CONTACT_DEAD : VB_CONTACT_PENDING;
		break;
	/* Its page does not name the block any more; another process's may. */
	case VB_CONTACT_STATE_MET:
		c->state = VB_CONTACT_STATE_WANTED;
		*why = VB_CONTACT_PENDING;
		break;
	case VB_CONTACT_STATE_SHORT_HERE:
	case VB_CONTACT_STATE_SHORT_THERE:
	case VB_CONTACT_STATE_NO_MEMORY:
		*why = shortage(c);
		break;
	case VB_CONTACT_STATE_ABSENT:
		break;
	}
	if (c->state != VB_CONTACT_STATE_CONNECTED && c->state != VB_CONTACT_STATE_MET &&
	    c->state != VB_CONTACT_STATE_DEAD)
		contact_want(node, c);
	return NULL;
}

/*
 * A peer that lives and has no connection left: it gave up this process's, or the other side ended
 * its greeting as too long, or its program closed its descriptors. Only the last is for ever: then
 * its name does not answer.
 */
enum vb_contact vb_contact_again(struct vb_node *node, uint32_t block)
{
	struct vb_contact_entry *c = contact_entry(node, block, true);

	if (!c)
		return VB_CONTACT_NO_MEMORY;
	if (c->state == VB_CONTACT_STATE_MET)
		c->state = VB_CONTACT_STATE_WANTED;
	if (c->state != VB_CONTACT_STATE_CONNECTED)
		contact_want(node, c);
	if (vb_contact_is_short(c->state))
		return shortage(c);
	return c->state == VB_CONTACT_STATE_CONNECTED || c->state == VB_CONTACT_STATE_WANTED
		       ? VB_CONTACT_PENDING
		       : VB_CONTACT_ABSENT;
}

void vb_contact_prove(struct vb_node *node, const struct vb_peer *peer)
{
	for (uint32_t i = 0; i < VB_MAX_BLOCKS; i++) {
		uint32_t block = __atomic_load_n(&peer->page->header.block[i], __ATOMIC_RELAXED);
		struct vb_contact_entry *c;

		if (i >= __atomic_load_n(&peer->page->header.num_blocks, __ATOMIC_ACQUIRE))
			return;
		if (block >= 1u << (24 - VB_QPN_BLOCK_BITS) || vb_peer_owns(peer, block))
			continue;
		c = contact_entry(node, block, true);
		if (!c || c->state == VB_CONTACT_STATE_CONNECTED)
			continue;
		c->state = VB_CONTACT_STATE_WANTED;
		contact_want(node, c);
	}
}

/* The caller holds the lock. The connection's contact, if this process has called. */
struct vb_contact_entry *vb_contact_of(struct vb_node *node, const struct vb_connection *conn)
{
	return conn->block < 0 ? NULL : contact_entry(node, (uint32_t)conn->block, false);
}

static void contact_dead(struct vb_contact_entry *c)
{
	c->state = VB_CONTACT_STATE_DEAD;
	c->answered = true;
	c->tried = vb_node_clock();
}

void vb_contact_mark_dead(struct vb_node *node, const struct vb_peer *peer)
{
	for (int i = 0; i < VB_CONTACT_BUCKETS; i++) {
		for (struct vb_contact_entry *c = node->contacts[i]; c; c = c->next) {
			if (c->state == VB_CONTACT_STATE_MET && c->nonce == peer->nonce &&
			    peer->state == VB_PEER_UP && vb_peer_owns(peer, c->block))
				contact_dead(c);
		}
	}
	for (struct vb_connection *conn = node->connections; conn; conn = conn->next) {
		struct vb_contact_entry *c = conn->peer == peer ? vb_contact_of(node, conn) : NULL;

		if (c && c->state == VB_CONTACT_STATE_CONNECTED)
			contact_dead(c);
	}
	/* Blocks that were reached without calling their name, because the peer has called. */
	for (uint32_t i = 0; i < VB_MAX_BLOCKS && peer->state == VB_PEER_UP; i++) {
		uint32_t block = __atomic_load_n(&peer->page->header.block[i], __ATOMIC_RELAXED);
		struct vb_contact_entry *c;

		if (i >= __atomic_load_n(&peer->page->header.num_blocks, __ATOMIC_RELAXED) ||
		    (block >= 1u << (24 - VB_QPN_BLOCK_BITS) && block != VB_NO_BLOCK))
			break;
		if (block == VB_NO_BLOCK || !vb_peer_owns(peer, block))
			continue;
		c = contact_entry(node, block, true);
		if (c && c->state == VB_CONTACT_STATE_WANTED && !c->wanted)
			contact_dead(c);
	}
}

void vb_contact_too_short(struct vb_connection *conn)
{
	vb_note(VB_REASON_DESCRIPTORS_SHORT, "process %d: no descriptor left for a connection",
		(int)conn->opened.pid);
	conn->short_here = conn->ended = true;
	if (conn->block < 0)
		vb_control_send(conn->source.fd, &vb_control_short, NULL, 0);
}

void vb_contact_free_all(struct vb_node *node)
{
	for (int i = 0; i < VB_CONTACT_BUCKETS; i++) {
		while (node->contacts[i]) {
			struct vb_contact_entry *c = node->contacts[i];

			node->contacts[i] = c->next;
			free(c);
		}
	}
}

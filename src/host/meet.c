/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Contact that a call waits for: to import what another process owns. */
#include <errno.h>
#include <time.h>

#include "base/lock.h"
#include "base/sys.h"
#include "host/private.h"

#define LOOK_NS 200000

static struct vb_peer *look(struct vb_node *node, uint32_t block, enum vb_contact *why)
{
	struct vb_peer *peer;

	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	peer = vb_contact_peer(node, block, 0, why);
	if (peer)
		vb_peer_ref(peer);
	vb_mutex_release(&node->lock);
	return peer;
}

int vb_peer_meet(struct vb_node *node, uint32_t block, uint64_t nonce, int64_t patience_ns,
		 struct vb_peer **met)
{
	const struct timespec pause = {0, LOOK_NS};
	int64_t until = vb_node_clock() + patience_ns;
	enum vb_contact why;
	struct vb_peer *peer = look(node, block, &why);

	while (!peer && why == VB_CONTACT_PENDING && vb_node_clock() < until) {
		vb_sys_nanosleep(&pause);
		peer = look(node, block, &why);
	}
	if (!peer)
		return why == VB_CONTACT_NO_MEMORY ? -ENOMEM : -ENODEV;
	/* Another process may have got the number since. */
	if (peer->nonce != nonce) {
		vb_peer_part(node, peer);
		return -ENODEV;
	}
	/*
	 * A call that imports an object needs its owner's memory. An owner that gives none answers
	 * as well.
	 */
	vb_peer_want_memory(peer);
	while (!peer->self && !atomic_load(&peer->ask.answered) && vb_peer_alive(peer) &&
	       vb_node_clock() < until)
		vb_sys_nanosleep(&pause);
	*met = peer;
	return 0;
}

struct vb_peer *vb_peer_hold_self(struct vb_node *node)
{
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	vb_peer_ref(node->self);
	vb_mutex_release(&node->lock);
	return node->self;
}

void vb_peer_hold(struct vb_node *node, struct vb_peer *peer)
{
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	vb_peer_ref(peer);
	vb_mutex_release(&node->lock);
}

void vb_peer_part(struct vb_node *node, struct vb_peer *peer)
{
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	vb_peer_unref(peer);
	vb_mutex_release(&node->lock);
}

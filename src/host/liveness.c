/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Peers that have died leave the table, and the device is told. */
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/reason.h"
#include "base/sys.h"
#include "host/channel_private.h"
#include "host/descriptor.h"
#include "host/private.h"
#include "host/trust.h"

/*
 * How often peers are looked at of whose end nothing tells: at all while this process is at work, or
 * while a peer has no connection; and of those without a pidfd, because sockets can be copied.
 */
#define LOOK_NS   (50 * VB_MSEC)
#define COPIED_NS (60000 * VB_MSEC)

/*
 * The hang-up of its close-on-exec sockets tells of the end of the process and of an exec. Where
 * another process has copies of them, a pidfd tells of the end (watch.c), and of an exec nothing. So
 * a process that was at work looks once more before it rests; a request that is outstanding wakes it
 * (VB_REPAIR_NS). Who has nothing to do with the peer need not know at once.
 */
int64_t vb_liveness_pause(struct vb_node *node)
{
	int64_t pause = -1;

	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	if (node->num_alone || (node->look_owed && node->num_peers))
		pause = node->looked_at + LOOK_NS - vb_node_clock();
	else if (node->num_watched < node->num_peers)
		pause = node->looked_at + COPIED_NS - vb_node_clock();
	else
		pause = INT64_MAX;
	vb_mutex_release(&node->lock);
	return pause < 0 ? 0 : pause;
}

void vb_liveness_doubt(struct vb_node *node)
{
	atomic_store(&node->look, true);
	vb_node_todo(node);
}

/* A look costs a cache line of each peer. */
static bool look_is_due(struct vb_node *node)
{
	int64_t now = vb_node_clock();

	if (!atomic_exchange(&node->look, false) && now - node->looked_at < LOOK_NS)
		return false;
	node->looked_at = now;
	node->look_owed = false;
	return true;
}

/*
 * The caller holds the lock. The peer leaves the table. Its connections and half-made channels end
 * here; the others end when the device closes them.
 */
static void peer_remove(struct vb_node *node, struct vb_peer *peer)
{
	struct vb_channel *next;

	vb_peer_unlist(node, peer);
	peer->next = NULL;
	vb_contact_mark_dead(node, peer);
	for (struct vb_channel *ch = peer->channels; ch; ch = next) {
		next = ch->host_next;
		atomic_store(&ch->dead, true);
		if (ch->stage == VB_CHANNEL_ASKED || ch->stage == VB_CHANNEL_REFUSED)
			vb_channel_retire(node, ch);
	}
	for (struct vb_connection *c = node->connections, *n; c; c = n) {
		n = c->next;
		if (c->peer == peer)
			vb_connection_close(node, c);
	}
	vb_liveness_unwatch(node, peer);
	peer->state = VB_PEER_DEAD;
	if (atomic_load(&peer->rejected) && vb_alive_word_held(peer->page))
		vb_peer_bar(peer);
}

/*
 * Tells of the end when the futex word was overwritten. A process number that is used again hides
 * the end.
 */
static bool has_left(const struct vb_peer *peer)
{
	return !peer->connections && peer->seen_pid > 0 && kill(peer->seen_pid, 0) &&
	       errno == ESRCH;
}

static struct vb_peer *find_dead(struct vb_node *node)
{
	for (struct vb_peer *p = node->peers; p; p = p->next) {
		if (!vb_peer_alive(p) || has_left(p))
			return p;
	}
	return NULL;
}

bool vb_liveness_service(struct vb_node *node)
{
	bool told = false;

	if (!look_is_due(node))
		return false;
	for (;;) {
		vb_mutex_take(&node->lock, VB_ORDER_NODE);
		struct vb_peer *peer = find_dead(node);
		bool known = peer && peer->state == VB_PEER_UP;

		if (peer)
			peer_remove(node, peer);
		vb_mutex_release(&node->lock);
		if (!peer)
			return told;
		vb_channel_news_peer(peer);
		told = true;
		vb_log(VB_LOG_INFO, "process %u has ended", vb_peer_pid(peer));
		if (known && node->events.peer_dead)
			node->events.peer_dead(node->events.arg, peer);
		if (node->events.contact_changed)
			node->events.contact_changed(node->events.arg);
		/*
		 * Events of this turn may still point to its pidfd: the reference is dropped at the
		 * end of the turn.
		 */
		vb_mutex_take(&node->lock, VB_ORDER_NODE);
		peer->next = node->removed;
		node->removed = peer;
		vb_mutex_release(&node->lock);
	}
}

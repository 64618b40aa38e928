/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How two connected processes introduce themselves: first their pages; then each grants the other,
 * once it is in its table of peers and believed, leave to speak. A peer that is not believed yet is
 * in no look-up, and its grant waits: nothing that it shows or does concerns another process. Memory
 * is given later (give.c). What arrives is checked before it is used.
 */
#include "base/log.h"
#include "base/reason.h"
#include "host/channel_private.h"
#include "host/control.h"
#include "host/descriptor.h"
#include "host/domain.h"
#include "host/private.h"
#include "host/shared.h"

/*
 * Descriptors for judging the other side (host/trust.h). Without them it would count as a stranger.
 */
#define TO_JUDGE 2

void vb_greeting_hello(struct vb_node *node, struct vb_connection *conn)
{
	struct vb_control msg = {.type = VB_CONTROL_HELLO, .nonce = node->nonce};

	vb_connection_send(node, conn, &msg, &node->page_fd, 1, false);
}

static void grant_send(struct vb_node *node, struct vb_connection *conn)
{
	struct vb_control msg = {.type = VB_CONTROL_GRANT};

	vb_connection_send(node, conn, &msg, NULL, 0, false);
	conn->gave = true;
	vb_connection_settle(node, conn);
}

/* The peer is believed, and has granted this process leave to speak. */
static void granted(struct vb_node *node, struct vb_connection *conn)
{
	struct vb_contact_entry *c = vb_contact_of(node, conn);
	struct vb_peer *peer = conn->peer;

	if (peer->state == VB_PEER_MET) {
		peer->state = VB_PEER_UP;
		vb_log(VB_LOG_INFO, "in contact with process %u", vb_peer_pid(peer));
	}
	conn->granted = true;
	conn->grant_held = false;
	vb_admit_greeted(node);
	vb_peer_find_blocks(node, peer);
	vb_channels_look(node, peer);
	vb_channel_news_peer(peer);
	vb_connection_settle(node, conn);
	vb_ask_found(node, peer);
	if (c) {
		c->state = VB_CONTACT_STATE_MET;
		vb_channel_news_block(node, c->block);
		c->nonce = peer->nonce;
	}
}

bool vb_greeting_grant_receive(struct vb_node *node, struct vb_connection *conn)
{
	struct vb_peer *peer = conn->peer;

	if (!peer || peer->state == VB_PEER_DEAD)
		return false;
	conn->grant_held = true;
	if (!vb_peer_is_believed(peer))
		return false;
	granted(node, conn);
	return true;
}

/*
 * The peer is believed since now: this process's grants, which it was owed, go out, and its own count.
 * True if it can be used since.
 */
static bool believe(struct vb_node *node, struct vb_peer *peer)
{
	bool usable = false;

	for (struct vb_connection *c = node->connections; c; c = c->next) {
		if (c->peer != peer || c->closed)
			continue;
		if (c->grant_owed)
			grant_send(node, c);
		c->grant_owed = false;
		if (c->grant_held) {
			granted(node, c);
			usable = true;
		}
	}
	return usable;
}

/*
 * A process that called says in its page which numbers are its own. Unless it is kin, it gets its
 * grant, without which it cannot speak, when a name of one of these numbers was called and the same
 * process answered. True if a peer can be used since.
 */
static bool grant_or_prove(struct vb_node *node, struct vb_connection *conn)
{
	struct vb_peer *peer = conn->peer;

	if (conn->block >= 0)
		vb_peer_prove(peer, (uint32_t)conn->block);
	conn->grant_owed = true;
	if (vb_peer_is_believed(peer))
		return believe(node, peer);
	vb_contact_prove(node, peer);
	return false;
}

/* The peer with this page in this process, NULL: none. */
static struct vb_peer *peer_of(const struct vb_node *node, uint64_t nonce,
			       const struct ucred *process)
{
	struct vb_peer *p = node->peers;

	while (p && (p->nonce != nonce || !vb_peer_is_process(p, process)))
		p = p->next;
	return p;
}

/* Pages are passed to every peer, so any process can show another's page as its own. */
static bool is_shown_twice(const struct vb_node *node, const struct vb_peer *peer)
{
	const struct vb_peer *p = node->peers;

	while (p && (p == peer || p->nonce != peer->nonce || !vb_peer_is_believed(p)))
		p = p->next;
	if (p)
		vb_note(VB_REASON_PEER_CORRUPT, "process %u of user %u shows the page of another",
			vb_peer_pid(peer), peer->uid);
	return p;
}

/*
 * The caller holds the lock. Returns the peer whose page this is; NULL and the defect if the page
 * cannot be accepted.
 */
static struct vb_peer *page_take(struct vb_node *node, const struct vb_connection *conn,
				 const struct vb_control *msg, int fd, const char **defect)
{
	void *map;

	if (vb_shared_map_part(fd, sizeof(struct vb_page), VB_PAGE_FIRST, false, &map, defect))
		return NULL;
	const struct vb_page *page = map;
	uint64_t nonce = __atomic_load_n(&page->header.nonce, __ATOMIC_RELAXED);
	struct vb_peer *peer = peer_of(node, nonce, &conn->opened);

	*defect = vb_page_defect(page);
	if (!*defect && (nonce != msg->nonce || nonce == node->nonce))
		*defect = "its page is not its own";
	if (!*defect && vb_peer_is_barred(node, nonce, conn->opened.pid))
		*defect = "it was found corrupt before";
	if (!*defect && !peer) {
		peer = vb_peer_new(node, page, nonce);
		if (peer) {
			peer->uid = conn->opened.uid;
			peer->seen_pid = conn->opened.pid;
			peer->stranger = !vb_user_is_ours(node, conn->opened.uid);
			peer->agrees = peer->stranger && vb_domain_has(conn->source.fd);
			return peer;
		}
		*defect = "there is no memory for it";
	}
	vb_shared_unmap(map, VB_PAGE_FIRST);
	return *defect ? NULL : peer;
}

/* The peer at the other end of the connection is known. True if a peer can be used since. */
static bool meet(struct vb_node *node, struct vb_connection *conn, struct vb_peer *peer)
{
	bool fresh = !peer->connections;

	conn->peer = peer;
	if (!peer->connections++)
		node->num_alone--;
	vb_liveness_met(node, peer, conn->source.fd);
	if (fresh)
		atomic_store(&peer->must_prove,
			     !vb_give_is_kin(conn) || is_shown_twice(node, peer));
	return grant_or_prove(node, conn);
}

bool vb_greeting_hello_receive(struct vb_node *node, struct vb_connection *conn,
			       const struct vb_control *msg, const int *fds, int num_fds)
{
	const char *defect = "it sent no page";

	if (!conn->peer && num_fds == 1 && !vb_descriptor_room(fds[0], TO_JUDGE)) {
		vb_contact_too_short(conn);
		return false;
	}
	if (!conn->peer && num_fds == 1) {
		struct vb_peer *peer = page_take(node, conn, msg, fds[0], &defect);

		if (peer && vb_alive_word_held(peer->page))
			return meet(node, conn, peer);
		if (peer) {
			conn->ended = true;
			return false;
		}
	}
	vb_note(VB_REASON_PEER_VERSION, "process %d refused: %s", (int)conn->opened.pid, defect);
	conn->refused = true;
	return false;
}

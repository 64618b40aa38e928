/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How two connected processes introduce themselves: first their pages; then each grants the other,
 * once it is in its table of peers, leave to speak. Memory is given later (give.c). What arrives is
 * checked before it is used.
 */
#include "base/log.h"
#include "base/reason.h"
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
	struct vb_control msg = {.type = VB_CONTROL_GRANT, .nonce = conn->token};

	vb_connection_send(node, conn, &msg, NULL, 0, false);
	conn->gave = true;
	vb_connection_settle(node, conn);
}

/*
 * A process that called says in its page which numbers are its own. A process that may not have
 * this one's memory gets its grant, without which it cannot speak, when a name of one of these
 * numbers was called and the same process answered.
 */
static void grant_or_prove(struct vb_node *node, struct vb_connection *conn)
{
	struct vb_peer *peer = conn->peer;

	if (conn->block >= 0)
		vb_peer_prove(peer, (uint32_t)conn->block);
	if (atomic_load(&peer->must_prove) && !atomic_load(&peer->num_proven)) {
		conn->grant_owed = true;
		vb_contact_prove(node, peer);
		return;
	}
	grant_send(node, conn);
	for (struct vb_connection *c = node->connections; c; c = c->next) {
		if (c->peer == peer && c->grant_owed && !c->closed) {
			c->grant_owed = false;
			grant_send(node, c);
		}
	}
}

/*
 * Compares the kernel's credentials of the other end with those of the peer; a process may have
 * changed its user since.
 */
static bool same_process(const struct vb_peer *peer, const struct vb_connection *conn)
{
	if (peer->seen_pid && conn->opened.pid)
		return peer->seen_pid == conn->opened.pid;
	return peer->uid == conn->opened.uid;
}

/*
 * Pages are passed to every peer, so any process can show another's page as its own. A process that
 * was called by name and shows the page is its owner: a peer that came with the page before leaves
 * the table.
 */
static struct vb_peer *impostor_drop(struct vb_node *node, struct vb_peer *peer)
{
	struct vb_connection *next;

	vb_note(VB_REASON_PEER_CORRUPT, "process %u of user %u showed the page of another",
		vb_peer_pid(peer), peer->uid);
	for (struct vb_connection *c = node->connections; c; c = next) {
		next = c->next;
		if (c->peer == peer)
			vb_connection_close(node, c);
	}
	vb_peer_forget(node, peer);
	return NULL;
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
	struct vb_peer *peer = vb_peer_by_nonce(node, nonce);

	*defect = vb_page_defect(page);
	if (!*defect && (nonce != msg->nonce || nonce == node->nonce))
		*defect = "its page is not its own";
	if (!*defect && vb_peer_is_barred(node, nonce))
		*defect = "it was found corrupt before";
	if (!*defect && peer && !same_process(peer, conn)) {
		if (conn->block < 0 || peer->state != VB_PEER_MET)
			*defect = "its page is another process's";
		else
			peer = impostor_drop(node, peer);
	}
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

void vb_greeting_hello_receive(struct vb_node *node, struct vb_connection *conn,
			       const struct vb_control *msg, const int *fds, int num_fds)
{
	const char *defect = "it sent no page";

	if (!conn->peer && num_fds == 1 && !vb_descriptor_room(fds[0], TO_JUDGE)) {
		vb_contact_too_short(conn);
		return;
	}
	if (!conn->peer && num_fds == 1) {
		struct vb_peer *peer = page_take(node, conn, msg, fds[0], &defect);
		bool fresh = peer && !peer->connections;

		if (peer && !vb_alive_word_held(peer->page)) {
			conn->ended = true;
			return;
		}
		if (peer) {
			conn->peer = peer;
			if (!peer->connections++)
				node->num_alone--;
			vb_liveness_met(node, peer, conn->source.fd);
			if (fresh)
				atomic_store(&peer->must_prove, !vb_give_is_kin(conn));
			grant_or_prove(node, conn);
			return;
		}
	}
	vb_note(VB_REASON_PEER_VERSION, "process %d refused: %s", (int)conn->opened.pid, defect);
	conn->refused = true;
}

bool vb_greeting_grant_receive(struct vb_connection *conn, const struct vb_control *msg)
{
	struct vb_peer *peer = conn->peer;

	if (!peer || peer->state == VB_PEER_DEAD)
		return false;
	conn->shown = msg->nonce;
	if (peer->state == VB_PEER_UP)
		return true;
	peer->state = VB_PEER_UP;
	vb_log(VB_LOG_INFO, "in contact with process %u", vb_peer_pid(peer));
	return true;
}

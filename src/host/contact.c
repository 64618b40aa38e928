/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Contact with the owner of a block of queue pair numbers: connect to its name, greet (greeting.c).
 * admit.c is the other side. No function here blocks: a stopped owner leaves its contact pending.
 * Two processes may call each other at once: both connections lead to one peer, which the nonce of
 * its page identifies.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/reason.h"
#include "base/sys.h"
#include "host/channel_private.h"
#include "host/control.h"
#include "host/descriptor.h"
#include "host/names.h"
#include "host/private.h"

/* An owner whose queue of callers stays full for so long counts as absent. */
#define FULL_NS      (2000 * VB_MSEC)
/*
 * So many calls are many. So long for each of them a call is left to the other side, looked at in
 * between.
 */
#define MANY         16u
#define LEFT_NS      (10 * VB_MSEC)
#define LEFT_LOOK_NS (50 * VB_MSEC)

static void contact_changed(struct vb_node *node)
{
	if (node->events.contact_changed)
		node->events.contact_changed(node->events.arg);
}

/* Calls this name. Returns 0, *sock and the credentials of the listener; or -errno. */
static int name_call(const struct sockaddr_un *addr, socklen_t len, int *sock, struct ucred *cred)
{
	socklen_t cred_len = sizeof(*cred);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	fd = vb_descriptor_adopt(fd);
	if (!vb_sys_connect(fd, (const struct sockaddr *)addr, len) &&
	    !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, cred, &cred_len)) {
		*sock = fd;
		return 0;
	}
	int err = -errno;

	vb_descriptor_close(fd);
	return err;
}

/*
 * Calls the block's owner: first by the keyed name, which only processes of this user know, then by
 * the name that every process can take.
 */
static int owner_call(struct vb_node *node, uint32_t block, int *sock, struct ucred *cred)
{
	const struct vb_names *names = &node->names;
	struct sockaddr_un addr;

	if (names->has_secret) {
		int err = name_call(&addr, vb_name_address_keyed(&addr, names->secret, block), sock,
				    cred);

		if (!err && vb_user_is_ours(node, cred->uid))
			return 0;
		/*
		 * The name was seen in /proc/net/unix, and another process took it when its owner
		 * had gone.
		 */
		if (!err) {
			vb_note(VB_REASON_PEER_USER,
				"block 0x%x: process %d of user %u sits on a name of this user's",
				block, (int)cred->pid, cred->uid);
			vb_descriptor_close(*sock);
		}
		if (err && err != -ECONNREFUSED)
			return err;
	}
	return name_call(&addr, vb_name_address(&addr, block), sock, cred);
}

static enum vb_contact_state no_memory(const struct vb_contact_entry *c)
{
	vb_note(VB_REASON_NO_MEMORY, "block 0x%x: no memory for a connection", c->block);
	return VB_CONTACT_STATE_NO_MEMORY;
}

/* Makes one attempt. Returns the new state of the contact. */
static enum vb_contact_state contact_connect(struct vb_node *node, struct vb_contact_entry *c)
{
	struct ucred cred = {0};
	int fd = -1;
	int err = vb_admit_has_room(node) ? owner_call(node, c->block, &fd, &cred) : -EMFILE;

	if (err == -EAGAIN) { /* its queue of callers is full: it is stopped or busy */
		if (!c->full_since)
			c->full_since = vb_node_clock();
		if (vb_node_clock() - c->full_since < FULL_NS)
			return VB_CONTACT_STATE_WANTED;
		vb_note(VB_REASON_NO_ANSWER, "block 0x%x: its owner's queue of callers stays full",
			c->block);
		return VB_CONTACT_STATE_ABSENT;
	}
	c->full_since = 0;
	if (err == -EMFILE || err == -ENFILE) {
		vb_note(VB_REASON_DESCRIPTORS_SHORT,
			"block 0x%x: no descriptor left for a connection", c->block);
		return VB_CONTACT_STATE_SHORT_HERE;
	}
	if (err == -ENOMEM || err == -ENOBUFS)
		return no_memory(c);
	if (err) {
		if (err != -ECONNREFUSED)
			vb_note(VB_REASON_SYSTEM, "call of block 0x%x: %s", c->block,
				strerror(-err));
		return VB_CONTACT_STATE_ABSENT;
	}
	if (!vb_admit_called(node, &cred)) {
		vb_descriptor_close(fd);
		return VB_CONTACT_STATE_REFUSED;
	}
	struct vb_connection *conn = vb_connection_new(node, fd, (int)c->block, &cred);

	if (!conn)
		return no_memory(c);
	vb_greeting_hello(node, conn);
	return VB_CONTACT_STATE_CONNECTED;
}

/*
 * Two processes that want each other at once call each other, and one of the calls is for nothing.
 * Among many such calls the process with the smaller number makes them, and the other one waits for
 * a while.
 */
static bool is_left_to_owner(const struct vb_node *node, struct vb_contact_entry *c,
			     uint32_t wanted)
{
	int64_t now = vb_node_clock();

	if (wanted <= MANY || c->block > node->page->header.block[0] || c->answered)
		return false;
	if (!c->left_since)
		c->left_since = now;
	return now - c->left_since < LEFT_NS * (int64_t)wanted;
}

/* Its owner has called. */
static bool has_come(struct vb_node *node, struct vb_contact_entry *c)
{
	const struct vb_peer *peer = vb_peer_found(node, c->block);

	if (!peer || !peer->connection || !vb_peer_alive(peer))
		return false;
	c->state = VB_CONTACT_STATE_MET;
	c->nonce = peer->nonce;
	c->wanted = false;
	c->left_since = 0;
	return true;
}

/* The caller holds the lock. True if the answer to a question about the contact has changed. */
static bool contact_try(struct vb_node *node, struct vb_contact_entry *c)
{
	enum vb_contact_state before = c->state;
	enum vb_contact_state now = contact_connect(node, c);

	c->tried = c->called = vb_node_clock();
	c->wanted = false;
	c->left_since = 0;
	if (now == VB_CONTACT_STATE_WANTED) {
		c->wanted = true;
		node->contacts_wanted++;
		vb_node_retry(node, 5 * VB_MSEC);
		return false;
	}
	/* A name that answered once and is gone now: its owner is dead, not merely absent. */
	if (now == VB_CONTACT_STATE_ABSENT && c->answered)
		now = VB_CONTACT_STATE_DEAD;
	if (now == VB_CONTACT_STATE_CONNECTED)
		c->answered = true;
	c->state = now;
	/*
	 * Reported each time: a queue pair that asks during the attempt does not learn that it
	 * failed as before.
	 */
	return (now != before || vb_contact_is_short(now)) && now != VB_CONTACT_STATE_CONNECTED;
}

/* The caller holds the lock. */
static bool contacts_try(struct vb_node *node)
{
	uint32_t wanted = node->contacts_wanted;
	bool changed = false;

	if (!wanted)
		return false;
	node->contacts_wanted = 0;
	for (int i = 0; i < VB_CONTACT_BUCKETS; i++) {
		for (struct vb_contact_entry *c = node->contacts[i]; c; c = c->next) {
			if (!c->wanted || has_come(node, c))
				continue;
			if (is_left_to_owner(node, c, wanted)) {
				node->contacts_wanted++;
				vb_node_retry(node, LEFT_LOOK_NS);
				continue;
			}
			if (!contact_try(node, c))
				continue;
			vb_channel_news_block(node, c->block);
			changed = true;
		}
	}
	return changed;
}

bool vb_contact_service(struct vb_node *node)
{
	bool changed;

	vb_admit_service(node);
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	changed = contacts_try(node);
	changed |= vb_ask_service(node);
	vb_tracer_service(node);
	vb_connections_flush(node);
	vb_mutex_release(&node->lock);
	if (changed)
		contact_changed(node);
	return changed;
}

/* The state of a contact whose connection has ended before its grant came. */
static enum vb_contact_state state_after(const struct vb_connection *conn)
{
	if (conn->refused)
		return VB_CONTACT_STATE_REFUSED;
	if (conn->short_here)
		return VB_CONTACT_STATE_SHORT_HERE;
	if (conn->short_there)
		return VB_CONTACT_STATE_SHORT_THERE;
	/*
	 * It hung up before it had introduced itself. Whether its name still exists will tell
	 * whether it died.
	 */
	return VB_CONTACT_STATE_WANTED;
}

/*
 * Messages may have been lost with it: the other side could speak on it, and the two have not told
 * each other that they say no more.
 */
static bool is_torn(const struct vb_connection *conn)
{
	return conn->peer && conn->gave && (conn->torn || !conn->leaving || !conn->last_heard);
}

/* The caller holds the lock. True if the answer to a question about its contact has changed. */
static bool end_one(struct vb_node *node, struct vb_connection *conn)
{
	struct vb_contact_entry *c = vb_contact_of(node, conn);
	bool waits = c && c->state == VB_CONTACT_STATE_CONNECTED;

	if (waits) {
		c->state = state_after(conn);
		vb_channel_news_block(node, c->block);
	}
	vb_connection_end(node, conn);
	return waits;
}

/*
 * The caller holds the lock. A request may have been sent on one connection, and its answer lost with
 * another: all connections with the peer end, and requests are made again. So is contact, while the
 * peer lives: neither side learns otherwise of channels that the other has closed.
 */
static bool begin_anew(struct vb_node *node, struct vb_peer *peer)
{
	uint32_t block[VB_MAX_BLOCKS];
	struct vb_connection *next;
	bool changed = false;

	for (struct vb_connection *c = node->connections; c; c = next) {
		next = c->next;
		if (c->peer == peer && c->gave)
			changed |= end_one(node, c);
	}
	changed |= vb_channel_unasked(node, peer);
	vb_channels_look(node, peer);
	vb_channel_news_peer(peer);
	vb_ask_lost(node, peer);
	if ((peer->channels || peer->ask.again) && vb_peer_alive(peer) &&
	    vb_peer_blocks(peer, block))
		vb_contact_again(node, block[0]);
	return changed;
}

static void contact_lost(struct vb_node *node, struct vb_connection *conn)
{
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	bool torn = is_torn(conn);
	bool changed = end_one(node, conn);

	if (torn && conn->peer->state == VB_PEER_UP)
		changed |= begin_anew(node, conn->peer);
	vb_mutex_release(&node->lock);
	if (changed)
		contact_changed(node);
}

/* The called process has no descriptor for this one: as good as absent, until the next attempt. */
static void short_receive(struct vb_connection *conn)
{
	vb_note(VB_REASON_PEER_SHORT, "process %d has no descriptor left for a connection",
		(int)conn->opened.pid);
	conn->short_there = conn->ended = true;
}

static bool contact_stripped(struct vb_node *node, struct vb_connection *conn,
			     const struct vb_control *msg)
{
	struct vb_peer *peer;
	bool useful;

	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	useful = msg->type != VB_CONTROL_HELLO;
	peer = conn->peer && conn->peer->state == VB_PEER_UP ? conn->peer : NULL;
	if (!useful)
		vb_contact_too_short(conn);
	else if (msg->type == VB_CONTROL_GIVE && conn->peer)
		vb_ask_stripped(conn->peer);
	vb_mutex_release(&node->lock);
	if (useful && peer)
		vb_channel_stripped(node, peer, msg);
	return useful;
}

/*
 * The caller holds the lock. The messages of the greeting, which come before a peer may speak. True
 * if a peer can be used since.
 */
static bool greeting_take(struct vb_node *node, struct vb_connection *conn,
			  const struct vb_control *msg, const int *fds, int num_fds)
{
	switch (msg->type) {
	case VB_CONTROL_HELLO:
		return vb_greeting_hello_receive(node, conn, msg, fds, num_fds);
	case VB_CONTROL_GRANT:
		return vb_greeting_grant_receive(node, conn);
	case VB_CONTROL_SHORT:
		short_receive(conn);
		break;
	case VB_CONTROL_LAST:
		vb_connection_last(node, conn);
		break;
	default:
		break;
	}
	return false;
}

/* The caller holds the lock. The messages about memory, of a peer in contact. */
static void memory_take(struct vb_node *node, struct vb_connection *conn,
			const struct vb_control *msg, int *fds, int num_fds)
{
	switch (msg->type) {
	case VB_CONTROL_ASK:
		vb_give_answer(node, conn, msg);
		break;
	case VB_CONTROL_PROVE:
		vb_ask_prove(node, conn, msg);
		break;
	case VB_CONTROL_PROOF:
		vb_give_proof(node, conn, msg);
		break;
	case VB_CONTROL_GIVE:
		vb_ask_take(conn->peer, msg, fds, num_fds);
		break;
	case VB_CONTROL_MORE:
		if (num_fds == 1)
			vb_window_extend(conn->peer, fds[0]);
		break;
	default:
		break;
	}
}

enum topic {
	GREETING,
	MEMORY,
	CHANNELS, /* or a message of an unknown type, which is reported there */
};

static enum topic topic_of(const struct vb_control *msg)
{
	switch (msg->type) {
	case VB_CONTROL_HELLO:
	case VB_CONTROL_GRANT:
	case VB_CONTROL_SHORT:
	case VB_CONTROL_LAST:
		return GREETING;
	case VB_CONTROL_ASK:
	case VB_CONTROL_PROVE:
	case VB_CONTROL_PROOF:
	case VB_CONTROL_GIVE:
	case VB_CONTROL_MORE:
		return MEMORY;
	default:
		return CHANNELS;
	}
}

/* The peer that may speak on this connection, NULL: none yet. The caller holds the lock. */
static struct vb_peer *speaker(const struct vb_connection *conn, const struct vb_control *msg)
{
	if (conn->peer && conn->peer->state == VB_PEER_UP)
		return conn->peer;
	if (topic_of(msg) != GREETING)
		vb_note(VB_REASON_PEER_CORRUPT,
			"process %d of user %u: a message of type %u before it may speak is dropped",
			(int)conn->opened.pid, conn->opened.uid, msg->type);
	return NULL;
}

static void contact_message(struct vb_node *node, struct vb_connection *conn,
			    const struct vb_control *msg, int *fds, int num_fds)
{
	enum topic topic = topic_of(msg);
	struct vb_peer *peer;
	bool changed;

	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	changed = topic == GREETING && greeting_take(node, conn, msg, fds, num_fds);
	peer = speaker(conn, msg);
	if (peer && topic == MEMORY) {
		memory_take(node, conn, msg, fds, num_fds);
		changed |= vb_channel_asks_go_on(node, peer);
	}
	vb_mutex_release(&node->lock);
	if (peer && topic == CHANNELS)
		vb_channel_message(node, conn, msg, fds, num_fds);
	for (int i = 0; i < num_fds; i++)
		vb_descriptor_close(fds[i]);
	if (changed)
		contact_changed(node);
	if (conn->refused || conn->ended)
		contact_lost(node, conn);
}

const struct vb_hearer vb_contact_hearer = {
	.message = contact_message, .stripped = contact_stripped, .lost = contact_lost};

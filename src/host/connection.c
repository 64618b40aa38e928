/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Control connections: reading, and an outbox for messages that the socket has no room for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/reason.h"
#include "host/channel_private.h"
#include "host/control.h"
#include "host/descriptor.h"
#include "host/private.h"
#include "host/rack.h"

/* Messages taken from one connection before the others have their turn. */
#define READ_BATCH 128

struct vb_outgoing {
	struct vb_outgoing *next;
	struct vb_control msg;
	int fds[VB_CONTROL_FDS];
	int num_fds;
	bool owned;
};

static void outgoing_free(struct vb_outgoing *out)
{
	for (int i = 0; out->owned && i < out->num_fds; i++)
		vb_descriptor_close(out->fds[i]);
	free(out);
}

/* Reads what has arrived. A hang-up or nonsense ends the connection. */
static void connection_ready(struct vb_node *node, struct vb_source *source, uint32_t events)
{
	struct vb_connection *conn = (struct vb_connection *)source; /* its first member */
	struct vb_control msg;
	int fds[VB_CONTROL_FDS];
	int num_fds, n = 1;

	(void)events;
	for (int i = 0; i < READ_BATCH && !conn->closed && n == 1; i++) {
		n = vb_descriptor_ours(conn->source.fd)
			    ? vb_control_receive(conn->source.fd, &msg, &conn->from, fds, &num_fds)
			    : -EBADF;
		if (n == 1)
			vb_bell_spoke(node, conn->peer);
		if (n == 1 && msg.type == VB_CONTROL_RING) {
			node->rang = true;
			return; /* if more follows, it is reported again; mostly nothing does */
		}
		if (n == 1)
			node->hears->message(node, conn, &msg, fds, num_fds);
		else if (n == -EMFILE && node->hears->stripped(node, conn, &msg))
			n = 1;
	}
	if (n == 1 || n == -EAGAIN || conn->closed)
		return;
	if (n == -EPROTO)
		vb_note(VB_REASON_PEER_VERSION,
			"a process (pid %d) sent a message of version %u, this is version %u",
			(int)conn->opened.pid, msg.version, VB_CONTROL_VERSION);
	conn->refused |= n == -EPROTO;
	node->hears->lost(node, conn);
}

struct vb_connection *vb_connection_new(struct vb_node *node, int fd, int block,
					const struct ucred *cred)
{
	struct vb_connection *conn = calloc(1, sizeof(*conn));

	if (!conn) {
		vb_descriptor_close(fd);
		return NULL;
	}
	conn->source.fd = fd;
	conn->source.ready = connection_ready;
	conn->block = block;
	conn->opened = *cred;
	vb_control_name_senders(fd);
	conn->since = vb_node_clock();
	conn->out_end = &conn->out;
	if (vb_node_source_add(node, &conn->source, EPOLLIN)) {
		vb_descriptor_close(fd);
		free(conn);
		return NULL;
	}
	conn->next = node->connections;
	node->connections = conn;
	return conn;
}

static void unsent_add(struct vb_node *node, struct vb_connection *conn)
{
	if (conn->unsent)
		return;
	conn->unsent = true;
	conn->unsent_next = node->unsent;
	node->unsent = conn;
}

/* Both sides read the end of the connection, and begin anew (contact.c). */
static void hang_up(struct vb_connection *conn)
{
	vb_note(VB_REASON_NO_MEMORY, "process %d: a message to it is lost, and the connection ends",
		(int)conn->opened.pid);
	conn->torn = true;
	if (vb_descriptor_ours(conn->source.fd))
		(void)shutdown(conn->source.fd, SHUT_RDWR);
}

void vb_connection_send(struct vb_node *node, struct vb_connection *conn,
			const struct vb_control *msg, const int *fds, int num_fds, bool owned)
{
	struct vb_outgoing *out = calloc(1, sizeof(*out));

	if (!out) {
		for (int i = 0; owned && i < num_fds; i++)
			vb_descriptor_close(fds[i]);
		hang_up(conn);
		return;
	}
	out->msg = *msg;
	out->msg.magic = VB_CONTROL_MAGIC;
	out->msg.version = VB_CONTROL_VERSION;
	out->num_fds = num_fds;
	out->owned = owned;
	if (num_fds)
		memcpy(out->fds, fds, sizeof(int) * (size_t)num_fds);
	*conn->out_end = out;
	conn->out_end = &out->next;
	conn->queued++;
	unsent_add(node, conn);
	vb_node_todo(node);
}

/*
 * A file that the program has put under a number of the library is neither written to nor passed
 * on.
 */
static bool outgoing_intact(const struct vb_connection *conn, const struct vb_outgoing *out)
{
	bool intact = vb_descriptor_ours(conn->source.fd);

	for (int i = 0; i < out->num_fds; i++)
		intact = intact && vb_descriptor_ours(out->fds[i]);
	return intact;
}

static void connection_flush(struct vb_node *node, struct vb_connection *conn)
{
	while (conn->out && !conn->closed) {
		struct vb_outgoing *out = conn->out;
		int err = outgoing_intact(conn, out) ? vb_control_send(conn->source.fd, &out->msg,
								       out->fds, out->num_fds)
						     : -EBADF;

		/*
		 * No room (EPOLLOUT would tell) or too many descriptors in flight (no event tells
		 * that): rare, so retried by time.
		 */
		if (err == -EAGAIN) {
			vb_node_retry(node, 5 * VB_MSEC);
			return;
		}
		/* Any other error is followed by the hang-up that ends the connection. */
		if (err)
			vb_log(VB_LOG_INFO, "control message %u: %s", out->msg.type,
			       strerror(-err));
		conn->out = out->next;
		conn->queued--;
		if (!conn->out)
			conn->out_end = &conn->out;
		outgoing_free(out);
	}
}

void vb_connections_flush(struct vb_node *node)
{
	struct vb_connection *list = node->unsent;

	node->unsent = NULL;
	while (list) {
		struct vb_connection *conn = list;

		list = conn->unsent_next;
		conn->unsent = false;
		connection_flush(node, conn);
		if (conn->out && !conn->closed)
			unsent_add(node, conn);
	}
}

/* Both sides have granted each other what they have for each other. */
static bool is_settled(const struct vb_connection *conn)
{
	return conn->granted && conn->gave && !conn->leaving && !conn->closed;
}

/* From now on the peer is spoken to on another connection than this one. */
static void connection_replace(struct vb_node *node, const struct vb_connection *conn)
{
	struct vb_peer *peer = conn->peer;
	struct vb_connection *c = node->connections;

	if (!peer || peer->connection != conn)
		return;
	while (c && (c == conn || c->peer != peer || !is_settled(c)))
		c = c->next;
	peer->connection = c;
}

static void leave(struct vb_node *node, struct vb_connection *conn)
{
	struct vb_control msg = {.type = VB_CONTROL_LAST};

	conn->leaving = true;
	connection_replace(node, conn);
	vb_connection_send(node, conn, &msg, NULL, 0, false);
}

/*
 * The side that has called ends the call. Of two processes that called each other, the one with the
 * larger number ends its own call, so that one call stays.
 */
static bool is_surplus(const struct vb_node *node, const struct vb_connection *conn)
{
	if (conn->block < 0 || !is_settled(conn))
		return false;
	for (const struct vb_connection *c = node->connections; c; c = c->next) {
		if (c != conn && c->peer == conn->peer && is_settled(c) &&
		    (c->block >= 0 || node->nonce > conn->peer->nonce))
			return true;
	}
	return false;
}

static bool is_only_one(const struct vb_node *node, const struct vb_connection *conn)
{
	const struct vb_connection *c = node->connections;

	while (c && (c == conn || c->peer != conn->peer || !is_settled(c)))
		c = c->next;
	return !c;
}

/*
 * The peer's grant on the other connection may not have been read here yet, though the peer has
 * sent it. Then this connection is left later.
 */
void vb_connection_last(struct vb_node *node, struct vb_connection *conn)
{
	conn->last_heard = true;
	if (!conn->peer || conn->leaving)
		conn->ended = true; /* no message is on its way any more */
	else if (!is_only_one(node, conn))
		leave(node, conn);
}

void vb_connection_settle(struct vb_node *node, struct vb_connection *conn)
{
	struct vb_peer *peer = conn->peer;

	if (!is_settled(conn))
		return;
	if (!peer->connection)
		peer->connection = conn;
	for (struct vb_connection *c = node->connections; c; c = c->next) {
		if (c->peer != peer || c->leaving || c->closed)
			continue;
		if (is_surplus(node, c) || (c->last_heard && !is_only_one(node, c)))
			leave(node, c);
	}
}

void vb_connection_close(struct vb_node *node, struct vb_connection *conn)
{
	if (conn->closed)
		return;
	for (struct vb_connection **p = &node->connections; *p; p = &(*p)->next) {
		if (*p == conn) {
			*p = conn->next;
			break;
		}
	}
	conn->closed = true;
	conn->next = node->closed;
	node->closed = conn;
	for (struct vb_connection **p = &node->unsent; conn->unsent && *p; p = &(*p)->unsent_next) {
		if (*p == conn) {
			*p = conn->unsent_next;
			conn->unsent = false;
			break;
		}
	}
	vb_node_source_remove(node, &conn->source);
	if (conn->peer) {
		/* Rings on it may not have been read, and it may have been the last. */
		vb_racks_end(conn->peer, conn);
		vb_bell_spoke(node, NULL);
		vb_liveness_doubt(node);
		conn->peer->ask.first = false; /* its answer may be lost */
		if (!--conn->peer->connections && conn->peer->listed)
			node->num_alone++;
		connection_replace(node, conn);
	}
	while (conn->out) {
		struct vb_outgoing *out = conn->out;

		conn->out = out->next;
		outgoing_free(out);
	}
}

void vb_connection_end(struct vb_node *node, struct vb_connection *conn)
{
	struct vb_peer *peer = conn->peer;

	vb_connection_close(node, conn);
	if (peer && peer->state == VB_PEER_MET && !peer->connections)
		vb_peer_forget(node, peer);
}

struct vb_connection *vb_connection_of(struct vb_node *node, const struct vb_peer *peer)
{
	(void)node;
	return peer->connection;
}

void vb_connection_free_closed(struct vb_node *node)
{
	while (node->closed) {
		struct vb_connection *conn = node->closed;

		node->closed = conn->next;
		free(conn);
	}
}

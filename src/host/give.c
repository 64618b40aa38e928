/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * This process gives its memory to peers: late, to those that ask because a queue pair of theirs is
 * connected to one of this process; and to few, those that can read it anyway. A peer shows that by
 * doing it: it reads a token that lies in this process's memory, through its own /proc/PID/mem. So the
 * kernel decides with all that it knows (ptrace(2), "Ptrace access mode checking"): ids, capabilities,
 * namespaces, security modules. A token is new for each question; what was read before may have been
 * read under other conditions.
 */
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/random.h"
#include "base/reason.h"
#include "host/control.h"
#include "host/descriptor.h"
#include "host/private.h"
#include "host/shared.h"
#include "host/trust.h"

/* Answers cost some system calls: a process that asks more often is not answered. */
#define TOO_SOON_NS (50 * VB_MSEC)

#define NOT_ITSELF  "who speaks is not who made the connection"

/*
 * A pidfd that is got of the socket names the process that made the socket, as if it had been kept
 * since then.
 */
static struct vb_asker asker_of(const struct vb_connection *conn, bool says_uid)
{
	int pidfd = conn->peer->pidfd.fd;

	if (pidfd < 0 && vb_trust_socket_names(conn->source.fd))
		pidfd = vb_descriptor_adopt(vb_trust_pidfd(conn->source.fd, conn->opened.pid));
	return (struct vb_asker){
		.opened = conn->opened,
		.sent = conn->from,
		.pidfd = vb_descriptor_ours(pidfd) ? pidfd : -1,
		.says_uid = says_uid,
	};
}

static void asker_done(const struct vb_connection *conn, const struct vb_asker *who)
{
	if (who->pidfd != conn->peer->pidfd.fd)
		vb_descriptor_close(who->pidfd);
}

bool vb_give_is_kin(const struct vb_connection *conn)
{
	struct vb_asker who = asker_of(conn, true);
	bool kin = vb_trust_is_kin(&who);

	asker_done(conn, &who);
	return kin;
}

bool vb_give_still(struct vb_connection *conn)
{
	struct vb_peer *peer = conn->peer;
	struct vb_asker who = asker_of(conn, true);

	/*
	 * It asked under the conditions of that time. /proc tells whether the process that asked
	 * may have the memory now.
	 */
	who.sent = (struct ucred){who.opened.pid, getuid(), getgid()};
	/* On older kernels: its connection stands, and it could have kept what it was shown. */
	if (who.pidfd < 0)
		who.pidfd = vb_descriptor_adopt(vb_trust_pidfd(conn->source.fd, conn->opened.pid));
	bool by_uid;
	const char *why = vb_trust_obstacle(&who, &by_uid);

	asker_done(conn, &who);
	if (why)
		vb_note(VB_REASON_NO_TRUST, "process %u is given no more memory: %s",
			vb_peer_pid(peer), why);
	peer->has_arena = !why;
	return !why;
}

static int parts_add(struct vb_node *node, struct vb_control *msg, int *fds, bool passes)
{
	int n = 0;

	msg->nonce_address = (uintptr_t)&node->nonce;
	msg->parts = VB_CONTROL_LOCK;
	fds[n++] = node->lock_fd;
	if (node->arena.fd >= 0) {
		msg->parts |= VB_CONTROL_ARENA;
		fds[n++] = node->arena.fd;
	}
	if (passes && node->mem_fd >= 0) {
		msg->parts |= VB_CONTROL_MEMORY;
		fds[n++] = node->mem_fd;
	} else {
		snprintf(msg->text, sizeof(msg->text), "%s", node->obstacle);
	}
	msg->parts |= VB_CONTROL_KEYS;
	fds[n++] = node->keyring_fd;
	return n;
}

/*
 * The connection on which an answer is read: that of the question, unless this process has sent its
 * LAST there. What follows a LAST is lost as soon as the peer has sent its own.
 */
static struct vb_connection *answer_on(struct vb_connection *conn)
{
	return conn->leaving && conn->peer->connection ? conn->peer->connection : conn;
}

static void refuse(struct vb_node *node, struct vb_connection *conn, const char *why)
{
	struct vb_control give = {.type = VB_CONTROL_GIVE};
	struct vb_peer *peer = conn->peer;

	vb_note(VB_REASON_NO_TRUST, "process %u of user %u is given no memory: %s",
		vb_peer_pid(peer), conn->from.uid, why);
	snprintf(give.text, sizeof(give.text), "it gives none: %s", why);
	peer->has_arena = false;
	vb_connection_send(node, answer_on(conn), &give, NULL, 0, false);
	vb_tracer_end(node, peer);
}

/* passes: the descriptor of the memory itself, which the peer has not opened. */
static void give(struct vb_node *node, struct vb_connection *conn, bool passes)
{
	struct vb_control msg = {.type = VB_CONTROL_GIVE};
	struct vb_peer *peer = conn->peer;
	int fds[VB_CONTROL_FDS], n = parts_add(node, &msg, fds, passes);

	vb_liveness_given(node, peer);
	peer->has_arena = msg.parts & VB_CONTROL_ARENA;
	vb_connection_send(node, answer_on(conn), &msg, fds, n, false);
}

static bool speaks_itself(const struct vb_connection *conn)
{
	return conn->from.pid == conn->opened.pid;
}

static void prove(struct vb_node *node, struct vb_connection *conn, uint64_t asked)
{
	struct vb_peer *peer = conn->peer;
	struct vb_control msg = {
		.type = VB_CONTROL_PROVE,
		.nonce_address = (uintptr_t)&peer->proof,
	};

	peer->proof = (struct vb_proof){asked, vb_random64() | 1};
	vb_connection_send(node, answer_on(conn), &msg, NULL, 0, false);
	vb_tracer_end(node, peer);
}

void vb_give_try_again(struct vb_node *node, struct vb_peer *peer)
{
	struct vb_control msg = {.type = VB_CONTROL_PROVE};

	peer->heard = 0;
	if (peer->connection)
		vb_connection_send(node, peer->connection, &msg, NULL, 0, false);
}

/*
 * The kernel did not let it open this memory. It says so itself, and can only lose by it: the answer
 * is no, but where the two cannot name each other and their users wanted that to be enough.
 */
static void answer_shut(struct vb_node *node, struct vb_connection *conn, bool says_uid)
{
	const char *why = "it has no descriptor left to look at who asks";
	struct vb_asker who = asker_of(conn, says_uid);
	bool by_uid = false;

	if (vb_descriptor_room(conn->source.fd, 1))
		why = vb_trust_obstacle(&who, &by_uid);
	asker_done(conn, &who);
	if (by_uid)
		give(node, conn, true);
	else if (why || !vb_tracer_want(node, conn->peer))
		refuse(node, conn, why ? why : "the system does not let it (a security module)");
}

void vb_give_answer(struct vb_node *node, struct vb_connection *conn, const struct vb_control *msg)
{
	struct vb_peer *peer = conn->peer;
	int64_t now = vb_node_clock();

	if (peer->heard && now - peer->heard < TOO_SOON_NS)
		return;
	peer->heard = now;
	if (!speaks_itself(conn))
		refuse(node, conn, NOT_ITSELF);
	else if (msg->parts & VB_CONTROL_SHUT)
		answer_shut(node, conn, msg->parts & VB_CONTROL_SAYS_UID);
	else
		prove(node, conn, msg->nonce);
}

void vb_give_proof(struct vb_node *node, struct vb_connection *conn, const struct vb_control *msg)
{
	struct vb_peer *peer = conn->peer;
	bool proven = peer->proof.token && msg->nonce == peer->proof.token;

	peer->proof = (struct vb_proof){0, 0};
	if (!speaks_itself(conn))
		refuse(node, conn, NOT_ITSELF);
	else if (!proven)
		refuse(node, conn, "it could not read this process's memory");
	else
		give(node, conn, false);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory is given late and to few: to a process that asks because a queue pair of it is connected
 * to one of this process, when host/trust.h allows it at that moment. A process that is refused
 * asks again from time to time, because both sides may change. Until then its one-sided requests go
 * through rings, and this process's engines execute them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/reason.h"
#include "host/control.h"
#include "host/descriptor.h"
#include "host/private.h"
#include "host/shared.h"
#include "host/trust.h"

/*
 * A refused process asks again after the first pause, then after twice as long each time, up to the
 * last.
 */
#define AGAIN_FIRST_NS (250 * VB_MSEC)
#define AGAIN_LAST_NS  (64000 * VB_MSEC)
/*
 * Without any answer. Among hundreds of processes it takes seconds, and each question costs the other
 * side as much as the first.
 */
#define UNANSWERED_NS  (4000 * VB_MSEC)
/* Judging takes some ten system calls: a process that asks more often is not answered. */
#define TOO_SOON_NS    (50 * VB_MSEC)

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
	const char *why = vb_trust_obstacle(&who);

	asker_done(conn, &who);
	if (why)
		vb_note(VB_REASON_NO_TRUST, "process %u is given no more memory: %s",
			vb_peer_pid(peer), why);
	peer->has_arena = !why;
	return !why;
}

static int parts_add(struct vb_node *node, struct vb_control *msg, int *fds)
{
	int n = 0;

	msg->nonce_address = (uintptr_t)&node->nonce;
	msg->parts = VB_CONTROL_LOCK;
	fds[n++] = node->lock_fd;
	if (node->arena.fd >= 0) {
		msg->parts |= VB_CONTROL_ARENA;
		fds[n++] = node->arena.fd;
	}
	if (node->mem_fd >= 0) {
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

void vb_give_answer(struct vb_node *node, struct vb_connection *conn, const struct vb_control *msg)
{
	struct vb_control give = {.type = VB_CONTROL_GIVE};
	struct vb_peer *peer = conn->peer;
	int64_t now = vb_node_clock();
	int fds[VB_CONTROL_FDS], n = 0;

	if (!peer || peer->state == VB_PEER_DEAD)
		return;
	if (msg->nonce != conn->token) {
		vb_peer_reject(peer, "it asked for memory without a grant");
		return;
	}
	if (peer->ask.heard && now - peer->ask.heard < TOO_SOON_NS)
		return;
	peer->ask.heard = now;
	struct vb_asker who = asker_of(conn, msg->parts & VB_CONTROL_SAYS_UID);
	const char *why = vb_descriptor_room(conn->source.fd, 1)
				  ? vb_trust_obstacle(&who)
				  : "it has no descriptor left to look at who asks";

	asker_done(conn, &who);
	if (why) {
		vb_note(VB_REASON_NO_TRUST, "process %u of user %u is given no memory: %s",
			vb_peer_pid(peer), who.sent.uid, why);
		snprintf(give.text, sizeof(give.text), "it gives none: %s", why);
	} else {
		n = parts_add(node, &give, fds);
		vb_liveness_given(node, peer);
	}
	peer->has_arena = give.parts & VB_CONTROL_ARENA;
	vb_connection_send(node, answer_on(conn), &give, fds, n, false);
}

/*
 * Takes the parts that open no memory by themselves, and without which memory is of no use.
 * -ENOMEM: not now. Any other defect is the peer's.
 */
static int guards_take(struct vb_peer *peer, const struct vb_control *msg, const int *fds,
		       int num_fds)
{
	const char *defect = "they are missing";
	int err = -EBADMSG;

	if ((msg->parts & VB_CONTROL_KEYS) && num_fds)
		err = vb_keyring_map(fds[num_fds - 1], peer->nonce, &peer->keys, &defect);
	if (err && err != -ENOMEM)
		vb_note(VB_REASON_PEER_VERSION, "keys of process %u: %s", vb_peer_pid(peer),
			defect);
	if (err || !(msg->parts & VB_CONTROL_LOCK) || num_fds < 2)
		return err;
	err = vb_turn_map(fds[0], &peer->turn, &defect);
	if (err && err != -ENOMEM)
		vb_note(VB_REASON_NO_DIRECT_ACCESS, "process %u: its lock: %s", vb_peer_pid(peer),
			defect);
	return err == -ENOMEM ? err : 0;
}

static int arena_take(struct vb_peer *peer, int *fd)
{
	const char *defect = "it shares none";
	int err = fd ? vb_window_attach(peer, *fd, &defect) : -EBADMSG;

	if (!err)
		*fd = -1;
	else if (err != -ENOMEM)
		vb_note(VB_REASON_NO_DIRECT_ACCESS, "process %u: memory to be mapped: %s",
			vb_peer_pid(peer), defect);
	return err == -ENOMEM ? err : 0;
}

static void guards_drop(struct vb_peer *peer)
{
	vb_shared_unmap(peer->keys, sizeof(struct vb_keyring));
	vb_turn_unmap(peer->turn);
	peer->keys = NULL;
	peer->turn = NULL;
}

/*
 * Takes the parts of its memory. Every part but the keys may be missing or unfit: then the memory
 * is reached in other ways. -errno: nothing was taken.
 */
static int parts_take(struct vb_peer *peer, const struct vb_control *msg, int *fds, int num_fds)
{
	int err = guards_take(peer, msg, fds, num_fds);
	int n = msg->parts & VB_CONTROL_LOCK ? 1 : 0, last = num_fds - 1;

	if (!err)
		err = arena_take(peer,
				 (msg->parts & VB_CONTROL_ARENA) && n < last ? &fds[n++] : NULL);
	if (err) {
		guards_drop(peer);
		return err;
	}
	if ((msg->parts & VB_CONTROL_MEMORY) && n < last && peer->turn &&
	    vb_memory_usable(fds[n])) {
		atomic_store(&peer->mem_fd, fds[n]);
		fds[n] = -1;
		vb_bulk_probe(peer, msg->nonce_address);
	} else {
		vb_note(VB_REASON_NO_DIRECT_ACCESS, "process %u: %s", vb_peer_pid(peer), msg->text);
	}
	atomic_store_explicit(&peer->given, true, memory_order_release);
	return 0;
}

static void ask_later(struct vb_node *node, struct vb_peer *peer, int64_t pause)
{
	int64_t at = vb_node_clock() + pause;

	if (!peer->ask.again)
		node->give_open++;
	peer->ask.again = at;
	if (!node->give_due || at < node->give_due)
		node->give_due = at;
	vb_node_retry(node, pause);
}

void vb_give_end(struct vb_peer *peer)
{
	struct vb_node *node = peer->node;

	if (!peer->ask.again)
		return;
	peer->ask.again = 0;
	if (!--node->give_open)
		node->give_due = 0;
}

/* It was asked in vain: the next question comes after twice the pause. */
static void ask_again(struct vb_peer *peer)
{
	peer->ask.pause = peer->ask.pause ? 2 * peer->ask.pause : AGAIN_FIRST_NS;
	if (peer->ask.pause > AGAIN_LAST_NS)
		peer->ask.pause = AGAIN_LAST_NS;
	ask_later(peer->node, peer, peer->ask.pause);
}

void vb_give_take(struct vb_peer *peer, const struct vb_control *msg, int *fds, int num_fds)
{
	if (!atomic_load(&peer->ask.wanted) || atomic_load(&peer->given))
		return;
	if (!msg->parts) {
		vb_note(VB_REASON_NO_DIRECT_ACCESS, "process %u: %s", vb_peer_pid(peer), msg->text);
		ask_again(peer);
	} else if (parts_take(peer, msg, fds, num_fds)) {
		ask_again(peer);
		return;
	} else {
		vb_give_end(peer);
	}
	atomic_store(&peer->ask.answered, true);
}

void vb_give_stripped(struct vb_peer *peer)
{
	vb_note(VB_REASON_NO_DIRECT_ACCESS, "process %u: no descriptor is left here for its memory",
		vb_peer_pid(peer));
	ask_again(peer);
	atomic_store(&peer->ask.answered, true);
}

/*
 * Asks again after a while, unless the memory is given: messages get lost where memory is short,
 * and refusals may change.
 */
static void ask_send(struct vb_node *node, struct vb_peer *peer)
{
	struct vb_control msg = {
		.type = VB_CONTROL_ASK,
		.parts = vb_trust_says_uid() ? VB_CONTROL_SAYS_UID : 0,
	};

	ask_later(node, peer, UNANSWERED_NS);
	for (struct vb_connection *c = node->connections; c; c = c->next) {
		if (c->peer != peer || !c->shown || c->leaving)
			continue;
		msg.nonce = c->shown;
		if (vb_connection_send(node, c, &msg, NULL, 0, false))
			return;
		break; /* no memory to ask with */
	}
	ask_again(peer);
}

void vb_give_ask(struct vb_node *node, struct vb_peer *peer)
{
	if (!peer->self && !atomic_exchange(&peer->ask.wanted, true))
		ask_send(node, peer);
}

void vb_peer_want_memory(struct vb_peer *peer)
{
	struct vb_node *node = peer->node;

	if (peer->self || atomic_load_explicit(&peer->ask.wanted, memory_order_relaxed))
		return;
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	vb_give_ask(node, peer);
	vb_mutex_release(&node->lock);
}

bool vb_peer_memory_is_due(const struct vb_peer *peer)
{
	return atomic_load_explicit(&peer->ask.wanted, memory_order_relaxed) &&
	       !atomic_load_explicit(&peer->ask.answered, memory_order_acquire) &&
	       vb_peer_alive(peer);
}

void vb_peer_doubt(struct vb_peer *peer)
{
	if (atomic_exchange(&peer->unproven, true))
		return;
	atomic_store(&peer->node->give_doubts, true);
	vb_node_todo(peer->node);
}

/* With hundreds of peers no turn of the progress thread looks at all of them for nothing. */
static bool is_due(struct vb_node *node, int64_t now)
{
	if (atomic_load(&node->give_doubts) && atomic_exchange(&node->give_doubts, false))
		return true;
	if (!node->give_due)
		return false;
	if (node->give_due > now)
		vb_node_retry(node, node->give_due - now);
	return node->give_due <= now;
}

void vb_give_service(struct vb_node *node)
{
	int64_t now = vb_node_clock();

	if (!is_due(node, now))
		return;
	node->give_due = 0;
	for (struct vb_peer *peer = node->peers; peer; peer = peer->next) {
		int64_t again = peer->ask.again;

		if (again && again <= now)
			ask_send(node, peer);
		else if (again)
			ask_later(node, peer, again - now);
		if (atomic_load_explicit(&peer->unproven, memory_order_relaxed) &&
		    atomic_exchange(&peer->unproven, false))
			vb_contact_prove(node, peer);
	}
}

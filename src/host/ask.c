/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * This process asks a peer for its memory. It first opens that memory itself, as any process can try
 * (proc(5), /proc/PID/mem), so that the kernel decides. Then it shows the peer that it can read
 * there, and the peer gives what makes the memory of use: keys, the lock of ATOMICs, what it shares
 * (give.c). Where the kernel refuses, requests go through rings, and the peer's engines execute
 * them; it is asked again from time to time, because both sides may change.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/reason.h"
#include "base/sys.h"
#include "host/channel_private.h"
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

static void memory_close(struct vb_peer *peer)
{
	vb_descriptor_close(peer->ask.mem);
	peer->ask.mem = -1;
	peer->ask.proven = false;
}

/*
 * What is opened is the memory that the process has now: an execve(2) of its leaves the descriptor
 * without any. -errno where the system is short of something; 0 also if the kernel refuses.
 */
static int memory_open(struct vb_peer *peer)
{
	char path[32];

	memory_close(peer);
	if (peer->seen_pid <= 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)peer->seen_pid);
	peer->ask.mem = vb_descriptor_adopt(vb_sys_open(path, O_RDWR | O_CLOEXEC));
	return peer->ask.mem < 0 && vb_system_is_short(-errno) ? -errno : 0;
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
	vb_shared_unmap(peer->keys, VB_KEYRING_FIRST);
	vb_turn_unmap(peer->turn);
	peer->keys = NULL;
	peer->turn = NULL;
}

/*
 * The peer's memory: what this process has opened itself, or what the peer passed where the one
 * cannot name the other. Transfers by number are for kin: with more rights than the peer, this process
 * could be led to write where the peer cannot.
 */
static void memory_take(struct vb_peer *peer, const struct vb_control *msg, int *fd)
{
	if (!fd || !peer->turn || !vb_memory_usable(*fd)) {
		vb_note(VB_REASON_NO_DIRECT_ACCESS, "process %u: %s", vb_peer_pid(peer), msg->text);
		return;
	}
	atomic_store(&peer->mem_fd, *fd);
	*fd = -1;
	if (!vb_peer_is_watched(peer))
		vb_bulk_probe(peer, msg->nonce_address);
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
	if ((msg->parts & VB_CONTROL_MEMORY) && n < last)
		memory_take(peer, msg, &fds[n]);
	else
		memory_take(peer, msg, peer->ask.proven ? &peer->ask.mem : NULL);
	atomic_store_explicit(&peer->given, true, memory_order_release);
	return 0;
}

static void ask_later(struct vb_node *node, struct vb_peer *peer, int64_t pause)
{
	int64_t at = vb_node_clock() + pause;

	if (!peer->ask.again)
		node->ask_open++;
	peer->ask.again = at;
	if (!node->ask_due || at < node->ask_due)
		node->ask_due = at;
	vb_node_retry(node, pause);
}

void vb_ask_end(struct vb_peer *peer)
{
	struct vb_node *node = peer->node;

	memory_close(peer);
	if (!peer->ask.again)
		return;
	peer->ask.again = 0;
	if (!--node->ask_open)
		node->ask_due = 0;
}

/* It was asked in vain: the next question comes after twice the pause. */
static void ask_again(struct vb_peer *peer)
{
	memory_close(peer);
	peer->ask.first = false;
	peer->ask.pause = peer->ask.pause ? 2 * peer->ask.pause : AGAIN_FIRST_NS;
	if (peer->ask.pause > AGAIN_LAST_NS)
		peer->ask.pause = AGAIN_LAST_NS;
	ask_later(peer->node, peer, peer->ask.pause);
}

void vb_ask_take(struct vb_peer *peer, const struct vb_control *msg, int *fds, int num_fds)
{
	if (!atomic_load(&peer->ask.wanted) || atomic_load(&peer->given))
		return;
	peer->ask.first = false;
	if (!msg->parts) {
		vb_note(VB_REASON_NO_DIRECT_ACCESS, "process %u: %s", vb_peer_pid(peer), msg->text);
		ask_again(peer);
	} else if (parts_take(peer, msg, fds, num_fds)) {
		ask_again(peer);
		return;
	} else {
		vb_ask_end(peer);
	}
	atomic_store(&peer->ask.answered, true);
}

void vb_ask_stripped(struct vb_peer *peer)
{
	vb_note(VB_REASON_NO_DIRECT_ACCESS, "process %u: no descriptor is left here for its memory",
		vb_peer_pid(peer));
	ask_again(peer);
	atomic_store(&peer->ask.answered, true);
}

/* The connection on which the peer is spoken to before it has answered. */
static struct vb_connection *question_on(struct vb_node *node, const struct vb_peer *peer)
{
	struct vb_connection *c = node->connections;

	while (c && (c->peer != peer || !c->granted || c->leaving))
		c = c->next;
	return c;
}

/*
 * Asks again after a while, unless the memory is given: messages get lost where memory is short,
 * and refusals may change.
 */
static void ask_send(struct vb_node *node, struct vb_peer *peer)
{
	struct vb_connection *conn = question_on(node, peer);
	uint32_t block[VB_MAX_BLOCKS];
	struct vb_control msg = {
		.type = VB_CONTROL_ASK,
		.parts = vb_trust_says_uid() ? VB_CONTROL_SAYS_UID : 0,
		.nonce = vb_random64(),
	};

	ask_later(node, peer, UNANSWERED_NS);
	if (!conn && vb_peer_blocks(peer, block))
		vb_contact_again(node, block[0]);
	peer->ask.lost = !conn;
	if (!conn || memory_open(peer)) {
		ask_again(peer);
		return;
	}
	msg.parts |= peer->ask.mem < 0 ? VB_CONTROL_SHUT : 0;
	peer->ask.first = peer->ask.mem >= 0 && !peer->ask.nonce;
	peer->ask.nonce = msg.nonce;
	vb_connection_send(node, conn, &msg, NULL, 0, false);
}

/*
 * The token at that place, 0: it cannot be read. The place must begin with the nonce of the question:
 * otherwise a peer could have this process, which may have more rights, read for it what another
 * program keeps there.
 */
static uint64_t token_read(struct vb_peer *peer, uint64_t address)
{
	struct vb_proof proof;

	if (vb_sys_pread(peer->ask.mem, &proof, sizeof(proof), (off_t)address) != sizeof(proof) ||
	    proof.asked != peer->ask.nonce)
		return 0;
	peer->ask.proven = true;
	return proof.token;
}

/*
 * The process that answers must be the one whose memory was opened: its number may have become
 * another program's, which speaks no more, while a child of the former one has the socket.
 */
void vb_ask_prove(struct vb_node *node, struct vb_connection *conn, const struct vb_control *msg)
{
	struct vb_control proof = {.type = VB_CONTROL_PROOF};
	struct vb_peer *peer = conn->peer;

	if (!atomic_load(&peer->ask.wanted) || atomic_load(&peer->given) || !peer->ask.again ||
	    conn->from.pid != conn->opened.pid || !vb_peer_is_process(peer, &conn->from))
		return;
	peer->ask.first = false;
	if (!msg->nonce_address) {
		ask_send(node, peer);
		return;
	}
	if (!vb_descriptor_ours(peer->ask.mem))
		return;
	proof.nonce = token_read(peer, msg->nonce_address);
	conn = question_on(node, peer);
	if (conn)
		vb_connection_send(node, conn, &proof, NULL, 0, false);
	else
		ask_again(peer);
}

/* Where a message was lost, the answer to the peer's own question may be lost, too. */
void vb_ask_lost(struct vb_node *node, struct vb_peer *peer)
{
	peer->heard = 0;
	if (!peer->ask.again || atomic_load(&peer->ask.answered))
		return;
	peer->ask.lost = true;
	ask_later(node, peer, AGAIN_FIRST_NS);
}

void vb_ask_found(struct vb_node *node, struct vb_peer *peer)
{
	if (peer->ask.lost)
		ask_send(node, peer);
}

void vb_ask_memory(struct vb_node *node, struct vb_peer *peer)
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
	vb_ask_memory(node, peer);
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
	atomic_store(&peer->node->ask_doubts, true);
	vb_node_todo(peer->node);
}

/* With hundreds of peers no turn of the progress thread looks at all of them for nothing. */
static bool is_due(struct vb_node *node, int64_t now)
{
	if (atomic_load(&node->ask_doubts) && atomic_exchange(&node->ask_doubts, false))
		return true;
	if (!node->ask_due)
		return false;
	if (node->ask_due > now)
		vb_node_retry(node, node->ask_due - now);
	return node->ask_due <= now;
}

bool vb_ask_service(struct vb_node *node)
{
	int64_t now = vb_node_clock();
	bool changed = false;

	if (!is_due(node, now))
		return false;
	node->ask_due = 0;
	for (struct vb_peer *peer = node->peers; peer; peer = peer->next) {
		int64_t again = peer->ask.again;

		if (again && again <= now) {
			ask_send(node, peer);
			changed |= vb_channel_asks_go_on(node, peer);
		} else if (again) {
			ask_later(node, peer, again - now);
		}
		if (atomic_load_explicit(&peer->unproven, memory_order_relaxed) &&
		    atomic_exchange(&peer->unproven, false))
			vb_contact_prove(node, peer);
	}
	return changed;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table of peers: by nonce and by block, which of them live, and the doorbell. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/sys.h"
#include "host/control.h"
#include "host/descriptor.h"
#include "host/names.h"
#include "host/private.h"
#include "host/shared.h"

/* A process may have changed its user since. */
bool vb_peer_is_process(const struct vb_peer *peer, const struct ucred *process)
{
	if (peer->seen_pid && process->pid)
		return peer->seen_pid == process->pid;
	return peer->seen_pid == process->pid && peer->uid == process->uid;
}

bool vb_peer_is_believed(const struct vb_peer *peer)
{
	return !atomic_load(&peer->must_prove) || atomic_load(&peer->num_proven);
}

bool vb_peer_owns(const struct vb_peer *peer, uint32_t block)
{
	if (vb_page_block_index(peer->page, block) < 0)
		return false;
	if (!atomic_load_explicit(&peer->must_prove, memory_order_relaxed))
		return true;
	return vb_peer_has_proven(peer, block);
}

bool vb_peer_has_ended(const struct vb_peer *peer)
{
	return !vb_alive_word_held(peer->page);
}

uint32_t vb_peer_blocks(const struct vb_peer *peer, uint32_t block[VB_MAX_BLOCKS])
{
	uint32_t n = __atomic_load_n(&peer->page->header.num_blocks, __ATOMIC_ACQUIRE), count = 0;

	for (uint32_t i = 0; i < n && i < VB_MAX_BLOCKS; i++) {
		uint32_t one = __atomic_load_n(&peer->page->header.block[i], __ATOMIC_RELAXED);

		if (one != VB_NO_BLOCK && vb_peer_owns(peer, one))
			block[count++] = one;
	}
	return count;
}

static int proof_find(const struct vb_peer *peer, uint32_t block)
{
	uint32_t n = atomic_load_explicit(&peer->num_proven, memory_order_acquire);

	for (uint32_t i = 0; i < n; i++) {
		if (__atomic_load_n(&peer->proven[i], __ATOMIC_RELAXED) == block)
			return (int)i;
	}
	return -1;
}

bool vb_peer_has_proven(const struct vb_peer *peer, uint32_t block)
{
	return proof_find(peer, block) >= 0;
}

/* Another process may have a name that was given up; the newer proof counts. */
void vb_peer_prove(struct vb_peer *peer, uint32_t block)
{
	uint32_t n = atomic_load(&peer->num_proven);

	for (struct vb_peer *p = peer->node->peers; p; p = p->next) {
		int i = p == peer ? -1 : proof_find(p, block);

		if (i >= 0)
			__atomic_store_n(&p->proven[i], VB_NO_BLOCK, __ATOMIC_RELAXED);
	}
	if (vb_peer_has_proven(peer, block) || n == VB_MAX_BLOCKS ||
	    vb_page_block_index(peer->page, block) < 0)
		return;
	peer->proven[n] = block;
	atomic_store_explicit(&peer->num_proven, n + 1, memory_order_release);
	peer->node->found[block] = peer;
}

struct vb_peer *vb_peer_found(struct vb_node *node, uint32_t block)
{
	struct vb_peer *p = block < VB_NUM_BLOCKS ? node->found[block] : NULL;

	return p && p->state == VB_PEER_UP && vb_peer_owns(p, block) ? p : NULL;
}

void vb_peer_find_blocks(struct vb_node *node, struct vb_peer *peer)
{
	uint32_t block[VB_MAX_BLOCKS], count = vb_peer_blocks(peer, block);

	for (uint32_t i = 0; i < count; i++) {
		if (block[i] < VB_NUM_BLOCKS && !vb_peer_found(node, block[i]))
			node->found[block[i]] = peer;
	}
}

struct vb_peer *vb_peer_by_block(struct vb_node *node, uint32_t block)
{
	struct vb_peer *p = vb_peer_found(node, block);

	if (p)
		return p;
	p = node->peers;
	while (p && (p->state != VB_PEER_UP || !vb_peer_owns(p, block)))
		p = p->next;
	if (p && block < VB_NUM_BLOCKS)
		node->found[block] = p;
	return p;
}

void vb_peer_unlist(struct vb_node *node, struct vb_peer *peer)
{
	for (uint32_t i = 0; i < VB_NUM_BLOCKS; i++) {
		if (node->found[i] == peer)
			node->found[i] = NULL;
	}
	vb_bell_unlist(node, peer);
	for (struct vb_peer **p = &node->peers; *p; p = &(*p)->next) {
		if (*p == peer) {
			*p = peer->next;
			node->num_peers--;
			node->num_alone -= !peer->connections;
			peer->listed = false;
			vb_ask_end(peer);
			vb_tracer_end(node, peer);
			return;
		}
	}
}

/* A process without a number here cannot be told from others that show the same page. */
void vb_peer_bar(struct vb_peer *peer)
{
	struct vb_node *node = peer->node;

	if (peer->seen_pid > 0)
		node->barred[node->num_barred++ % VB_BARRED] =
			(struct vb_barred){peer->nonce, peer->seen_pid};
}

bool vb_peer_is_barred(const struct vb_node *node, uint64_t nonce, pid_t pid)
{
	for (uint32_t i = 0; i < VB_BARRED; i++) {
		if (node->barred[i].nonce == nonce && node->barred[i].pid == pid)
			return true;
	}
	return false;
}

uint64_t vb_peer_nonce(const struct vb_peer *peer)
{
	return peer->nonce;
}

uint32_t vb_peer_pid(const struct vb_peer *peer)
{
	if (peer->seen_pid)
		return (uint32_t)peer->seen_pid;
	return __atomic_load_n(&peer->page->header.pid, __ATOMIC_RELAXED);
}

bool vb_peer_is_self(const struct vb_peer *peer)
{
	return peer->self;
}

bool vb_peer_is_watched(const struct vb_peer *peer)
{
	return atomic_load_explicit(&peer->must_prove, memory_order_relaxed);
}

bool vb_peer_is_stranger(const struct vb_peer *peer)
{
	return peer->stranger;
}

bool vb_peer_agrees(const struct vb_peer *peer)
{
	return peer->agrees;
}

bool vb_peer_speaks_for(const struct vb_peer *peer, uint32_t qpn)
{
	return !(qpn >> 24) && vb_peer_has_proven(peer, qpn >> VB_QPN_BLOCK_BITS);
}

/*
 * The whole object whose beginning is `first`. Mapped when it is first needed; stays until the peer
 * goes. NULL: no memory.
 */
static const void *whole(_Atomic(void *) *place, const void *first, size_t bytes)
{
	void *map = atomic_load_explicit(place, memory_order_acquire);
	void *none = NULL;

	if (map)
		return map;
	map = vb_shared_map_whole(first, bytes);
	if (!map || atomic_compare_exchange_strong(place, &none, map))
		return map;
	vb_shared_unmap(map, bytes); /* another thread was first */
	return none;
}

const struct vb_page_qp *vb_peer_qp(struct vb_peer *peer, uint32_t qpn)
{
	int block = qpn >> 24 ? -1 : vb_page_block_index(peer->page, qpn >> VB_QPN_BLOCK_BITS);
	uint32_t i = (uint32_t)block * VB_QPN_BLOCK_SIZE + qpn % VB_QPN_BLOCK_SIZE;
	const struct vb_page *page = peer->page;

	if (block < 0)
		return NULL;
	if (i >= VB_QPS_FIRST)
		page = whole(&peer->whole_page, page, sizeof(*page));
	return page ? &page->qp[i] : NULL;
}

const struct vb_key *vb_peer_key(struct vb_peer *peer, uint32_t key)
{
	const struct vb_keyring *keys;
	uint32_t slot = vb_key_slot(key);

	if (!atomic_load_explicit(&peer->given, memory_order_acquire) || !peer->keys)
		return NULL;
	keys = peer->keys;
	if (slot >= VB_KEYS_FIRST)
		keys = whole(&peer->whole_keys, keys, sizeof(*keys));
	return keys ? &keys->key[slot] : NULL;
}

/*
 * For a process whose descriptors were closed by its program: connecting to a name wakes the name's
 * owner as the doorbell does. The socket lives only here, so the program has hardly time to close
 * its number.
 */
static void wake_by_name(struct vb_peer *peer)
{
	struct sockaddr_un addr;
	socklen_t len = vb_name_address(&addr, __atomic_load_n(&peer->page->header.block[0],
							       __ATOMIC_RELAXED));
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return;
	if (vb_sys_connect(fd, (struct sockaddr *)&addr, len))
		vb_log(VB_LOG_DEBUG, "waking process %u: %s", vb_peer_pid(peer), strerror(errno));
	vb_sys_close(fd);
}

/*
 * Rings by the connection, because a descriptor for each peer's doorbell would be one more. False:
 * no connection works.
 */
static bool ring_by_connection(struct vb_peer *peer)
{
	struct vb_node *node = peer->node;

	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	struct vb_connection *conn = vb_connection_of(node, peer);
	int err = conn && vb_descriptor_ours(conn->source.fd) ? vb_control_ring(conn->source.fd)
							      : -EBADF;

	vb_mutex_release(&node->lock);
	/* No room: it has not read what was sent to it yet, so it will wake. */
	return !err || err == -EAGAIN;
}

bool vb_peer_ring(struct vb_peer *peer)
{
	struct vb_node *node = peer->node;
	bool gone = atomic_load(&node->gone);

	if (atomic_load(&node->forked))
		return true;
	if (peer->self && !gone)
		vb_reactor_ring(node);
	if (peer->self || (!gone && ring_by_connection(peer)))
		return true;
	wake_by_name(peer);
	return false;
}

bool vb_peer_alive(const struct vb_peer *peer)
{
	if (peer->self)
		return true;
	return !atomic_load_explicit(&peer->rejected, memory_order_relaxed) &&
	       vb_alive_word_held(peer->page);
}

void vb_peer_reject(struct vb_peer *peer, const char *why)
{
	if (peer->self) {
		vb_note(VB_REASON_PEER_CORRUPT, "own process: %s", why);
		return;
	}
	if (atomic_exchange(&peer->rejected, true))
		return;
	vb_note(VB_REASON_PEER_CORRUPT, "process %u: %s", vb_peer_pid(peer), why);
	vb_liveness_doubt(peer->node);
}

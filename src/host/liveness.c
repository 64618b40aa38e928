/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who is alive. The truth is the futex word that the progress thread of each process holds from start to death: the
 * kernel's robust list marks it (futex(2), get_robust_list(2)) on exit, kill and exec alike, and no forked child can keep it. Hung-up sockets only
 * say when to look. A child of fork(2) closes its copies (forked.c); where another one keeps them (a raw clone(2)), the end is noticed within
 * 200 ms. A pidfd would be one more descriptor for each peer.
 */
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/reason.h"
#include "base/sys.h"
#include "host/channel_private.h"
#include "host/descriptor.h"
#include "host/private.h"
#include "host/trust.h"

/* So often it is looked whether peers live that no hang-up tells of: those without a connection, and all, since sockets can be copied. */
#define BLIND_NS              (50 * VB_MSEC)
#define COPIED_NS             (200 * VB_MSEC)

#define FUTEX_WORD_OWNER_DIED 0x40000000u

int vb_alive_init(struct vb_page *page)
{
	pthread_mutexattr_t attr;
	int err = pthread_mutexattr_init(&attr);

	if (err)
		return -err;
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	err = pthread_mutex_init(&page->header.alive, &attr);
	pthread_mutexattr_destroy(&attr);
	return -err;
}

void vb_node_hold_alive(struct vb_node *node)
{
	if (atomic_load(&node->held))
		return;
	int err = pthread_mutex_lock(&node->page->header.alive);

	/* The thread that held it before has ended without its process. */
	if (err == EOWNERDEAD)
		pthread_mutex_consistent(&node->page->header.alive);
	node->thread = pthread_self();
	atomic_store(&node->held, true);
}

/* The mutex begins with its futex word; what the kernel writes there is ABI, the rest of the mutex is nobody's business. */
bool vb_alive_word_held(const struct vb_page *page)
{
	uint32_t word = __atomic_load_n((const uint32_t *)&page->header.alive, __ATOMIC_ACQUIRE);

	return (word & VB_ALIVE_TID) != 0 && !(word & FUTEX_WORD_OWNER_DIED);
}

bool vb_peer_alive(const struct vb_peer *peer)
{
	if (peer->self)
		return true;
	return !atomic_load_explicit(&peer->condemned, memory_order_relaxed) &&
	       vb_alive_word_held(peer->page);
}

void vb_peer_condemn(struct vb_peer *peer, const char *why)
{
	if (peer->self) {
		vb_note(VB_REASON_PEER_CORRUPT, "own process: %s", why);
		return;
	}
	if (atomic_exchange(&peer->condemned, true))
		return;
	vb_note(VB_REASON_PEER_CORRUPT, "process %u: %s", vb_peer_pid(peer), why);
	vb_node_todo(peer->node);
}

static void pidfd_ready(struct vb_node *node, struct vb_source *source, uint32_t events)
{
	struct vb_peer *peer = (struct vb_peer *)((char *)source - offsetof(struct vb_peer, pidfd));

	(void)events;
	pthread_mutex_lock(&node->lock);
	vb_node_source_remove(node, source);
	pthread_mutex_unlock(&node->lock);
	/* The process is gone; its futex word said so before, unless its memory was scribbled over. */
	atomic_store(&peer->condemned, true);
}

static void watch(struct vb_node *node, struct vb_peer *peer, int sock)
{
	if (peer->pidfd.fd >= 0)
		return;
	int fd = vb_trust_pidfd(sock, peer->seen_pid);

	/* Alive after the open: then the number had not been given to another process before it. */
	if (fd >= 0 && !vb_alive_word_held(peer->page)) {
		vb_sys_close(fd);
		fd = -1;
	}
	if (fd < 0)
		return;
	peer->pidfd.fd = vb_descriptor_adopt(fd);
	peer->pidfd.ready = pidfd_ready;
	if (vb_node_source_add(node, &peer->pidfd, EPOLLIN)) {
		vb_descriptor_close(peer->pidfd.fd);
		peer->pidfd.fd = -1;
	}
}

void vb_liveness_met(struct vb_node *node, struct vb_peer *peer, int sock)
{
	if (!vb_trust_socket_names(sock))
		watch(node, peer, sock);
	else
		vb_node_source_remove(node, &peer->pidfd);
}

void vb_liveness_given(struct vb_node *node, struct vb_peer *peer)
{
	if (peer->connections)
		vb_node_source_remove(node, &peer->pidfd);
}

/* The hang-up of its close-on-exec sockets tells of the end of the process and of an exec, unless somebody has copies of them. */
int64_t vb_liveness_pause(struct vb_node *node)
{
	int64_t pause = INT64_MAX;

	pthread_mutex_lock(&node->lock);
	for (struct vb_peer *p = node->peers; p && pause != BLIND_NS; p = p->next)
		pause = p->connections ? COPIED_NS : BLIND_NS;
	pthread_mutex_unlock(&node->lock);
	return pause;
}

/* With the lock: the peer leaves the table; its connections and half-made channels end here, the others when the device closes them. */
static void bury(struct vb_node *node, struct vb_peer *peer)
{
	struct vb_channel *next;

	for (struct vb_peer **p = &node->peers; *p; p = &(*p)->next) {
		if (*p == peer) {
			*p = peer->next;
			break;
		}
	}
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
	vb_node_source_remove(node, &peer->pidfd);
	peer->state = VB_PEER_DEAD;
	if (vb_alive_word_held(peer->page))
		vb_peer_cast_out(peer);
}

/* Should its futex word have been scribbled over. A number that is used again hides that. */
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

	for (;;) {
		pthread_mutex_lock(&node->lock);
		struct vb_peer *peer = find_dead(node);
		bool known = peer && peer->state == VB_PEER_UP;

		if (peer)
			bury(node, peer);
		pthread_mutex_unlock(&node->lock);
		if (!peer)
			return told;
		told = true;
		vb_log(VB_LOG_INFO, "process %u has ended", vb_peer_pid(peer));
		if (known && node->events.peer_dead)
			node->events.peer_dead(node->events.arg, peer);
		if (node->events.contact_changed)
			node->events.contact_changed(node->events.arg);
		/* Events of this turn may still point to its pidfd: the reference is dropped at the end of the turn. */
		pthread_mutex_lock(&node->lock);
		peer->next = node->buried;
		node->buried = peer;
		pthread_mutex_unlock(&node->lock);
	}
}

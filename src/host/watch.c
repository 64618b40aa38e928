/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pidfds of peers. A few peers have one as long as they live: it tells of the end of the process also
 * where another process has copies of its sockets. It is a descriptor more, so that other peers have
 * one only while nothing else tells which process made the socket (before Linux 6.5).
 */
#include <stddef.h>
#include <sys/epoll.h>

#include "base/lock.h"
#include "base/sys.h"
#include "host/descriptor.h"
#include "host/private.h"
#include "host/trust.h"

#define WATCHED_MOST 8u

static void pidfd_ready(struct vb_node *node, struct vb_source *source, uint32_t events)
{
	struct vb_peer *peer = (struct vb_peer *)((char *)source - offsetof(struct vb_peer, pidfd));

	(void)events;
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	vb_liveness_unwatch(node, peer);
	vb_mutex_release(&node->lock);
	/*
	 * The process is gone; its futex word said so before, unless its memory was scribbled over.
	 */
	atomic_store(&peer->rejected, true);
	vb_liveness_doubt(node);
}

void vb_liveness_unwatch(struct vb_node *node, struct vb_peer *peer)
{
	if (peer->pidfd.fd >= 0)
		node->num_watched--;
	vb_node_source_remove(node, &peer->pidfd);
}

static void watch(struct vb_node *node, struct vb_peer *peer, int sock)
{
	if (peer->pidfd.fd >= 0)
		return;
	int fd = vb_trust_pidfd(sock, peer->seen_pid);

	/* Alive after the open: then no other process had the number before. */
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
		return;
	}
	node->num_watched++;
}

void vb_liveness_met(struct vb_node *node, struct vb_peer *peer, int sock)
{
	if (node->num_watched < WATCHED_MOST || !vb_trust_socket_names(sock))
		watch(node, peer, sock);
}

void vb_liveness_given(struct vb_node *node, struct vb_peer *peer)
{
	if (peer->connections && node->num_watched > WATCHED_MOST)
		vb_liveness_unwatch(node, peer);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A peer from its first page to its last reference. */
#include <stdlib.h>
#include <unistd.h>

#include "host/descriptor.h"
#include "host/private.h"
#include "host/rack.h"
#include "host/shared.h"

struct vb_peer *vb_peer_new(struct vb_node *node, const struct vb_page *page, uint64_t nonce)
{
	struct vb_peer *peer = calloc(1, sizeof(*peer));

	if (!peer)
		return NULL;
	peer->node = node;
	peer->page = page;
	peer->nonce = nonce;
	peer->fences = node->page->header.needs_fences ||
		       __atomic_load_n(&page->header.needs_fences, __ATOMIC_RELAXED);
	peer->state = VB_PEER_MET;
	peer->references = 1;
	peer->pidfd.fd = -1;
	peer->arena_fd = -1;
	peer->ask.mem = -1;
	atomic_store(&peer->must_prove, true);
	atomic_store(&peer->mem_fd, -1);
	if (page != node->page) {
		peer->next = node->peers;
		node->peers = peer;
		node->num_peers++;
		peer->listed = true;
		node->num_alone++;
	}
	return peer;
}

void vb_peer_ref(struct vb_peer *peer)
{
	peer->references++;
}

void vb_peer_unref(struct vb_peer *peer)
{
	if (--peer->references || peer->self)
		return;
	vb_descriptor_close(atomic_load(&peer->mem_fd));
	vb_racks_free(peer);
	vb_turn_unmap(peer->turn);
	vb_window_detach(peer);
	vb_descriptor_close(peer->arena_fd);
	vb_shared_unmap(peer->page, VB_PAGE_FIRST);
	vb_shared_unmap(peer->keys, VB_KEYRING_FIRST);
	vb_shared_unmap(atomic_load(&peer->whole_page), sizeof(struct vb_page));
	vb_shared_unmap(atomic_load(&peer->whole_keys), sizeof(struct vb_keyring));
	free(peer);
}

void vb_peer_forget(struct vb_node *node, struct vb_peer *peer)
{
	vb_peer_unlist(node, peer);
	vb_liveness_unwatch(node, peer);
	peer->state = VB_PEER_DEAD;
	peer->next = node->removed;
	node->removed = peer;
}

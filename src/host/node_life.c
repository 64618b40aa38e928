/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The node: start and stop. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/barrier.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/reason.h"
#include "base/sys.h"
#include "host/arena.h"
#include "host/channel_private.h"
#include "host/descriptor.h"
#include "host/private.h"
#include "host/shared.h"
#include "host/trust.h"

/* The node lies outside the heap: tells the leak checker that the memory it points to is in use. */
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#define LEAK_ROOT(at, size)    __lsan_register_root_region(at, size)
#define NO_LEAK_ROOT(at, size) __lsan_unregister_root_region(at, size)
#else
#define LEAK_ROOT(at, size)    ((void)0)
#define NO_LEAK_ROOT(at, size) ((void)0)
#endif

/* Makes the peer that stands for this process. */
static int self_make(struct vb_node *node)
{
	const char *defect = NULL;
	struct vb_peer *self = vb_peer_new(node, node->page, node->nonce);

	if (!self)
		return -ENOMEM;
	self->self = true;
	atomic_store(&self->must_prove, false);
	self->state = VB_PEER_UP;
	self->seen_pid = getpid();
	self->keys = node->keyring;
	atomic_store(&self->whole_page, node->page);
	atomic_store(&self->whole_keys, node->keyring);
	atomic_store(&self->given, true);
	node->self = self;
	int err = node->arena.fd < 0 ? 0 : vb_window_attach(self, node->arena.fd, &defect);

	if (err == -ENOMEM)
		return err;
	if (err)
		vb_note(VB_REASON_NO_DIRECT_ACCESS, "own shared memory: %s", defect);
	return vb_turn_create(&self->turn, &node->lock_fd);
}

/*
 * Makes what peers reach directly. The device works without it, but then without it for good. A
 * shortage therefore makes the start fail, and the program's next call tries again.
 */
static int direct_make(struct vb_node *node)
{
	int err = vb_arena_create(node);

	if (vb_system_is_short(err))
		return err;
	if (err)
		vb_note(VB_REASON_SYSTEM, "no device memory and no mapped buffers: %s",
			strerror(-err));
	/* Others open it themselves. */
	if (!vb_trust_says_uid())
		return 0;
	node->mem_fd = vb_memory_open_own(&node->nonce, node->obstacle, sizeof(node->obstacle));
	if (vb_system_is_short(node->mem_fd))
		return node->mem_fd;
	if (node->mem_fd < 0)
		vb_note(VB_REASON_NO_DIRECT_ACCESS, "%s", node->obstacle);
	return 0;
}

static void node_free(struct vb_node *node)
{
	if (node->self) {
		vb_turn_unmap(node->self->turn);
		vb_window_detach(node->self);
		free(node->self);
	}
	vb_arena_destroy(node);
	vb_shared_unmap(node->page, sizeof(struct vb_page));
	vb_shared_unmap(node->keyring, sizeof(struct vb_keyring));
	vb_descriptor_close(node->doorbell.fd);
	vb_descriptor_close(node->epoll);
	vb_descriptor_close(node->page_fd);
	vb_descriptor_close(node->keyring_fd);
	vb_descriptor_close(node->lock_fd);
	vb_descriptor_close(node->mem_fd);
	vb_descriptor_close(node->admission.spare);
	pthread_mutex_destroy(&node->lock);
	NO_LEAK_ROOT(node, sizeof(*node));
	munmap(node, sizeof(*node));
}

int vb_node_start(const struct vb_node_events *events, struct vb_node **out)
{
	/* Mostly tables; their pages become present as they are used. */
	struct vb_node *node = vb_sys_pages(sizeof(*node));

	if (node == MAP_FAILED)
		return vb_refuse(errno, VB_REASON_SYSTEM, "start of the shared-memory node: %s",
				 strerror(errno));
	LEAK_ROOT(node, sizeof(*node));
	node->epoll = node->doorbell.fd = node->lock_fd = node->mem_fd = -1;
	node->page_fd = node->keyring_fd = node->arena.fd = node->admission.spare = -1;
	pthread_mutex_init(&node->lock, NULL);
	vb_lock_place(&node->bell_lock, VB_ORDER_BELL);
	node->events = *events;
	node->hears = &vb_contact_hearer;
	do {
		node->nonce = vb_random64();
	} while (!node->nonce);
	int err = vb_page_create(node->nonce, &node->page, &node->page_fd);

	if (!err && !vb_barrier_allow(VB_BARRIER_GLOBAL)) {
		node->page->header.needs_fences = 1;
		vb_log(VB_LOG_INFO,
		       "membarrier: %s: each message to and from this process costs a fence",
		       strerror(errno));
	}
	if (!err)
		err = vb_alive_init(node->page);
	if (!err)
		err = vb_keyring_create(node->nonce, &node->keyring, &node->keyring_fd);
	if (!err)
		err = direct_make(node);
	if (!err)
		err = vb_reactor_open(node);
	vb_admit_spare(node);
	vb_names_open(node);
	if (!err)
		err = self_make(node);
	if (err) {
		node_free(node);
		return vb_refuse(-err, VB_REASON_SYSTEM, "start of the shared-memory node: %s",
				 strerror(-err));
	}
	*out = node;
	return 0;
}

void vb_node_stop(struct vb_node *node)
{
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	vb_names_close(node);
	while (node->connections)
		vb_connection_close(node, node->connections);
	while (node->peers) {
		struct vb_peer *peer = node->peers;

		node->peers = peer->next;
		while (peer->channels)
			vb_channel_retire(node, peer->channels);
		vb_liveness_unwatch(node, peer);
		vb_peer_unref(peer);
	}
	while (node->self->channels)
		vb_channel_close_loop(node, node->self->channels);
	vb_connection_free_closed(node);
	vb_channel_free_retired(node);
	vb_contact_free_all(node);
	vb_reactor_close(node);
	vb_mutex_release(&node->lock);
	node_free(node);
}

struct vb_page *vb_node_page(struct vb_node *node)
{
	return node->page;
}

struct vb_keyring *vb_node_keyring(struct vb_node *node)
{
	return node->keyring;
}

struct vb_peer *vb_node_self(struct vb_node *node)
{
	return node->self;
}

uint64_t vb_node_nonce(struct vb_node *node)
{
	return node->nonce;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * This process as a member of its host: its published page, its names, its doorbell.
 *
 * Started when the first queue pair is made (vb_node_start); an idle program has no thread and no
 * socket. The host room has no thread of its own: the device's progress thread calls
 * vb_node_wait(), which serves the control sockets. All functions are thread-safe unless said.
 * Descriptors are O_CLOEXEC and moved to high numbers, where a program that closes or reuses low
 * numbers does not meet them. Descriptors that vanish all the same are noticed (EBADF) and not
 * written to again.
 */
#ifndef VB_HOST_NODE_H
#define VB_HOST_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "host/page.h"

struct vb_channel;
struct vb_peer;
struct vb_node;

/* Called by vb_node_wait() (the progress thread), without any lock of the host room held. */
struct vb_node_events {
	/*
	 * A channel end of local engine `engine` is ready, opened by this process or by the peer.
	 * From now on its rx ring must be polled. Returns -ENOENT if there is no such engine.
	 */
	int (*channel_up)(void *arg, uint32_t engine, struct vb_channel *channel);
	/* The other side has closed this channel (its engine has ended, its process lives). */
	void (*channel_down)(void *arg, uint32_t engine, struct vb_channel *channel);
	/*
	 * The peer's process has ended or its memory is corrupt; all its channels are dead. The
	 * device drains what the peer has sent, then calls vb_channel_close() for each.
	 */
	void (*peer_dead)(void *arg, struct vb_peer *peer);
	/*
	 * The state of contact with the owner of a block has changed (e.g. absent): QPs that wait
	 * for a channel should ask again.
	 */
	void (*contact_changed)(void *arg);
	void *arg;
};

/*
 * Makes the page, the turn of atomics, the doorbell and the epoll descriptor. The progress thread
 * must call vb_node_hold_alive() before anything else. 0 or -errno.
 */
int vb_node_start(const struct vb_node_events *events, struct vb_node **node);
/* The life of the calling thread stands for the life of the process from now on (robust futex). */
void vb_node_hold_alive(struct vb_node *node);
/*
 * Removes the names and wakes no process. To be called only when no QP, engine or key is left, or
 * never: the kernel cleans up after exit.
 */
void vb_node_stop(struct vb_node *node);
/*
 * In a forked child: closes inherited descriptors, drops mappings of rings, and does not disturb
 * the parent. Async-signal-safe work only.
 */
void vb_node_forked(struct vb_node *node);

/*
 * Waits up to timeout_ns (-1: for ever) for the doorbell, control sockets and watched descriptors,
 * and dispatches their events. Returns true if the doorbell rang. Progress thread only. When the
 * program has closed descriptors of the library, it sleeps at most 1 ms.
 */
bool vb_node_wait(struct vb_node *node, int64_t timeout_ns);
/* Makes the progress thread return from vb_node_wait(). */
void vb_node_kick(struct vb_node *node);
/* vb_node_wait() will call fn(arg) when fd is readable. */
int vb_node_watch(struct vb_node *node, int fd, void (*fn)(void *arg), void *arg);

/* This process's own page and keys (writable). */
struct vb_page *vb_node_page(struct vb_node *node);
struct vb_keyring *vb_node_keyring(struct vb_node *node);
uint64_t vb_node_nonce(struct vb_node *node);

/*
 * Gives a queue pair number and its entry, in a block whose name this process holds; the number
 * that was freed longest ago first. -ENOMEM: all are in use; -errno of bind(2).
 */
int vb_node_qpn_alloc(struct vb_node *node, uint32_t *qpn, struct vb_page_qp **entry);
void vb_node_qpn_free(struct vb_node *node, uint32_t qpn);

/*
 * Gives a whole block to the caller, which hands out its numbers itself and may close the block
 * again, so that another process can continue with it. *block 0: any free block (stored back);
 * otherwise this block, -EADDRINUSE if it has an owner.
 */
int vb_node_block_open(struct vb_node *node, uint32_t *block);
void vb_node_block_close(struct vb_node *node, uint32_t block);
/* The entry of a number in a block of this process, else NULL. */
struct vb_page_qp *vb_node_qp_entry(struct vb_node *node, uint32_t qpn);

/* An engine index (page->engine[index]). */
int vb_node_engine_alloc(struct vb_node *node, uint32_t *index);
void vb_node_engine_free(struct vb_node *node, uint32_t index);

/*
 * A key slot: *key gets a fresh unguessable value that is not valid yet. The caller fills the entry
 * and stores entry->key last.
 */
int vb_node_key_alloc(struct vb_node *node, uint32_t *key, struct vb_key **entry);
/* The key was made invalid before. The slot is reused as late as possible, with another key. */
void vb_node_key_free(struct vb_node *node, uint32_t key);

/*
 * Whether processes of this user may reach this process's memory directly. NULL: yes; otherwise why
 * not, as a sentence.
 */
const char *vb_node_direct_obstacle(struct vb_node *node);

/*
 * A descriptor was found to be the library's no more. From now on no number of this room is used,
 * and the progress thread looks every ms.
 */
void vb_node_descriptors_gone(struct vb_node *node);

#endif

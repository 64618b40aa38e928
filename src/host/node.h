/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * This process as a member of its host: its published page, its names, its doorbell.
 *
 * Started when the first queue pair is made (vb_node_start); an idle program has no thread and no socket. The host room
 * has no thread of its own: the device's progress thread calls vb_node_wait(), which serves the control sockets.
 * All functions are thread-safe unless said. Descriptors are O_CLOEXEC and moved to high numbers, where a program that closes
 * or reuses low numbers does not meet them; descriptors that vanish all the same are noticed (EBADF) and never written to again.
 */
#ifndef VB_HOST_NODE_H
#define VB_HOST_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "host/page.h"

struct vb_channel;
struct vb_peer;
struct vb_node;

/* Called from vb_node_wait() (the progress thread), without any lock of the host held. */
struct vb_node_events {
	/* A channel end of local engine `engine` is ready (opened by us or by the peer); from now on its rx ring must be polled. Returns -ENOENT if there is no such engine. */
	int (*channel_up)(void *arg, uint32_t engine, struct vb_channel *channel);
	/* The other side closed this channel (its engine is gone, its process lives). */
	void (*channel_down)(void *arg, uint32_t engine, struct vb_channel *channel);
	/* The peer's process has ended or its memory is corrupt; all its channels are dead. Drain what it sent, then vb_channel_close() each. */
	void (*peer_dead)(void *arg, struct vb_peer *peer);
	/* Contact state of some block changed (e.g. absent): QPs waiting for a channel should ask again. */
	void (*contact_changed)(void *arg);
	void *arg;
};

/* Makes the page, the turn of atomics, the doorbell and the epoll descriptor; the progress thread must call vb_node_hold_alive() first thing. 0 or -errno. */
int vb_node_start(const struct vb_node_events *events, struct vb_node **node);
/* The calling thread becomes the one whose life stands for the process's (robust futex). */
void vb_node_hold_alive(struct vb_node *node);
/* Removes names, wakes nobody. Only when no QP, engine or key is left (or never: the kernel cleans up after exit). */
void vb_node_stop(struct vb_node *node);
/* In a forked child: close inherited descriptors, drop mappings of rings; must not disturb the parent. Async-signal-safe work only. */
void vb_node_forked(struct vb_node *node);

/* Waits up to timeout_ns (-1: for ever) for the doorbell, control sockets, watched descriptors; dispatches. Returns true if the doorbell rang. Progress thread only. If the program closed our descriptors: sleeps at most 1 ms. */
bool vb_node_wait(struct vb_node *node, int64_t timeout_ns);
/* Makes the progress thread return from vb_node_wait(). */
void vb_node_kick(struct vb_node *node);
/* Have vb_node_wait() call fn(arg) when fd is readable. */
int vb_node_watch(struct vb_node *node, int fd, void (*fn)(void *arg), void *arg);

/* This process's own page and keys (writable). */
struct vb_page *vb_node_page(struct vb_node *node);
struct vb_keyring *vb_node_keyring(struct vb_node *node);
uint64_t vb_node_nonce(struct vb_node *node);

/* A queue pair number and its entry, in a block whose name this process holds. Least recently freed first. -ENOMEM: all in use; -errno of bind. */
int vb_node_qpn_alloc(struct vb_node *node, uint32_t *qpn, struct vb_page_qp **entry);
void vb_node_qpn_free(struct vb_node *node, uint32_t qpn);

/*
 * A whole block for a purpose of the caller's, who hands out its numbers himself and may close it again, so that another process
 * can go on with it. *block 0: any that is free (stored back); else this one, -EADDRINUSE if it has an owner.
 */
int vb_node_block_open(struct vb_node *node, uint32_t *block);
void vb_node_block_close(struct vb_node *node, uint32_t block);
/* The entry of a number in a block of ours, else NULL. */
struct vb_page_qp *vb_node_qp_entry(struct vb_node *node, uint32_t qpn);

/* An engine index (page->engine[index]). */
int vb_node_engine_alloc(struct vb_node *node, uint32_t *index);
void vb_node_engine_free(struct vb_node *node, uint32_t index);

/* A key slot of the ring of keys: *key is a fresh unguessable value that is not valid yet (the caller fills the entry, stores entry->key last). */
int vb_node_key_alloc(struct vb_node *node, uint32_t *key, struct vb_key **entry);
/* Invalid since before; the slot is reused as late as possible, with another key. */
void vb_node_key_free(struct vb_node *node, uint32_t key);

/* May processes of this user reach this process's memory directly? NULL: yes; else why not (a sentence). */
const char *vb_node_direct_obstacle(struct vb_node *node);

/* A descriptor was found to be no longer ours: from now on no number of this room is used, and the progress thread looks every ms. */
void vb_node_descriptors_gone(struct vb_node *node);

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Another process of this host: its page, its memory, whether it lives.
 *
 * Direct access to a peer's memory goes through a descriptor of /proc/self/mem that the peer itself opened and passed: it is bound
 * to the peer's address space, so that exec, pid reuse and pid namespaces cannot redirect it.
 */
#ifndef VB_HOST_PEER_H
#define VB_HOST_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "host/node.h"

struct vb_guard;
struct vb_peer;

uint64_t vb_peer_nonce(const struct vb_peer *peer);
uint32_t vb_peer_pid(const struct vb_peer *peer); /* for messages */
bool vb_peer_is_self(const struct vb_peer *peer);

/* From memory: the owner-died bit and our own verdict. No system call. */
bool vb_peer_alive(const struct vb_peer *peer);

/* Declares the peer gone wrong: treated as dead from now on (events->peer_dead follows from the progress thread). */
void vb_peer_condemn(struct vb_peer *peer, const char *why);

/* The peer's published entry of the QPN or key (read-only memory of the peer's; copy, then validate); NULL if the number is outside its blocks, or no keys were given to us. */
const struct vb_page_qp *vb_peer_qp(struct vb_peer *peer, uint32_t qpn);
const struct vb_key *vb_peer_key(struct vb_peer *peer, uint32_t key);

/*
 * The process that owns the block and has this nonce, with a reference; waits until contact is made, fails or `patience` is over.
 * -ENODEV: it is not there; -ENOMEM. Not for the progress thread.
 */
int vb_peer_meet(struct vb_node *node, uint32_t block, uint64_t nonce, int64_t patience_ns,
		 struct vb_peer **peer);
struct vb_peer *vb_peer_hold_self(struct vb_node *node);
/* Gives the reference back. */
/* One more reference of a peer that the caller has one of. */
void vb_peer_hold(struct vb_node *node, struct vb_peer *peer);
void vb_peer_part(struct vb_node *node, struct vb_peer *peer);

/* A queue pair here is connected to one there: its memory would be of use. It comes later, or not at all (host/give.c). */
void vb_peer_want_memory(struct vb_peer *peer);

/*
 * May what comes from this peer name that number as its source? Asked where vb_peer_is_watched(): of one that could do nothing worse
 * anyway nothing is asked. doubt: it has not proven yet that the number's block is its own; it is to have the chance.
 */
bool vb_peer_is_watched(const struct vb_peer *peer);
bool vb_peer_is_stranger(const struct vb_peer *peer);
bool vb_peer_speaks_for(const struct vb_peer *peer, uint32_t qpn);
void vb_peer_doubt(struct vb_peer *peer);

/* Can all of this peer's memory be reached directly? */
bool vb_peer_reachable(const struct vb_peer *peer);
/* Or what it shares at least (host/arena.h)? */
bool vb_peer_shares(const struct vb_peer *peer);

/*
 * Copy between local vectors and [addr, addr+length) of the peer. write stores the last aligned 8 bytes after all others when
 * `tail` is set. 0, or -errno: -EFAULT also for a short copy (part may have been written), -ESRCH dead, -EOPNOTSUPP unreachable.
 * The iovec array may be modified. self: plain copies. At most VB_PEER_IOV elements. The guard (NULL: nothing to look at) names what must
 * stand while bytes change: -ESTALE if it does not, -EOPNOTSUPP if this thread cannot (host/guard.h).
 */
#define VB_PEER_IOV 64
int vb_peer_write(struct vb_peer *peer, uint64_t addr, struct iovec *iov, int count, size_t length,
		  bool tail, const struct vb_guard *guard);
int vb_peer_read(struct vb_peer *peer, uint64_t addr, struct iovec *iov, int count, size_t length,
		 const struct vb_guard *guard);

struct vb_atomic {
	bool compare_swap; /* else add */
	uint64_t swap_add;
	uint64_t compare;
};

/*
 * Read-modify-write of the aligned 64-bit word at addr: in turn (host/turn.c), or where the memory is the arena's (host/arena.h) by
 * the processor. Not for memory that other processes may have mapped from elsewhere.
 */
int vb_peer_atomic(struct vb_peer *peer, uint64_t addr, const struct vb_atomic *op,
		   uint64_t *original, const struct vb_guard *guard);
/* A store of one aligned 64-bit word between two such. */
int vb_peer_atomic_write(struct vb_peer *peer, uint64_t addr, uint64_t value,
			 const struct vb_guard *guard);

/*
 * The same on this process's own memory, for the responder. `shared`: others may have mapped it, then the processor does it,
 * whoever asks. -EFAULT: the program has unmapped it.
 */
int vb_node_atomic(struct vb_node *node, uint64_t addr, bool shared, const struct vb_atomic *op,
		   uint64_t *original);
int vb_node_atomic_write(struct vb_node *node, uint64_t addr, bool shared, uint64_t value);

/*
 * Marks. set: publishes that `engine` is about to touch (peer, qpn, key), then a full fence; re-check the peer's entries afterwards, touch, clear.
 * await: after this process has made `key` (or, with key 0, the QP `qpn`) invalid in its page: full fence, then wait until no living
 * peer's mark names it. Stops waiting for a peer when it dies, when it is seen standing still, and after VB_STANDSTILL_NS.
 */
void vb_mark_set(struct vb_node *node, uint32_t engine, const struct vb_peer *peer, uint32_t qpn,
		 uint32_t key);
/* The same for memory of this process that an engine of it touches on a peer's behalf. */
void vb_mark_set_own(struct vb_node *node, uint32_t engine, uint32_t key);
void vb_mark_clear(struct vb_node *node, uint32_t engine);
void vb_mark_await(struct vb_node *node, uint32_t qpn, uint32_t key);

#endif

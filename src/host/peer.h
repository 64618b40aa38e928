/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Another process of this host: its page, its memory, whether it lives.
 *
 * Direct access to a peer's memory uses a descriptor of /proc/self/mem that the peer itself opened
 * and passed. The descriptor is bound to the peer's address space, so exec, reuse of the pid, and
 * pid namespaces cannot redirect it.
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

/*
 * Read from memory: the owner-died bit, and whether this process has rejected the peer. No system
 * call.
 */
bool vb_peer_alive(const struct vb_peer *peer);

/* Of a peer that counts as dead: its process has ended, and was not merely rejected. */
bool vb_peer_has_ended(const struct vb_peer *peer);

/*
 * The peer's blocks of queue pair numbers, also after its end; of a watched peer those that it has
 * proven. Returns how many there are, VB_MAX_BLOCKS at most.
 */
uint32_t vb_peer_blocks(const struct vb_peer *peer, uint32_t block[VB_MAX_BLOCKS]);

/*
 * Declares that the peer has gone wrong: it counts as dead from now on (the progress thread calls
 * events->peer_dead).
 */
void vb_peer_reject(struct vb_peer *peer, const char *why);

/*
 * The peer's published entry of the QPN or key (the peer's memory, mapped read-only: copy, then
 * validate). NULL: the number is outside its blocks, or no keys were given to this process.
 */
const struct vb_page_qp *vb_peer_qp(struct vb_peer *peer, uint32_t qpn);
const struct vb_key *vb_peer_key(struct vb_peer *peer, uint32_t key);

/*
 * The process that owns the block and has this nonce, with a reference. Waits until contact is
 * made, fails, or `patience_ns` is over. -ENODEV: no such process; -ENOMEM. Not for the progress
 * thread.
 */
int vb_peer_meet(struct vb_node *node, uint32_t block, uint64_t nonce, int64_t patience_ns,
		 struct vb_peer **peer);
struct vb_peer *vb_peer_hold_self(struct vb_node *node);
/* Gives the reference back. */
/* One more reference of a peer of which the caller has one. */
void vb_peer_hold(struct vb_node *node, struct vb_peer *peer);
void vb_peer_part(struct vb_node *node, struct vb_peer *peer);

/*
 * A queue pair of this process is connected to one of the peer, so its memory would be of use. It
 * comes later, or never (host/give.c).
 */
void vb_peer_want_memory(struct vb_peer *peer);

/*
 * Whether messages of this peer may name that number as their source. To be called where
 * vb_peer_is_watched(); of a peer that could do greater harm anyway no proof is asked. doubt: the
 * peer has not proven yet that the number's block is its own, and gets the chance to.
 */
bool vb_peer_is_watched(const struct vb_peer *peer);
bool vb_peer_is_stranger(const struct vb_peer *peer);
/* Of a stranger: whether it shares the port with this process (host/domain.h). */
bool vb_peer_agrees(const struct vb_peer *peer);
bool vb_peer_speaks_for(const struct vb_peer *peer, uint32_t qpn);
void vb_peer_doubt(struct vb_peer *peer);

/* Whether this peer was asked for its memory, and has not answered yet. */
bool vb_peer_memory_is_due(const struct vb_peer *peer);
/* Whether all of this peer's memory can be reached directly. */
bool vb_peer_reachable(const struct vb_peer *peer);
/* Whether at least the memory that it shares can be (host/arena.h). */
bool vb_peer_shares(const struct vb_peer *peer);

/*
 * Copy between local vectors and [addr, addr+length) of the peer. A write with `tail` stores the
 * last aligned 8 bytes after all others. 0, or -errno: -EFAULT also for a short copy (a part may
 * have been written), -ESRCH dead, -EOPNOTSUPP unreachable. The iovec array may be modified. This
 * process itself as peer: plain copies. At most VB_PEER_IOV elements. The guard (NULL: none) names
 * what must stand while bytes change: -ESTALE if it does not, -EOPNOTSUPP if this thread cannot be
 * guarded (host/guard.h).
 */
#define VB_PEER_IOV 64
int vb_peer_write(struct vb_peer *peer, uint64_t addr, struct iovec *iov, int count, size_t length,
		  bool tail, const struct vb_guard *guard);
int vb_peer_read(struct vb_peer *peer, uint64_t addr, struct iovec *iov, int count, size_t length,
		 const struct vb_guard *guard);

/*
 * The same of one aligned word, or of a few bytes in one piece, that do not lie in the arena: the
 * quickest that there is.
 */
int vb_peer_write_word(struct vb_peer *peer, uint64_t addr, const void *word,
		       const struct vb_guard *guard);
int vb_peer_read_piece(struct vb_peer *peer, uint64_t addr, void *to, size_t length,
		       const struct vb_guard *guard);

/*
 * Several copies by one system call, each complete before the next begins, the last aligned 8 bytes
 * of each write after its others. Returns how many of the `count` (at most VB_PEER_MOVES) are known
 * to be complete; 0 where that is not possible. Those behind may have been begun. The local memory
 * is this process's.
 */
#define VB_PEER_MOVES 64
struct vb_move {
	void *local;
	uint64_t addr; /* in the peer's address space */
	uint32_t length;
};
uint32_t vb_peer_move_list(struct vb_peer *peer, const struct vb_move *moves, uint32_t count,
			   bool write, const struct vb_guard *guard);
/* Whether it is worth gathering them. */
bool vb_peer_moves_lists(const struct vb_peer *peer);

struct vb_atomic {
	bool compare_swap; /* else add */
	uint64_t swap_add;
	uint64_t compare;
};

/*
 * Read-modify-write of the aligned 64-bit word at addr: in turn (host/turn.c), or by the processor
 * where the memory is the arena's (host/arena.h). Not for other memory that several processes may
 * have mapped.
 */
int vb_peer_atomic(struct vb_peer *peer, uint64_t addr, const struct vb_atomic *op,
		   uint64_t *original, const struct vb_guard *guard);
/* Stores one aligned 64-bit word, atomically against these. */
int vb_peer_atomic_write(struct vb_peer *peer, uint64_t addr, uint64_t value,
			 const struct vb_guard *guard);

/*
 * The same on this process's own memory, for the responder. `shared`: other processes may have
 * mapped the memory, so the processor does it, whichever process asks. -EFAULT: the program has
 * unmapped the memory.
 */
int vb_node_atomic(struct vb_node *node, uint64_t addr, bool shared, const struct vb_atomic *op,
		   uint64_t *original);
int vb_node_atomic_write(struct vb_node *node, uint64_t addr, bool shared, uint64_t value);

/*
 * Marks. set: publishes that `engine` is about to touch (peer, qpn, key), then fences. The caller
 * then checks the peer's entries again, touches, and clears. await: called after this process has
 * made `key` (or, with key 0, the QP `qpn`) invalid in its page; fences, then waits until no living
 * peer's mark names it. It stops waiting for a peer when the peer dies, when it is seen standing
 * still, and after VB_STANDSTILL_NS.
 */
void vb_mark_set(struct vb_node *node, uint32_t engine, const struct vb_peer *peer, uint32_t qpn,
		 uint32_t key);
/* The same for memory of this process that one of its engines touches on a peer's behalf. */
void vb_mark_set_own(struct vb_node *node, uint32_t engine, uint32_t key);
void vb_mark_clear(struct vb_node *node, uint32_t engine);
/*
 * Under the engine's lock: it has no mark, and is left out by those that revoke until it sets one.
 * is_listed: it is not left out.
 */
void vb_mark_rest(struct vb_node *node, uint32_t engine);
bool vb_mark_is_listed(const struct vb_node *node, uint32_t engine);
/* Asks proc(5): see host/standstill.h. */
bool vb_peer_stands_still(const struct vb_peer *peer);
void vb_mark_await(struct vb_node *node, uint32_t qpn, uint32_t key);

#endif

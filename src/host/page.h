/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a process publishes to its peers: two sparse memfds, written by their owner only, mapped
 * read-only by peers.
 *
 * Every process that greets gets the page: what it must know to send to this process through rings,
 * and nothing by which memory could be reached. Keys and addresses are in the ring of keys, which
 * is given together with the memory itself (host/trust.h decides to which process).
 *
 * The tables are as large as the device's limits. The memfd is sparse, so only used parts cost
 * memory, and nothing ever moves. Readers copy an entry, then validate the copy, because a peer may
 * have gone wrong. All fields are accessed by relaxed or acquire/release atomics (vb_page_* helpers
 * or __atomic builtins).
 */
#ifndef VB_HOST_PAGE_H
#define VB_HOST_PAGE_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/access.h"

#define VB_PAGE_MAGIC     0x7662706167653031ull
#define VB_KEYRING_MAGIC  0x76626b6579733031ull
#define VB_PAGE_VERSION   10

#define VB_QPN_BLOCK_BITS 10 /* QPNs of a block; the upper 14 bits of a QPN name the block */
#define VB_QPN_BLOCK_SIZE (1u << VB_QPN_BLOCK_BITS)
#define VB_MAX_BLOCKS     64
#define VB_NO_BLOCK       UINT32_MAX /* in header.block: the block was closed */
#define VB_MAX_QPS        (VB_MAX_BLOCKS * VB_QPN_BLOCK_SIZE)
#define VB_MAX_ENGINES    65536
#define VB_KEY_SLOT_BITS  20
#define VB_MAX_KEYS       (1u << VB_KEY_SLOT_BITS)

struct vb_page_header {
	uint64_t magic;
	uint32_t version;
	uint32_t size_of_page; /* sizeof(struct vb_page) >> 12, a second check of the layout */
	uint64_t nonce;        /* identifies this instance of the process */
	uint32_t pid;          /* in its own pid namespace: for messages only */
	uint32_t uid;          /* user at the time of making: for messages only */
	uint32_t num_engines;  /* engines ever used: marks [0, num_engines) are valid */
	uint32_t num_blocks;
	/*
	 * 1: this process cannot make its peers' threads pass a barrier (base/barrier.h), so they fence
	 * between a slot that they fill for it and their look whether an engine sleeps. Does not change.
	 */
	uint32_t needs_fences;
	/* The QPNs of block[i] are described by qp[i * VB_QPN_BLOCK_SIZE ...]. */
	uint32_t block[VB_MAX_BLOCKS];
	char pad[4096 - 8 - 8 - 8 - 8 - 8 - 4 - 4 * VB_MAX_BLOCKS - 64];
	/*
	 * The progress thread holds this mutex from start to death. The kernel sets
	 * FUTEX_OWNER_DIED in its first word when the thread dies, also on exec and while a forked
	 * child lives (which flock(2), OFD locks and socket hang-ups do not tell).
	 */
	_Alignas(64) pthread_mutex_t alive;
};

/* One per engine; its own cache lines. */
struct vb_page_engine {
	uint32_t asleep;     /* 1: a process that sends to this engine must ring the doorbell */
	uint32_t generation; /* odd while the engine exists */
	char pad[56];
	/*
	 * The engine's mark: what it touches, or is about to touch, in another process. nonce 0:
	 * nothing. The owner writes it. The process that it names reads it, and waits for it on
	 * revocation. It names the key's slot, not the key: other peers read it as well, and the
	 * number of a slot opens nothing.
	 */
	_Alignas(64) uint64_t mark_nonce;
	uint32_t mark_qpn; /* the target's QPN */
	uint32_t mark_slot;
	char pad2[48];
};

/*
 * A bit for each engine: it has a mark, or has had one since it slept last. Revocation looks at the
 * marks of these alone, because a process may have thousands of engines.
 */
#define VB_PAGE_MARKING (VB_MAX_ENGINES / 64)

/*
 * In the access of a queue pair that serves requests with an answer: max_dest_rd_atomic is not 0.
 */
#define VB_PAGE_ANSWERS 0x80000000u
/*
 * And of one that is closed to direct access for as long as it has seen no packet, and no longer. It is
 * taken away when the queue pair is open already.
 */
#define VB_PAGE_OPENS   0x40000000u

/*
 * One for each QP: what an initiator must know before it touches the process's memory, and where to
 * send.
 */
struct vb_page_qp {
	uint32_t qpn;     /* 0: no such QP */
	uint32_t state;   /* enum ibv_qp_state */
	uint32_t service; /* enum vb_service */
	uint32_t access;  /* qp_access_flags, and VB_PAGE_ANSWERS, VB_PAGE_OPENS */
	uint32_t pd;
	uint32_t dest_qpn; /* number of its peer */
	uint32_t engine;
	/*
	 * 1: one-sided requests may be done directly (state, COMM_EST and max_dest_rd_atomic
	 * allow).
	 */
	uint32_t direct;
	uint32_t generation; /* changes with every change of the entry */
	uint32_t first_psn;  /* rq_psn: what its peer's sq_psn must be */
	uint32_t pad[6];
};

/* The latest of the engines and processes that the owner rang doorbells for (host/bell.h). */
#define VB_PAGE_BELLS 1016u

struct vb_page_bells {
	_Alignas(64) uint64_t count; /* entries written so far */
	uint64_t begun;              /* the same, stored before the entry is written */
	/* Its owner's progress thread reads others' bells before it sleeps: no need to ring. */
	uint32_t attentive;
	/* The number of its sleep: a process that has rung in this one need not ring again. */
	uint32_t sleep;
	char pad[40];
	uint64_t entry[VB_PAGE_BELLS];
};

struct vb_page {
	struct vb_page_header header;
	struct vb_page_bells bells;
	uint64_t marking[VB_PAGE_MARKING];
	struct vb_page_engine engine[VB_MAX_ENGINES];
	struct vb_page_qp qp[VB_MAX_QPS];
};

/* Given only to processes that are given the memory. */
struct vb_keyring {
	uint64_t magic;
	uint64_t nonce; /* as in the page */
	/*
	 * Bytes of addresses that the arena has from there: fewer than its file where addresses are
	 * short.
	 */
	uint64_t arena_bytes;
	/* Start of its arena in its address space; 0: not used yet (host/arena.h). */
	uint64_t arena_base;
	/* The end of the part of the file that was ever used, in whole windows (host/arena.c). */
	uint64_t arena_top;
	char pad[4096 - 5 * 8];
	struct vb_key key[VB_MAX_KEYS];
};

/*
 * What a peer maps at first. The addresses of both tables together are 28 MB, which few processes
 * use. Of the page these are all engines, whose marks revocation must see, and these queue pairs.
 * The rest is mapped when it is needed (peer_table.c).
 */
#define VB_QPS_FIRST     (4u * VB_QPN_BLOCK_SIZE)
#define VB_PAGE_FIRST    (offsetof(struct vb_page, qp) + VB_QPS_FIRST * sizeof(struct vb_page_qp))
#define VB_KEYS_FIRST    16384u
#define VB_KEYRING_FIRST (offsetof(struct vb_keyring, key) + VB_KEYS_FIRST * sizeof(struct vb_key))

/*
 * Key layout: 4 random bits, 20 bits of slot, 8 bits of tag. The upper 24 bits stay for the life of
 * a type 2 window.
 */
#define VB_KEY_TOP_SHIFT (8 + VB_KEY_SLOT_BITS)

static inline uint32_t vb_key_slot(uint32_t key)
{
	return (key >> 8) & (VB_MAX_KEYS - 1);
}

/* This process's page and keys, in shared memory. fd: for peers. */
int vb_page_create(uint64_t nonce, struct vb_page **page, int *fd);
/* Checks the fixed part of a mapped page. NULL, or what is wrong with it. */
const char *vb_page_defect(const struct vb_page *page);
int vb_keyring_create(uint64_t nonce, struct vb_keyring **keys, int *fd);
/* Maps the keys of the process with this nonce. Leaves fd open. 0, or -errno and the defect. */
int vb_keyring_map(int fd, uint64_t nonce, const struct vb_keyring **keys, const char **defect);
/* The index of the block among those of the page, -1: none. */
int vb_page_block_index(const struct vb_page *page, uint32_t block);

#endif

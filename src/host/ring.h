/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A one-way ring between two engines: 64-byte slots with the sequence number in the slot, so that a
 * small message is one cache line; larger payload lies in a bulk area beside them.
 *
 * Producer and consumer each have one struct vb_ring of their own for it. The slots and the bulk
 * area are written by the producer only; the count of consumed slots by the consumer only (in its
 * own half). What the other side wrote is copied, then validated; an impossible value sets
 * `corrupt`, and the ring is full or empty from then on. Not thread-safe: each side is used under
 * its engine's lock.
 */
#ifndef VB_HOST_RING_H
#define VB_HOST_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VB_RING_SLOTS      1024u
#define VB_RING_BULK_BYTES (512u * 1024u)
#define VB_SLOT_BYTES      64u

struct vb_slot {
	_Alignas(8) uint32_t sequence; /* set by push: index of the slot + 1, modulo 2^32 */
	uint32_t bulk; /* set by push: offset of the bulk data, VB_SLOT_NO_BULK if there is none */
	uint8_t data[56];
};

#define VB_SLOT_NO_BULK UINT32_MAX

/*
 * The receiver of a lent payload (VB_RUN_LENT) says where the first bytes of it are to be stored, so
 * that its sender may store them while the receiver fetches the others (local/lend.c). In the
 * receiver's half.
 */
struct vb_ring_offer {
	uint32_t number;   /* stored last; 0: no offer stands. What follows changes only then. */
	uint32_t src_qpn;  /* the sender's, */
	uint32_t psn;      /* and the first PSN of the payload */
	uint32_t dest_qpn; /* the receiver's */
	uint64_t addr;     /* in the receiver's address space */
	uint32_t length;
	uint32_t key;
	uint32_t key_generation;
	uint32_t qp_generation; /* of the receiver's published entry */
};

/* The sender's answer. In the sender's half. */
struct vb_ring_help {
	uint32_t claimed; /* the number of the offer that it takes up; 0: none, or given up */
	uint32_t done;    /* the number of the latest whose bytes are stored */
};

/*
 * The memory of one direction, in the producer's memfd, and what the producer's process says as
 * consumer of the other direction.
 */
struct vb_ring_half {
	_Alignas(64)
		uint32_t consumed; /* slots of the opposite ring that this process has consumed */
	uint32_t closed;
	char pad[56];
	_Alignas(64) struct vb_ring_offer offer;
	_Alignas(64) struct vb_ring_help help;
	_Alignas(64) struct vb_slot slot[VB_RING_SLOTS];
	_Alignas(4096) uint8_t bulk[VB_RING_BULK_BYTES];
	/*
	 * The producer's own: the bulk position after each slot's data. Here, where a page costs memory
	 * only when it is written, because most rings never have bulk data. Nobody else reads it.
	 */
	uint32_t bulk_end[VB_RING_SLOTS];
};

struct vb_ring_tx {
	struct vb_ring_half *half;     /* this side's, written */
	const uint32_t *peer_consumed; /* in the peer's half, read */
	uint32_t head;                 /* slots pushed */
	uint32_t known_consumed;       /* last validated copy of *peer_consumed */
	uint32_t bulk_head;            /* next free byte (counts for ever, modulo the size) */
	uint32_t bulk_tail;            /* oldest byte in use */
	uint32_t reserved_bulk;        /* position after the pending reservation */
	uint32_t reserved_at;          /* its offset, VB_SLOT_NO_BULK if it has no bulk data */
	bool corrupt;                  /* the peer's count was impossible: reject the peer */
	bool has_bulk;                 /* there was bulk data: half->bulk_end is kept */
	struct vb_slot stage;          /* the slot that is being filled */
};

struct vb_ring_rx {
	const struct vb_ring_half *half; /* the peer's, read */
	uint32_t *own_consumed;          /* in this side's half, written */
	uint32_t tail;                   /* slots consumed */
	uint32_t told;                   /* last value stored in *own_consumed */
	uint32_t bulk_seen;              /* bulk offset of the last peeked slot that had one */
	uint32_t bulk_told;              /* the same, when *own_consumed was last stored */
	bool corrupt; /* a slot held an impossible sequence or bulk offset: reject the peer */
};

void vb_ring_tx_init(struct vb_ring_tx *tx, struct vb_ring_half *own,
		     const struct vb_ring_half *peers);
void vb_ring_rx_init(struct vb_ring_rx *rx, struct vb_ring_half *own,
		     const struct vb_ring_half *peers);

/*
 * The part of vb_ring_reserve() that is seldom needed: looks at the peer's count, places bulk data.
 */
struct vb_slot *vb_ring_reserve_slow(struct vb_ring_tx *tx, uint32_t bulk_bytes, void **bulk);
/* The address of the `bytes` bytes of bulk data that a slot says are at `offset`, NULL if impossible. */
const void *vb_ring_bulk(const struct vb_ring_rx *rx, uint32_t offset, uint32_t bytes);

/* Every slot that tx pushed has been consumed. */
bool vb_ring_drained(struct vb_ring_tx *tx);

/* What is filled for the slot that the pending reservation is for. */
static inline struct vb_slot *vb_ring_reserved(struct vb_ring_tx *tx)
{
	return &tx->stage;
}

/*
 * reserve: the slot to fill (its `data`) and, if bulk_bytes > 0, *bulk = contiguous room (64-byte
 * aligned) in shared memory, which is written and never read back. NULL: full. push: publishes the
 * slot (release). reserve again without push: the first reservation is forgotten.
 *
 * The slot is filled in private memory and stored at once. A consumer that polls would take the
 * cache line away between two stores that are far apart, and each time it takes as long to come
 * back as the whole message needs.
 */
static inline struct vb_slot *vb_ring_reserve(struct vb_ring_tx *tx, uint32_t bulk_bytes,
					      void **bulk)
{
	if (bulk_bytes || tx->head - tx->known_consumed >= VB_RING_SLOTS)
		return vb_ring_reserve_slow(tx, bulk_bytes, bulk);
	tx->reserved_at = VB_SLOT_NO_BULK;
	tx->reserved_bulk = tx->bulk_head;
	return vb_ring_reserved(tx);
}

static inline void vb_slot_word(uint8_t *to, const uint8_t *from)
{
	uint64_t word;

	memcpy(&word, from, sizeof(word));
	memcpy(to, &word, sizeof(word));
}

/* The slot at the head, whose bulk data, if there is any, ends at bulk_head. */
static inline struct vb_slot *vb_ring_head(struct vb_ring_tx *tx)
{
	uint32_t at = tx->head % VB_RING_SLOTS;

	if (tx->has_bulk)
		tx->half->bulk_end[at] = tx->bulk_head;
	return &tx->half->slot[at];
}

/* The slot at the head is filled. */
static inline void vb_ring_publish(struct vb_ring_tx *tx, struct vb_slot *slot, uint32_t bulk)
{
	slot->bulk = bulk;
	__atomic_store_n(&slot->sequence, ++tx->head, __ATOMIC_RELEASE);
	/* The consumer looks at the next slot; the one behind it is this side's meanwhile. */
	__builtin_prefetch(&tx->half->slot[(tx->head + 1) % VB_RING_SLOTS], 1);
}

static inline void vb_ring_push(struct vb_ring_tx *tx)
{
	tx->bulk_head = tx->reserved_bulk;
	struct vb_slot *slot = vb_ring_head(tx);

	for (size_t at = 0; at < sizeof(slot->data); at += sizeof(uint64_t))
		vb_slot_word(slot->data + at, tx->stage.data + at);
	vb_ring_publish(tx, slot, tx->reserved_at);
}

/*
 * The same for a slot without bulk data that is filled in one go: its `data` is written in place.
 * NULL: it has to be reserved. Between open and close nothing else is reserved.
 */
static inline uint8_t *vb_ring_open(struct vb_ring_tx *tx)
{
	if (tx->head - tx->known_consumed >= VB_RING_SLOTS)
		return NULL;
	return tx->half->slot[tx->head % VB_RING_SLOTS].data;
}

static inline void vb_ring_close(struct vb_ring_tx *tx)
{
	vb_ring_publish(tx, vb_ring_head(tx), VB_SLOT_NO_BULK);
}

/*
 * And for a slot that was reserved, with bulk data that is complete: open gives its `data` in place,
 * close publishes it.
 */
static inline uint8_t *vb_ring_open_reserved(struct vb_ring_tx *tx)
{
	return tx->half->slot[tx->head % VB_RING_SLOTS].data;
}

static inline void vb_ring_close_reserved(struct vb_ring_tx *tx)
{
	tx->bulk_head = tx->reserved_bulk;
	vb_ring_publish(tx, vb_ring_head(tx), tx->reserved_at);
}

/*
 * Publishes the consumed count now (pop does so every quarter of the ring); called when a poller
 * runs out of work.
 */
static inline void vb_ring_tell(struct vb_ring_rx *rx)
{
	if (rx->told == rx->tail)
		return;
	rx->told = rx->tail;
	rx->bulk_told = rx->bulk_seen;
	__atomic_store_n(rx->own_consumed, rx->tail, __ATOMIC_RELEASE);
}

/*
 * Whether the ring has to be looked at: there is a slot, the producer has gone wrong, or it was not
 * told all that was consumed.
 */
static inline bool vb_ring_stirs(const struct vb_ring_rx *rx)
{
	uint32_t next = rx->tail + 1;
	uint32_t sequence = __atomic_load_n(&rx->half->slot[rx->tail % VB_RING_SLOTS].sequence,
					    __ATOMIC_RELAXED);

	return sequence == next || (sequence != next - VB_RING_SLOTS && sequence != 0) ||
	       rx->told != rx->tail;
}

/*
 * The next slot, where it lies (acquire); NULL if there is none. The producer can write the line at any
 * time: who reads it in place reads each word once, and judges what was read.
 */
static inline const struct vb_slot *vb_ring_next(struct vb_ring_rx *rx)
{
	const struct vb_slot *next = &rx->half->slot[rx->tail % VB_RING_SLOTS];
	uint32_t sequence = __atomic_load_n(&next->sequence, __ATOMIC_ACQUIRE);

	if (sequence == rx->tail + 1)
		return next;
	/* The lap before or, in the first lap, nothing; else the producer has gone wrong. */
	if (sequence != rx->tail + 1 - VB_RING_SLOTS && sequence != 0)
		rx->corrupt = true;
	return NULL;
}

/* Copies the next slot into *slot, for safety; false if there is none. */
static inline bool vb_ring_peek(struct vb_ring_rx *rx, struct vb_slot *slot)
{
	const struct vb_slot *next = vb_ring_next(rx);

	if (!next)
		return false;
	memcpy(slot, next, sizeof(*slot));
	if (slot->bulk != VB_SLOT_NO_BULK)
		rx->bulk_seen = slot->bulk;
	return true;
}

/* The bulk data of a slot that vb_ring_next() showed, as vb_ring_bulk() of its copy. */
static inline const void *vb_ring_next_bulk(struct vb_ring_rx *rx, const struct vb_slot *next,
					    uint32_t bytes)
{
	rx->bulk_seen = __atomic_load_n(&next->bulk, __ATOMIC_RELAXED);
	return vb_ring_bulk(rx, rx->bulk_seen, bytes);
}

/* More slots are likely to be there: one that follows soon is fetched while this one is served. */
static inline void vb_ring_ahead(const struct vb_ring_rx *rx)
{
	__builtin_prefetch(&rx->half->slot[(rx->tail + 2) % VB_RING_SLOTS], 0);
}

/* Done with the slot that next or peek showed, and with its bulk data. */
static inline void vb_ring_pop(struct vb_ring_rx *rx)
{
	rx->tail++;
	if (rx->tail - rx->told >= VB_RING_SLOTS / 4 ||
	    (rx->bulk_seen - rx->bulk_told) % VB_RING_BULK_BYTES >= VB_RING_BULK_BYTES / 8)
		vb_ring_tell(rx);
}

#endif

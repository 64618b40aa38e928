/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A one-way ring between two engines: 64-byte slots with the sequence number in the slot, so that a small message is one
 * cache line; larger payload lies in a bulk area beside them.
 *
 * Producer and consumer each have one struct vb_ring of their own for it. The slots and the bulk area are written by the producer only; the
 * count of consumed slots by the consumer only (in its own half). What the other side wrote is copied, then validated.
 * Not thread-safe: each side is used under its engine's lock.
 */
#ifndef VB_HOST_RING_H
#define VB_HOST_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VB_RING_SLOTS 1024u
#define VB_RING_BULK_BYTES (512u * 1024u)
#define VB_SLOT_BYTES 64u

struct vb_slot {
	uint32_t sequence; /* set by push: index of the slot + 1; never 0 */
	uint32_t bulk;	   /* set by reserve/push: offset of the bulk data */
	uint8_t data[56];
};

/* The memory of one direction, in the producer's memfd, and what the producer's process says as consumer of the other direction. */
struct vb_ring_half {
	_Alignas(64) uint32_t consumed; /* slots of the opposite ring that this process has consumed */
	uint32_t closed;
	char pad[56];
	_Alignas(64) struct vb_slot slot[VB_RING_SLOTS];
	_Alignas(4096) uint8_t bulk[VB_RING_BULK_BYTES];
};

struct vb_ring_tx {
	struct vb_ring_half *half;	 /* ours, written */
	const uint32_t *peer_consumed;	 /* in the peer's half, read */
	uint32_t head;			 /* slots pushed */
	uint32_t known_consumed;	 /* last validated copy of *peer_consumed */
	uint32_t bulk_head;		 /* next free byte (counts for ever, modulo the size) */
	uint32_t bulk_tail;		 /* oldest byte in use */
	uint32_t reserved_bulk;		 /* position after the pending reservation */
	uint32_t bulk_end[VB_RING_SLOTS]; /* bulk position after each slot's data */
};

struct vb_ring_rx {
	const struct vb_ring_half *half; /* the peer's, read */
	uint32_t *own_consumed;		 /* in our half, written */
	uint32_t tail;			 /* slots consumed */
	uint32_t told;			 /* last value stored in *own_consumed */
};

void vb_ring_tx_init(struct vb_ring_tx *tx, struct vb_ring_half *own, const struct vb_ring_half *peers);
void vb_ring_rx_init(struct vb_ring_rx *rx, struct vb_ring_half *own, const struct vb_ring_half *peers);

/*
 * reserve: the slot to fill (its `data`) and, if bulk_bytes > 0, *bulk = contiguous room (64-byte aligned). NULL: full.
 * push: publishes the reserved slot (release). reserve again without push: the first reservation is forgotten.
 */
struct vb_slot *vb_ring_reserve(struct vb_ring_tx *tx, uint32_t bulk_bytes, void **bulk);
void vb_ring_push(struct vb_ring_tx *tx);

/* peek: copies the next slot into *slot (acquire), false if there is none. bulk: the validated address of [slot->bulk, +bytes), NULL if impossible. pop: done with it. */
bool vb_ring_peek(struct vb_ring_rx *rx, struct vb_slot *slot);
const void *vb_ring_bulk(const struct vb_ring_rx *rx, const struct vb_slot *slot, uint32_t bytes);
void vb_ring_pop(struct vb_ring_rx *rx);
/* Publishes the consumed count now (pop does so every quarter of the ring); called when a poller runs out of work. */
void vb_ring_tell(struct vb_ring_rx *rx);

/* Every slot that tx pushed has been consumed. */
bool vb_ring_drained(struct vb_ring_tx *tx);

#endif

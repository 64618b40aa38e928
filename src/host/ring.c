/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The parts of the ring that are needed less often: set-up, room for bulk data, and the judgement
 * of what the peer wrote.
 */
#include "host/ring.h"

#define SLOT_ALIGN 64u
#define BULK_PART  (32u * 1024u)

_Static_assert(sizeof(struct vb_slot) == VB_SLOT_BYTES, "a slot is one cache line");
_Static_assert(offsetof(struct vb_ring_half, offer) == 64 &&
		       offsetof(struct vb_ring_half, help) == 128 &&
		       offsetof(struct vb_ring_half, slot) == 192 &&
		       offsetof(struct vb_ring_half, bulk) % 4096 == 0,
	       "what the consumer writes, the slots and the bulk data share no cache line");
_Static_assert(UINT32_MAX % VB_RING_BULK_BYTES == VB_RING_BULK_BYTES - 1,
	       "bulk positions wrap with uint32_t");

void vb_ring_tx_init(struct vb_ring_tx *tx, struct vb_ring_half *own,
		     const struct vb_ring_half *peers)
{
	memset(tx, 0, sizeof(*tx));
	tx->half = own;
	tx->peer_consumed = &peers->consumed;
}

void vb_ring_rx_init(struct vb_ring_rx *rx, struct vb_ring_half *own,
		     const struct vb_ring_half *peers)
{
	memset(rx, 0, sizeof(*rx));
	rx->half = peers;
	rx->own_consumed = &own->consumed;
}

/* Reads how far the consumer is. False: the count went backwards, or past the pushed slots. */
static bool consumed_refresh(struct vb_ring_tx *tx)
{
	uint32_t consumed = __atomic_load_n(tx->peer_consumed, __ATOMIC_ACQUIRE);

	if (tx->corrupt || consumed - tx->known_consumed > tx->head - tx->known_consumed) {
		tx->corrupt = true;
		return false;
	}
	if (consumed != tx->known_consumed) {
		tx->known_consumed = consumed;
		if (tx->has_bulk)
			tx->bulk_tail = tx->half->bulk_end[(consumed - 1) % VB_RING_SLOTS];
	}
	return true;
}

/* Where `bytes` contiguous bytes can lie: *start is a position that counts for ever. */
static bool bulk_place(const struct vb_ring_tx *tx, uint32_t bytes, uint32_t *start)
{
	uint32_t offset = tx->bulk_head % VB_RING_BULK_BYTES;
	uint32_t skip = offset + bytes > VB_RING_BULK_BYTES ? VB_RING_BULK_BYTES - offset : 0;
	uint32_t used = tx->bulk_head - tx->bulk_tail;

	*start = tx->bulk_head + skip;
	/*
	 * Bytes that are skipped in an empty area are free, so that a request for the whole area
	 * can succeed.
	 */
	return (used ? used + skip : 0) + bytes <= VB_RING_BULK_BYTES;
}

/*
 * A ring that its consumer keeps empty needs little room for bulk data: it begins anew at the first
 * byte when it would go on to the next part. So it stays in memory that both sides have touched, and
 * that their caches hold. Every slot must have been consumed: the end of its bulk data is counted
 * from before.
 */
static void bulk_rewind(struct vb_ring_tx *tx, uint32_t bytes)
{
	uint32_t offset = tx->bulk_head % VB_RING_BULK_BYTES;

	if (offset / BULK_PART == (offset + bytes) / BULK_PART || !vb_ring_drained(tx))
		return;
	tx->bulk_head += VB_RING_BULK_BYTES - offset;
	tx->bulk_tail = tx->bulk_head;
}

/* From the first bulk data on. Slots that are on their way have none. */
static void bulk_begin(struct vb_ring_tx *tx)
{
	for (uint32_t i = 0; i < VB_RING_SLOTS; i++)
		tx->half->bulk_end[i] = tx->bulk_head;
	tx->has_bulk = true;
}

struct vb_slot *vb_ring_reserve_slow(struct vb_ring_tx *tx, uint32_t bulk_bytes, void **bulk)
{
	uint32_t start;

	if (bulk_bytes > VB_RING_BULK_BYTES)
		return NULL;
	uint32_t bytes = (bulk_bytes + SLOT_ALIGN - 1) & ~(SLOT_ALIGN - 1);

	if (bytes)
		bulk_rewind(tx, bytes);
	start = tx->bulk_head;

	if (tx->head - tx->known_consumed >= VB_RING_SLOTS || !bulk_place(tx, bytes, &start)) {
		if (!consumed_refresh(tx) || tx->head - tx->known_consumed >= VB_RING_SLOTS ||
		    !bulk_place(tx, bytes, &start))
			return NULL;
	}
	if (tx->corrupt)
		return NULL;
	tx->reserved_at = VB_SLOT_NO_BULK;
	if (bulk_bytes) {
		if (!tx->has_bulk)
			bulk_begin(tx);
		tx->reserved_at = start % VB_RING_BULK_BYTES;
		*bulk = tx->half->bulk + tx->reserved_at;
	}
	tx->reserved_bulk = start + bytes;
	return vb_ring_reserved(tx);
}

const void *vb_ring_bulk(const struct vb_ring_rx *rx, uint32_t offset, uint32_t bytes)
{
	if (offset >= VB_RING_BULK_BYTES || offset % SLOT_ALIGN ||
	    bytes > VB_RING_BULK_BYTES - offset)
		return NULL;
	return rx->half->bulk + offset;
}

bool vb_ring_drained(struct vb_ring_tx *tx)
{
	return tx->known_consumed == tx->head ||
	       (consumed_refresh(tx) && tx->known_consumed == tx->head);
}

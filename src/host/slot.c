/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Runs in slots: encoding, and the one place that validates what a peer's slot says. */
#include "host/slot.h"

#include <string.h>

#include "host/slot_layout.h"

_Static_assert(VB_SLOT_EXT_OFFSET + VB_SLOT_EXT_BYTES == sizeof(((struct vb_slot *)0)->data),
	       "slot layout");
_Static_assert(sizeof(struct vb_path) <= VB_SLOT_PATH_BYTES, "path fits its place");

/* Every request of XRC names a shared receive queue, in front of the other members. */
static inline bool names_srq(uint8_t op, uint8_t service)
{
	return service == VB_SERVICE_XRC && vb_op_is_request(op);
}

#define LENT_BYTES 20u

/* Bytes of the extension. ext_put() and ext_get() have the layout of each. */
static inline uint32_t ext_bytes(uint8_t op, uint8_t flags, uint8_t service)
{
	uint32_t lent = flags & VB_RUN_LENT ? LENT_BYTES : 0;

	if (op == VB_OP_SEND && service == VB_SERVICE_RC && !(flags & (VB_RUN_IMM | VB_RUN_INV)))
		return lent;
	uint32_t imm = (flags & (VB_RUN_IMM | VB_RUN_INV)) ? 4 : 0;
	uint32_t srq = names_srq(op, service) ? 4 : 0;

	switch (op) {
	case VB_OP_SEND:
		return srq + imm + (service == VB_SERVICE_UD ? 4 : 0) + lent;
	case VB_OP_WRITE:
		return srq + imm + ((flags & VB_RUN_FIRST) ? 16 : 0);
	case VB_OP_READ_REQUEST:
	case VB_OP_ATOMIC_WRITE:
		return srq + 16;
	case VB_OP_FLUSH:
		return srq + 20;
	case VB_OP_COMPARE_SWAP:
	case VB_OP_FETCH_ADD:
		return srq + 28;
	case VB_OP_ATOMIC_ACK:
		return 12;
	case VB_OP_DROP:
		return 8;
	default: /* READ_RESPONSE, ACK: msn */
		return 4;
	}
}

static uint8_t *reth_put(uint8_t *p, const struct vb_run *run)
{
	put64(p, run->va);
	put64(p + 8, pair(run->rkey, run->dma_length));
	return p + 16;
}

static uint8_t *lent_put(uint8_t *p, const struct vb_lent *lent)
{
	put64(p, lent->addr);
	put32(p + 8, lent->key);
	put32(p + 12, lent->key_generation);
	put32(p + 16, lent->qp_generation);
	return p + LENT_BYTES;
}

static uint8_t *ext_put(uint8_t *p, const struct vb_run *run)
{
	if (names_srq(run->op, run->service)) {
		put32(p, run->srqn);
		p += 4;
	}
	switch (run->op) {
	case VB_OP_WRITE:
		if (run->flags & VB_RUN_FIRST)
			p = reth_put(p, run);
		break;
	case VB_OP_READ_REQUEST:
	case VB_OP_ATOMIC_WRITE:
		return reth_put(p, run);
	case VB_OP_FLUSH:
		put32(p, run->flush);
		return reth_put(p + 4, run);
	case VB_OP_COMPARE_SWAP:
	case VB_OP_FETCH_ADD:
		put64(p, run->va);
		put64(p + 8, run->swap_add);
		put64(p + 16, run->compare);
		put32(p + 24, run->rkey);
		return p + 28;
	case VB_OP_ATOMIC_ACK:
		put32(p, run->msn);
		put64(p + 4, run->original);
		return p + 12;
	case VB_OP_DROP:
		put32(p, run->imm);
		put32(p + 4, run->msn);
		return p + 8;
	case VB_OP_READ_RESPONSE:
	case VB_OP_ACK:
		put32(p, run->msn);
		return p + 4;
	default:
		break;
	}
	if (run->flags & (VB_RUN_IMM | VB_RUN_INV)) {
		put32(p, run->imm);
		p += 4;
	}
	if (run->op == VB_OP_SEND && run->service == VB_SERVICE_UD) {
		put32(p, run->qkey);
		p += 4;
	}
	if (run->flags & VB_RUN_LENT)
		p = lent_put(p, &run->lent);
	return p;
}

static const uint8_t *reth_get(const uint8_t *p, struct vb_run *run)
{
	run->va = get64(p);
	run->rkey = get32(p + 8);
	run->dma_length = get32(p + 12);
	return p + 16;
}

static const uint8_t *lent_get(const uint8_t *p, struct vb_lent *lent)
{
	lent->addr = get64(p);
	lent->key = get32(p + 8);
	lent->key_generation = get32(p + 12);
	lent->qp_generation = get32(p + 16);
	return p + LENT_BYTES;
}

static const uint8_t *ext_get(const uint8_t *p, struct vb_run *run)
{
	if (names_srq(run->op, run->service)) {
		run->srqn = get32(p) & VB_SRQN_MASK;
		p += 4;
	}
	switch (run->op) {
	case VB_OP_WRITE:
		if (run->flags & VB_RUN_FIRST)
			p = reth_get(p, run);
		break;
	case VB_OP_READ_REQUEST:
	case VB_OP_ATOMIC_WRITE:
		return reth_get(p, run);
	case VB_OP_FLUSH:
		run->flush = get32(p);
		return reth_get(p + 4, run);
	case VB_OP_COMPARE_SWAP:
	case VB_OP_FETCH_ADD:
		run->va = get64(p);
		run->swap_add = get64(p + 8);
		run->compare = get64(p + 16);
		run->rkey = get32(p + 24);
		return p + 28;
	case VB_OP_ATOMIC_ACK:
		run->msn = get32(p);
		run->original = get64(p + 4);
		return p + 12;
	case VB_OP_DROP:
		run->imm = get32(p);
		run->msn = get32(p + 4);
		return p + 8;
	case VB_OP_READ_RESPONSE:
	case VB_OP_ACK:
		run->msn = get32(p);
		return p + 4;
	default:
		break;
	}
	if (run->flags & (VB_RUN_IMM | VB_RUN_INV)) {
		run->imm = get32(p);
		p += 4;
	}
	if (run->op == VB_OP_SEND && run->service == VB_SERVICE_UD) {
		run->qkey = get32(p);
		p += 4;
	}
	if (run->flags & VB_RUN_LENT)
		p = lent_get(p, &run->lent);
	return p;
}

bool vb_slot_fits_inline(const struct vb_run *run)
{
	uint32_t payload = run->flags & VB_RUN_LENT ? 0 : run->length;

	return run->service != VB_SERVICE_UD &&
	       ext_bytes(run->op, run->flags, run->service) + payload <= VB_SLOT_EXT_BYTES;
}

uint8_t *vb_slot_payload(struct vb_slot *slot, const struct vb_run *run)
{
	return slot->data + VB_SLOT_EXT_OFFSET + ext_bytes(run->op, run->flags, run->service);
}

uint32_t vb_slot_bulk_bytes(const struct vb_run *run, bool from_wire)
{
	return run->length + (from_wire || run->service == VB_SERVICE_UD ? VB_SLOT_PATH_BYTES : 0);
}

/*
 * `mark`: bits of the service byte. Returns the end of the extension. The head is written as it is
 * read when the slot is pushed, in words of 8 bytes: the processor hands a store on to a load only
 * if it covers the load.
 */
static uint8_t *slot_put(struct vb_slot *slot, const struct vb_run *run, uint8_t mark)
{
	uint8_t *d = slot->data;
	uint32_t rider = run->flags & VB_RUN_ACKS ? run->ack_psn : 0;
	uint32_t first = run->op | (uint32_t)run->flags << 8 |
			 (uint32_t)(uint8_t)(run->service | mark) << 16 |
			 (uint32_t)run->syndrome << 24;

	put64(d + AT_OP, pair(first, run->dest_qpn | (rider & 0xff) << RIDER_SHIFT));
	put64(d + AT_PSN, pair(run->psn | (rider >> 8 & 0xff) << RIDER_SHIFT,
			       run->src_qpn | (rider >> 16 & 0xff) << RIDER_SHIFT));
	put64(d + AT_LENGTH, pair(run->length, run->segments | (uint32_t)run->pkey << 16));
	return ext_put(d + VB_SLOT_EXT_OFFSET, run);
}

uint8_t *vb_slot_encode(struct vb_slot *slot, const struct vb_run *run)
{
	bool fits = vb_slot_fits_inline(run);
	uint8_t *end = slot_put(slot, run, fits ? SLOT_INLINE : 0);

	return fits ? end : NULL;
}

void vb_slot_encode_from_wire(struct vb_slot *slot, const struct vb_run *run)
{
	slot_put(slot, run, SLOT_WIRE);
}

uint8_t *vb_slot_encode_handed(struct vb_slot *slot, const struct vb_run *run)
{
	bool fits = vb_slot_fits_inline(run);
	uint8_t *end = slot_put(slot, run, SLOT_HANDED | (fits ? SLOT_INLINE : 0));

	return fits ? end : NULL;
}

bool vb_slot_is_handed(const struct vb_slot *slot)
{
	return slot->data[AT_SERVICE] & SLOT_HANDED;
}

bool vb_slot_is_from_wire(const struct vb_slot *slot)
{
	return slot->data[AT_SERVICE] & SLOT_WIRE;
}

/* Checks everything that later code takes for granted about a run. */
static bool run_plausible(const struct vb_run *run)
{
	if (run->op >= VB_OP_COUNT || run->service > VB_SERVICE_XRC)
		return false;
	if (run->dest_qpn > VB_QPN_MASK || run->src_qpn > VB_QPN_MASK || run->psn > VB_QPN_MASK)
		return false;
	if (run->segments == 0 || run->length > (uint32_t)run->segments * VB_MTU_MOST)
		return false;
	if ((run->flags & VB_RUN_IMM) && (run->flags & VB_RUN_INV))
		return false;
	if ((run->flags & VB_RUN_ACKS) &&
	    (run->service != VB_SERVICE_RC || (run->op != VB_OP_SEND && run->op != VB_OP_WRITE)))
		return false;
	if ((run->flags & VB_RUN_LENT) &&
	    (run->service != VB_SERVICE_RC || run->op != VB_OP_SEND || !run->length))
		return false;
	return run->length == 0 || run->op == VB_OP_SEND || run->op == VB_OP_WRITE ||
	       run->op == VB_OP_READ_RESPONSE || run->op == VB_OP_ATOMIC_WRITE;
}

/* Takes the acknowledgement's PSN out of the three words. */
static void rider_get(struct vb_run *run)
{
	run->ack_psn = run->dest_qpn >> RIDER_SHIFT | run->psn >> RIDER_SHIFT << 8 |
		       run->src_qpn >> RIDER_SHIFT << 16;
	run->dest_qpn &= VB_QPN_MASK;
	run->psn &= VB_QPN_MASK;
	run->src_qpn &= VB_QPN_MASK;
}

bool vb_slot_decode(const struct vb_slot *slot, struct vb_run *run, const uint8_t **inline_payload,
		    uint32_t *bulk_bytes)
{
	const uint8_t *d = slot->data;
	bool fits = d[AT_SERVICE] & SLOT_INLINE;
	bool wire = d[AT_SERVICE] & SLOT_WIRE;

	run->op = d[AT_OP];
	run->flags = d[AT_FLAGS];
	run->service = d[AT_SERVICE] & (uint8_t) ~(SLOT_INLINE | SLOT_WIRE | SLOT_HANDED);
	run->syndrome = d[AT_SYNDROME];
	run->dest_qpn = get32(d + AT_DEST_QPN);
	run->psn = get32(d + AT_PSN);
	run->src_qpn = get32(d + AT_SRC_QPN);
	if (run->flags & VB_RUN_ACKS)
		rider_get(run);
	run->length = get32(d + AT_LENGTH);
	memcpy(&run->segments, d + AT_SEGMENTS, sizeof(run->segments));
	memcpy(&run->pkey, d + AT_PKEY, sizeof(run->pkey));
	if (!run_plausible(run) || (fits && (wire || !vb_slot_fits_inline(run))) ||
	    (vb_slot_is_handed(slot) && (wire || run->service != VB_SERVICE_XRC)) ||
	    (run->flags & VB_RUN_LENT && !fits))
		return false;
	const uint8_t *payload = ext_get(d + VB_SLOT_EXT_OFFSET, run);

	if (run->flags & VB_RUN_LENT)
		payload = (const uint8_t *)(uintptr_t)run->lent.addr;
	*inline_payload = fits ? payload : NULL;
	*bulk_bytes = fits ? 0 : vb_slot_bulk_bytes(run, wire);
	return true;
}

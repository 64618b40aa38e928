/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The slot of a SEND, or of an RDMA WRITE with immediate, of one packet between RC queue pairs
 * (transport/express.h), written and read without a run in between. The layout is that of slot.c,
 * which takes such a slot as any other.
 *
 * Pure. The reader works on the slot where it lies, and reads no word of it twice. A slot that it does
 * not take is for vb_slot_decode(), which judges a copy.
 */
#ifndef VB_HOST_SLOT_SEND_H
#define VB_HOST_SLOT_SEND_H

#include <stdbool.h>
#include <stdint.h>

#include "host/ring.h"
#include "host/slot.h"
#include "host/slot_layout.h"
#include "transport/express.h"

_Static_assert(VB_OP_SEND == 0 && VB_OP_WRITE == 1, "they differ in one bit");

struct vb_slot_send {
	uint32_t dest_qpn, src_qpn, psn;
	uint32_t ack_psn; /* with VB_RUN_ACKS, else 0 */
	uint32_t length;  /* of the payload */
	uint32_t imm;     /* with VB_RUN_IMM */
	uint32_t pkey;    /* 16 bits */
	uint8_t flags;    /* FIRST and LAST, and some of VB_EXPRESS_FLAGS */
	uint8_t op;       /* VB_OP_SEND, or VB_OP_WRITE, which has VB_RUN_IMM */
	uint32_t rkey;    /* WRITE */
	uint64_t va;
};

#define VB_SLOT_SEND_RETH 16u

static inline uint32_t vb_slot_send_extension(const struct vb_slot_send *s)
{
	return (s->op == VB_OP_WRITE ? VB_SLOT_SEND_RETH : 0) +
	       (s->flags & (VB_RUN_IMM | VB_RUN_INV) ? 4 : 0);
}

/* Whether the payload lies in the slot. */
static inline bool vb_slot_send_holds(const struct vb_slot_send *s)
{
	return vb_slot_send_extension(s) + s->length <= VB_SLOT_EXT_BYTES;
}

/* Where the payload lies in the slot's data. */
static inline uint32_t vb_slot_send_at(const struct vb_slot_send *s)
{
	return VB_SLOT_EXT_OFFSET + vb_slot_send_extension(s);
}

/* Fills `data` in ascending order, all but the payload. */
static inline void vb_slot_send_put(uint8_t *data, const struct vb_slot_send *s)
{
	uint32_t mark = vb_slot_send_holds(s) ? SLOT_INLINE : 0;
	uint8_t *extension = data + VB_SLOT_EXT_OFFSET;
	uint32_t first = (uint32_t)s->op << (8 * AT_OP) | (uint32_t)s->flags << (8 * AT_FLAGS) |
			 (VB_SERVICE_RC | mark) << (8 * AT_SERVICE);

	put64(data + AT_OP, pair(first, s->dest_qpn | (s->ack_psn & 0xff) << RIDER_SHIFT));
	put64(data + AT_PSN, pair(s->psn | (s->ack_psn >> 8 & 0xff) << RIDER_SHIFT,
				  s->src_qpn | (s->ack_psn >> 16 & 0xff) << RIDER_SHIFT));
	put64(data + AT_LENGTH, pair(s->length, 1u | (uint32_t)s->pkey << 16));
	if (s->op == VB_OP_WRITE) {
		put64(extension, s->va);
		put64(extension + 8, pair(s->rkey, s->length));
		put32(extension + VB_SLOT_SEND_RETH, s->imm);
	} else if (s->flags & (VB_RUN_IMM | VB_RUN_INV)) {
		put32(extension, s->imm);
	}
}

/* Each word of a slot is read once: its writer can change it at any time. */
static inline uint64_t vb_slot_send_word(const uint8_t *at)
{
	return __atomic_load_n((const uint64_t *)(const void *)at, __ATOMIC_RELAXED);
}

/* What follows the head. False: the header of a WRITE names another length. */
static inline bool vb_slot_send_get_extension(const uint8_t *extension, struct vb_slot_send *s)
{
	s->imm = s->rkey = 0;
	s->va = 0;
	if (s->op == VB_OP_WRITE) {
		uint64_t rest = vb_slot_send_word(extension + 8);

		s->va = vb_slot_send_word(extension);
		s->rkey = (uint32_t)rest;
		s->imm = (uint32_t)vb_slot_send_word(extension + VB_SLOT_SEND_RETH);
		return rest >> 32 == s->length;
	}
	if (s->flags & VB_RUN_IMM)
		s->imm = (uint32_t)vb_slot_send_word(extension);
	return true;
}

/* The head of a slot, as it was read. */
struct vb_slot_words {
	uint64_t first, second, third;
};

static inline struct vb_slot_words vb_slot_send_words(const struct vb_slot *slot)
{
	return (struct vb_slot_words){
		.first = vb_slot_send_word(slot->data + AT_OP),
		.second = vb_slot_send_word(slot->data + AT_PSN),
		.third = vb_slot_send_word(slot->data + AT_LENGTH),
	};
}

/*
 * False: it is something else than such a packet, or nonsense; *s is undefined. `head` was read from the
 * slot.
 */
static inline bool vb_slot_send_get(const struct vb_slot *slot, const struct vb_slot_words *head,
				    struct vb_slot_send *s)
{
	const uint64_t wanted = (VB_RUN_FIRST | VB_RUN_LAST) << (8 * AT_FLAGS) |
				VB_SERVICE_RC << (8 * AT_SERVICE);
	/* The two operations differ in one bit. */
	const uint64_t open = (uint64_t)VB_OP_WRITE << (8 * AT_OP) |
			      (uint64_t)VB_EXPRESS_FLAGS << (8 * AT_FLAGS) |
			      (uint64_t)SLOT_INLINE << (8 * AT_SERVICE);
	uint64_t first = head->first, second = head->second, third = head->third;

	if (((uint32_t)first & ~(uint32_t)open) != wanted)
		return false;
	s->op = (uint8_t)(first >> (8 * AT_OP));
	s->flags = (uint8_t)(first >> (8 * AT_FLAGS));
	if (s->op == VB_OP_WRITE && !(s->flags & VB_RUN_IMM))
		return false;
	s->ack_psn = (uint32_t)(first >> 56) | (uint32_t)second >> 24 << 8 |
		     (uint32_t)(second >> 56) << 16;
	if (s->ack_psn && !(s->flags & VB_RUN_ACKS))
		return false;
	s->dest_qpn = (uint32_t)(first >> 32) & VB_QPN_MASK;
	s->psn = (uint32_t)second & VB_QPN_MASK;
	s->src_qpn = (uint32_t)(second >> 32) & VB_QPN_MASK;
	s->length = (uint32_t)third;
	s->pkey = (uint16_t)(third >> (8 * (AT_PKEY - AT_LENGTH)));
	return (uint16_t)(third >> (8 * (AT_SEGMENTS - AT_LENGTH))) == 1 &&
	       s->length <= VB_MTU_MOST &&
	       vb_slot_send_holds(s) == !!((uint8_t)(first >> (8 * AT_SERVICE)) & SLOT_INLINE) &&
	       vb_slot_send_get_extension(slot->data + VB_SLOT_EXT_OFFSET, s);
}

/*
 * The same for a slot whose head differs from that of *s, which lies in the slot before, by the next PSN
 * and perhaps another length. False: ask vb_slot_send_get(); *s is as it was.
 */
static inline bool vb_slot_send_follow(const struct vb_slot_words *before,
				       const struct vb_slot_words *head, struct vb_slot_send *s)
{
	uint32_t length = (uint32_t)head->third;

	if (s->op != VB_OP_SEND || s->flags & (VB_RUN_IMM | VB_RUN_ACKS) ||
	    head->first != before->first || head->second != before->second + 1 ||
	    !(head->second & VB_QPN_MASK) || (head->third ^ before->third) >> 32 ||
	    length > VB_MTU_MOST || (length <= VB_SLOT_EXT_BYTES) != vb_slot_send_holds(s))
		return false;
	s->psn++;
	s->length = length;
	return true;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The layout of a slot's data, for the files that encode and decode it: slot.c, slot_send.h. */
#ifndef VB_HOST_SLOT_LAYOUT_H
#define VB_HOST_SLOT_LAYOUT_H

#include <stdint.h>
#include <string.h>

/* Bits in the service byte. */
#define SLOT_INLINE 0x80
#define SLOT_WIRE   0x40
#define SLOT_HANDED 0x20

/*
 * Byte offsets in slot->data. The numbers of queue pairs and packets have three bytes. The PSN of
 * an acknowledgement that rides lies in the fourth bytes of DEST_QPN, PSN and SRC_QPN.
 */
enum {
	AT_OP = 0,
	AT_FLAGS = 1,
	AT_SERVICE = 2,
	AT_SYNDROME = 3,
	AT_DEST_QPN = 4,
	AT_PSN = 8,
	AT_SRC_QPN = 12,
	AT_LENGTH = 16,
	AT_SEGMENTS = 20,
	AT_PKEY = 22,
};

#define RIDER_SHIFT 24

static inline void put32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
}

static inline void put64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, sizeof(v));
}

static inline uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t pair(uint32_t low, uint32_t high)
{
	return low | (uint64_t)high << 32;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * CRC-32 (polynomial 0x04c11db7, reflected, as in Ethernet and zlib) of pieces of memory. Ones are
 * assumed before the first bit, and the result is inverted.
 */
#ifndef VB_WIRE_CRC_H
#define VB_WIRE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* The CRC of what `crc` stands for (0: of nothing), followed by `length` bytes. */
uint32_t vb_crc(uint32_t crc, const void *data, size_t length);

/*
 * The ways to compute it. All take and give the register as it is, not inverted. The first runs
 * everywhere, the others where vb_crc_ways() says so, and from VB_CRC_FOLD_LEAST bytes on.
 */
typedef uint32_t vb_crc_way(uint32_t reg, const uint8_t *data, size_t length);

enum { VB_CRC_FOLD_LEAST = 16 };

vb_crc_way vb_crc_table;
vb_crc_way vb_crc_fold;        /* 16 bytes by one carry-less multiplication */
vb_crc_way vb_crc_fold_double; /* twice 16 bytes */
vb_crc_way vb_crc_fold_wide;   /* four times 16 bytes */

/* How many of the four, in this order, this processor and its kernel support. */
unsigned int vb_crc_ways(void);

#endif

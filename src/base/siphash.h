/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SipHash-2-4 (Aumasson and Bernstein, 2012): a short keyed hash that does not disclose its key. */
#ifndef VB_BASE_SIPHASH_H
#define VB_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

#define VB_SIPHASH_KEY_BYTES 16

uint64_t vb_siphash(const uint8_t key[VB_SIPHASH_KEY_BYTES], const void *data, size_t length);

#endif

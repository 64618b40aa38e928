/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* 24-bit packet sequence numbers (IBA 9.7.2): they wrap, and compare within a window of 2^23. */
#ifndef VB_TRANSPORT_PSN_H
#define VB_TRANSPORT_PSN_H

#include <stdint.h>

#define VB_PSN_MASK 0xffffffu

static inline uint32_t vb_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & VB_PSN_MASK;
}

/* a - b as a signed distance in [-2^23, 2^23). */
static inline int32_t vb_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/* The packets of a message of this length; a message of 0 bytes takes one. */
static inline uint32_t vb_psn_count(uint64_t length, uint32_t mtu)
{
	return length ? (uint32_t)((length + mtu - 1) / mtu) : 1;
}

#endif

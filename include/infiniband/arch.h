/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Kept for old programs: 64-bit byte swapping by its former names. <endian.h> has the real ones.
 */
#ifndef INFINIBAND_ARCH_H
#define INFINIBAND_ARCH_H

#warning "infiniband/arch.h is obsolete: use endian.h"

#include <endian.h>
#include <stdint.h>

#ifndef ntohll
static inline __attribute__((deprecated)) uint64_t ntohll(uint64_t x)
{
	return be64toh(x);
}

#undef htonll
static inline __attribute__((deprecated)) uint64_t htonll(uint64_t x)
{
	return htobe64(x);
}

#define ntohll ntohll
#define htonll htonll
#endif

#endif

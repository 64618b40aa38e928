/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer that writes into this process's memory as fast as it can, until it is refused: for tests
 * of what takes memory away from a peer.
 */
#ifndef TESTS_SUPPORT_WRITER_H
#define TESTS_SUPPORT_WRITER_H

#include "support/endpoint.h"

enum { WRITER_WINDOW = 8 }; /* WRITEs under way */

/* For both ends: with one retry, so that requests fail soon once nothing answers. */
struct ep_config writer_config(void);

/*
 * WRITEs of 8 bytes up to `largest`, a power of two, at the same place in both buffers, until the
 * first error. Everything before it succeeds, everything behind it is flushed. Ends the test on
 * anything else. `lists`: several WRITEs by one call.
 */
void write_until_error(struct endpoint *ep, size_t largest, bool lists, uint64_t *seed);
/* The same by WRITEs with immediate, one by one; the target posts receives for them. */
void write_imm_until_error(struct endpoint *ep, size_t largest, uint64_t *seed);

#endif

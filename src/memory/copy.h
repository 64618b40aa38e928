/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copies that do not kill the process where the program has unmapped what it registered. */
#ifndef VB_MEMORY_COPY_H
#define VB_MEMORY_COPY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Copies between this process's registered memory and memory of ours, for the responder: what a peer asks for must not kill
 * the process when the program has unmapped a region that it still has registered. True: copied; false: it is gone. The
 * kernel does the copy, half a microsecond a call; it is the way of requests that direct access declined.
 */
/* The last aligned 8 bytes are stored after all others: programs poll the last word of a WRITE (ibv_query_qp_data_in_order(3)). */
bool vb_mem_copy_in(uint64_t addr, const void *src, uint64_t length);
bool vb_mem_copy_out(void *dst, uint64_t addr, uint64_t length);

#endif

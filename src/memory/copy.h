/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies that do not kill the process when the program has unmapped memory that is still
 * registered.
 */
#ifndef VB_MEMORY_COPY_H
#define VB_MEMORY_COPY_H

#include <stdbool.h>
#include <stdint.h>

struct vb_copy_source;

/*
 * Copies between this process's registered memory and the library's own memory, for the responder.
 * A peer's request must not kill the process when the program has unmapped a region that is still
 * registered. True: copied; false: the memory is gone. The kernel makes the copy, which takes half
 * a microsecond. Requests that direct access declined are served so.
 */
/*
 * The last aligned 8 bytes are stored after all others, because programs poll the last word of a
 * WRITE (ibv_query_qp_data_in_order(3)).
 */
bool vb_mem_copy_in(uint64_t addr, const void *src, uint64_t length);
bool vb_mem_copy_out(void *dst, uint64_t addr, uint64_t length);

/* The same where the program cannot have unmapped the memory (vb_mr_lasts()), by plain copies. */
void vb_mem_put(uint64_t addr, const void *src, uint64_t length);
void vb_mem_get(void *dst, uint64_t addr, uint64_t length);

/*
 * In this thread, until the call with NULL: what vb_mem_copy_in() is to copy may be had from this
 * source.
 */
void vb_mem_copy_from(struct vb_copy_source *source);

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registered memory of this process: keys looked up and checked at every use, scatter/gather lists walked. */
#ifndef VB_MEMORY_MEMORY_H
#define VB_MEMORY_MEMORY_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/reason.h"
#include "host/page.h"
#include "transport/access.h"

/* Where keys are looked up, and for whom. */
struct vb_mem {
	const struct vb_keyring *keys;
	uint32_t pd;
	uint32_t qpn;
	uint32_t engine; /* whose lock is held, and whose mark may be set */
};

/* One range through one key. need: enum ibv_access_flags bits (local side: 0 or IBV_ACCESS_LOCAL_WRITE). length > 0. */
enum vb_reason vb_mem_check(const struct vb_mem *mem, uint32_t key, uint64_t va, uint64_t length,
			    uint32_t need, enum vb_access_side side, uint64_t *addr);

/* The remote side's check that also says, under the reason's code, which key, range or right is wrong. `what`: "WRITE". */
enum vb_reason vb_mem_check_explained(const struct vb_mem *mem, const char *what, uint32_t key,
				      uint64_t va, uint64_t length, uint32_t need, uint64_t *addr);

/* Which of a list's vectors are not plain memory, bit i for vector i. */
struct vb_mem_odd {
	uint64_t paged; /* on demand: the program may have unmapped it, the kernel has to copy */
	uint64_t null;  /* of the null region: no memory at all */
};

/*
 * The part [offset, offset+length) of a scatter/gather list as vectors in this process; at most max. Only the keys of
 * elements that the part touches are checked (IBA 10.6.3: an element's key matters when it is used). *count may end before
 * the part does: *got says how much it covers. max is at most 64.
 */
enum vb_reason vb_mem_vectors(const struct vb_mem *mem, const struct ibv_sge *sge, uint32_t num_sge,
			      uint64_t offset, uint64_t length, uint32_t need, struct iovec *iov,
			      int max, int *count, uint64_t *got, struct vb_mem_odd *odd);

/* No element of the list is an imported region: its memory is in this process. */
bool vb_mem_is_ours(const struct vb_mem *mem, const struct ibv_sge *sge, uint32_t num_sge);

/* Every element of the list, checked without copying. */
enum vb_reason vb_mem_check_list(const struct vb_mem *mem, const struct ibv_sge *sge,
				 uint32_t num_sge, uint32_t need);

/* Do all elements lie in plain memory? Of keys that are valid; others do not count. */
bool vb_mem_is_plain(const struct vb_mem *mem, const struct ibv_sge *sge, uint32_t num_sge);

/* Copies out of and into a list. What the program has unmapped from an on-demand region: MEMORY_GONE. */
enum vb_reason vb_mem_gather(const struct vb_mem *mem, const struct ibv_sge *sge, uint32_t num_sge,
			     uint64_t offset, void *dst, uint64_t length);
enum vb_reason vb_mem_scatter(const struct vb_mem *mem, const struct ibv_sge *sge, uint32_t num_sge,
			      uint64_t offset, const void *src, uint64_t length);

/*
 * Copies between this process's registered memory and memory of ours, for the responder: what a peer asks for must not kill
 * the process when the program has unmapped a region that it still has registered. True: copied; false: it is gone. The
 * kernel does the copy, half a microsecond a call; it is the way of requests that direct access declined.
 */
bool vb_mem_copy_in(uint64_t addr, const void *src,
		    uint64_t length); /* the last aligned 8 bytes are stored last */
bool vb_mem_copy_out(void *dst, uint64_t addr, uint64_t length);

/*
 * Copies so that the last aligned 8 bytes are stored after all others: programs poll the last word of a WRITE
 * (ibv_query_qp_data_in_order(3)).
 */
void vb_mem_copy_tail_last(void *dst, const void *src, uint64_t length);

#endif

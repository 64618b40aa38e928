/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The memory half of an endpoint's environment (memory.c). */
#ifndef TESTS_FUZZ_MEMORY_H
#define TESTS_FUZZ_MEMORY_H

#include "endpoint.h"

static inline struct endpoint *endpoint_of(struct vb_tqp *qp)
{
	return (struct endpoint *)(void *)qp;
}

enum vb_reason memory_gather_check(struct vb_tqp *qp, struct vb_send_wqe *wqe);
enum vb_reason memory_gather(struct vb_tqp *qp, struct vb_send_wqe *wqe, uint64_t offset, void *dst,
			     uint32_t length);
enum vb_reason memory_scatter_response(struct vb_tqp *qp, struct vb_send_wqe *wqe, uint64_t offset,
				       const void *src, uint32_t length);
enum vb_reason memory_recv_scatter(struct vb_tqp *qp, struct vb_recv_wqe *wqe, uint64_t offset,
				   const void *src, uint32_t length);
enum vb_reason memory_remote_check(struct vb_tqp *qp, uint32_t rkey, uint64_t va, uint64_t length,
				   uint32_t need);
enum vb_reason memory_remote_write(struct vb_tqp *qp, uint32_t rkey, uint64_t va, const void *src,
				   uint32_t length);
enum vb_reason memory_remote_read(struct vb_tqp *qp, uint32_t rkey, uint64_t va, void *dst,
				  uint32_t length);
enum vb_reason memory_remote_atomic(struct vb_tqp *qp, uint32_t rkey, uint64_t va,
				    bool compare_swap, uint64_t swap_add, uint64_t compare,
				    uint64_t *original);
enum vb_reason memory_remote_atomic_write(struct vb_tqp *qp, uint32_t rkey, uint64_t va,
					  const void *value);
enum vb_reason memory_remote_flush(struct vb_tqp *qp, uint32_t rkey, uint64_t va, uint64_t length,
				   uint32_t type, bool whole);
enum vb_reason memory_invalidate(struct vb_tqp *qp, uint32_t key);

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory of a queue pair of the protocol, as the simulator and the fuzz targets provide it: each
 * defines these functions in its memory.c, and puts PROTOCOL_MEMORY into its environment.
 */
#ifndef TESTS_SUPPORT_PROTOCOL_MEMORY_H
#define TESTS_SUPPORT_PROTOCOL_MEMORY_H

#include "transport/tqp.h"

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

#define PROTOCOL_MEMORY                                                                        \
	.memory.gather_check = memory_gather_check, .memory.gather = memory_gather,            \
	.memory.scatter_response = memory_scatter_response,                                    \
	.queue.recv_scatter = memory_recv_scatter, .memory.remote_check = memory_remote_check, \
	.memory.remote_write = memory_remote_write, .memory.remote_read = memory_remote_read,  \
	.memory.remote_atomic = memory_remote_atomic,                                          \
	.memory.remote_atomic_write = memory_remote_atomic_write,                              \
	.memory.remote_flush = memory_remote_flush, .memory.invalidate = memory_invalidate

#endif

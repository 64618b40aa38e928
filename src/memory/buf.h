/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Buffers of ibv_alloc_buf(3): ordinary memory for the program, which peers map as they map device
 * memory.
 */
#ifndef VB_MEMORY_BUF_H
#define VB_MEMORY_BUF_H

#include <infiniband/verbs.h>

int vb_buf_alloc(struct ibv_pd *pd, size_t size, struct ibv_buf **buf, void **addr);
int vb_buf_free(struct ibv_buf *buf);
int vb_buf_register(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length,
		    uint64_t iova, unsigned int access, struct ibv_mr **mr);
/* Returns a descriptor of a dma-buf, or -errno. */
int vb_buf_export(struct ibv_buf *buf);

struct vb_object_type;
extern const struct vb_object_type vb_buf_type;

#endif

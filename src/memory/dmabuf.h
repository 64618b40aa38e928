/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory of the arena as a dma-buf, for other drivers. */
#ifndef VB_MEMORY_DMABUF_H
#define VB_MEMORY_DMABUF_H

#include <stddef.h>

struct vb_node;

/*
 * Returns a new descriptor that the caller owns. -EOPNOTSUPP with the reason recorded where the
 * system does not let this user make one.
 */
int vb_dmabuf_export(struct vb_node *node, const void *addr, size_t length);

#endif

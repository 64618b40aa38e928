/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Deadlines of any number of objects: a pairing heap (Fredman, Sedgewick, Sleator, Tarjan, 1986) of
 * nodes that lie in the objects. Inserting takes constant time, removing logarithmic time on
 * average. Not thread-safe.
 */
#ifndef VB_CM_HEAP_H
#define VB_CM_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero: in no heap. */
struct vb_cm_node {
	uint64_t due; /* ns; 0: in no heap */
	struct vb_cm_node *child, *next;
	struct vb_cm_node *before; /* the sibling in front, or the parent of the first child */
};

struct vb_cm_heap {
	struct vb_cm_node *root;
};

/* `due` is not 0. A node that is in the heap is moved. */
void vb_cm_heap_set(struct vb_cm_heap *heap, struct vb_cm_node *node, uint64_t due);
/* Nothing happens if the node is in no heap. */
void vb_cm_heap_remove(struct vb_cm_heap *heap, struct vb_cm_node *node);

/* When the earliest node is due; 0: the heap is empty. */
static inline uint64_t vb_cm_heap_due(const struct vb_cm_heap *heap)
{
	return heap->root ? heap->root->due : 0;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A pairing heap of deadlines. */
#include "cm/heap.h"

/* Makes the later one of two roots the first child of the earlier one. */
static struct vb_cm_node *meld(struct vb_cm_node *a, struct vb_cm_node *b)
{
	if (!a)
		return b;
	if (!b)
		return a;
	if (b->due < a->due) {
		struct vb_cm_node *swap = a;

		a = b;
		b = swap;
	}
	b->next = a->child;
	if (b->next)
		b->next->before = b;
	b->before = a;
	a->child = b;
	return a;
}

/* Melds a list of siblings in pairs, and these from the last to the first. */
static struct vb_cm_node *meld_all(struct vb_cm_node *first)
{
	struct vb_cm_node *pairs = NULL;
	struct vb_cm_node *root = NULL;

	while (first) {
		struct vb_cm_node *a = first;
		struct vb_cm_node *b = a->next;

		first = b ? b->next : NULL;
		a->next = a->before = NULL;
		if (b)
			b->next = b->before = NULL;
		a = meld(a, b);
		a->next = pairs;
		pairs = a;
	}
	while (pairs) {
		struct vb_cm_node *a = pairs;

		pairs = a->next;
		a->next = NULL;
		root = meld(root, a);
	}
	return root;
}

void vb_cm_heap_remove(struct vb_cm_heap *heap, struct vb_cm_node *node)
{
	struct vb_cm_node *children;

	if (!node->due)
		return;
	children = meld_all(node->child);
	if (heap->root == node) {
		heap->root = children;
	} else {
		if (node->before->child == node)
			node->before->child = node->next;
		else
			node->before->next = node->next;
		if (node->next)
			node->next->before = node->before;
		heap->root = meld(heap->root, children);
	}
	*node = (struct vb_cm_node){0};
}

void vb_cm_heap_set(struct vb_cm_heap *heap, struct vb_cm_node *node, uint64_t due)
{
	vb_cm_heap_remove(heap, node);
	node->due = due;
	heap->root = meld(heap->root, node);
}

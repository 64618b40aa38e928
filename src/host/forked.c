/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The node in a forked child. It is the parent's: its descriptors are closed here, and its rings
 * and its peers' pages were not inherited (MADV_DONTFORK). Private zeros take the place of its page
 * and keys, so that late readers neither fault nor reach the parent. No lock is taken, because
 * another thread of the parent may have held it.
 */
#include <sys/mman.h>

#include "host/commons.h"
#include "host/descriptor.h"
#include "host/private.h"

void vb_node_forked(struct vb_node *node)
{
	atomic_store(&node->forked, true);
	atomic_store(&node->gone, true);
	vb_arena_forked(node);
	vb_commons_forked();
	vb_descriptor_close_inherited();
	(void)mmap(node->page, sizeof(struct vb_page), PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	(void)mmap(node->keyring, sizeof(struct vb_keyring), PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pieces of the arena of any size (host/arena.h). Small ones share a page. A place within a page is
 * given out once while the page is in use, and then the page rests in the arena: a process that
 * still has a view of a freed piece writes into no other memory.
 */
#ifndef VB_HOST_PIECE_H
#define VB_HOST_PIECE_H

#include <stddef.h>
#include <stdint.h>

/* Small pieces begin at multiples of this and have multiples of it. */
#define VB_PIECE_UNIT 64u

struct vb_node;
struct vb_slab;

struct vb_piece {
	void *addr;
	size_t bytes;
	/* The page that it shares with other pieces; NULL: it has pages of its own. */
	struct vb_slab *slab;
};

/*
 * The bytes that a piece takes at an address that is a multiple of 2^log_align, which is at most a
 * page.
 */
size_t vb_piece_bytes(size_t bytes, uint32_t log_align);

/*
 * Zero-filled; `bytes` is a result of vb_piece_bytes(). 0; -ENOMEM with the reason recorded. After
 * the piece was freed, mappings in other processes read as zeros.
 */
int vb_piece_alloc(struct vb_node *node, size_t bytes, uint32_t log_align, struct vb_piece *piece);
void vb_piece_free(struct vb_node *node, const struct vb_piece *piece);

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Small pieces share a slab, which is one page of memory. However few of its pieces are left, they
 * never keep more memory than if each had a page. A slab is filled from its beginning upwards, and
 * goes back to the arena when it is full and its pieces are freed.
 */
#include "host/piece.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/reason.h"
#include "host/arena.h"
#include "host/descriptor.h"
#include "host/private.h"

struct vb_slab {
	char *base;
	size_t taken;      /* bytes from the beginning that were given out */
	unsigned int live; /* pieces that are not freed */
};

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t round_up(size_t bytes, size_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

static size_t unit_of(uint32_t log_align)
{
	size_t align = (size_t)1 << log_align;

	return align > VB_PIECE_UNIT ? align : VB_PIECE_UNIT;
}

static bool is_small(size_t bytes)
{
	return bytes <= page_bytes() / 4;
}

size_t vb_piece_bytes(size_t bytes, uint32_t log_align)
{
	size_t small = round_up(bytes, unit_of(log_align));

	return is_small(small) ? small : round_up(bytes, page_bytes());
}

static int slab_new(struct vb_node *node, struct vb_slab **slab)
{
	struct vb_slab *s = calloc(1, sizeof(*s));
	void *base = NULL;
	int err = s ? vb_arena_alloc(node, page_bytes(), &base)
		    : vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "no memory for small pieces");

	if (err) {
		free(s);
		return err;
	}
	s->base = base;
	*slab = s;
	return 0;
}

static void slab_end(struct vb_node *node, struct vb_slab *s)
{
	vb_arena_free(node, s->base, page_bytes());
	free(s);
}

/* The caller holds the lock. Whether the slab has room for the piece. */
static bool fits(const struct vb_slab *s, size_t bytes, size_t unit)
{
	return s && round_up(s->taken, unit) + bytes <= page_bytes();
}

/* The caller holds the lock. Begins a new slab. */
static int slab_next(struct vb_node *node)
{
	struct vb_slab *before = node->arena.slab;
	int err = slab_new(node, &node->arena.slab);

	if (!err && before && !before->live)
		slab_end(node, before);
	return err;
}

static int alloc_small(struct vb_node *node, size_t bytes, size_t unit, struct vb_piece *piece)
{
	struct vb_arena *arena = &node->arena;
	int err = 0;

	vb_mutex_take(&arena->slab_lock, VB_ORDER_SLAB);
	if (!fits(arena->slab, bytes, unit))
		err = slab_next(node);
	if (!err) {
		struct vb_slab *s = arena->slab;
		size_t at = round_up(s->taken, unit);

		s->taken = at + bytes;
		s->live++;
		*piece = (struct vb_piece){s->base + at, bytes, s};
	}
	vb_mutex_release(&arena->slab_lock);
	return err;
}

int vb_piece_alloc(struct vb_node *node, size_t bytes, uint32_t log_align, struct vb_piece *piece)
{
	if (is_small(bytes))
		return alloc_small(node, bytes, unit_of(log_align), piece);
	*piece = (struct vb_piece){.bytes = bytes};
	return vb_arena_alloc(node, bytes, &piece->addr);
}

void vb_piece_free(struct vb_node *node, const struct vb_piece *piece)
{
	struct vb_arena *arena = &node->arena;
	struct vb_slab *s = piece->slab;

	if (!s) {
		vb_arena_free(node, piece->addr, piece->bytes);
		return;
	}
	/* As the arena does with memory that it gets back. */
	if (vb_descriptor_ours(arena->fd))
		memset(piece->addr, 0, piece->bytes);
	vb_mutex_take(&arena->slab_lock, VB_ORDER_SLAB);
	bool last = !--s->live && (s != arena->slab || !fits(s, VB_PIECE_UNIT, VB_PIECE_UNIT));

	if (last && s == arena->slab)
		arena->slab = NULL;
	vb_mutex_release(&arena->slab_lock);
	if (last)
		slab_end(node, s);
}

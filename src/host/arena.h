/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that peers map: device memory and ibv_alloc_buf(3).
 *
 * A process has one arena, a sparse memfd that cannot change size, and hands its descriptor to every peer. Here it lies in one
 * reserved range of addresses whose start is published (page.h), so that whoever knows an address and the peer knows the place
 * in the file: how the memory was registered does not matter. Peers map windows of it when they first touch them.
 *
 * These are the pages that several processes write, because that is what they are for. Nothing of the library's own state lies
 * there. Atomics on them are the processor's own.
 */
#ifndef VB_HOST_ARENA_H
#define VB_HOST_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vb_node;
struct vb_peer;

/*
 * Zero-filled memory, whole pages, all of them present: it will not be missing when a peer touches it. 0; -ENOMEM with the reason
 * recorded. free takes what alloc gave; whatever is still mapped elsewhere reads as zeroes afterwards.
 */
int vb_arena_alloc(struct vb_node *node, size_t bytes, void **addr);
void vb_arena_free(struct vb_node *node, void *addr, size_t bytes);

/* The file and the place in it of an address that vb_arena_alloc() gave. The descriptor stays the arena's; -1: the program closed it. */
int vb_arena_file(struct vb_node *node, const void *addr, uint64_t *offset);

/* Does the whole range lie in the peer's arena? `addr` is an address in the peer's address space. */
bool vb_arena_holds(const struct vb_peer *peer, uint64_t addr, uint64_t length);

/*
 * Where a range of the peer's arena is mapped here; *room says how much of it lies in one piece. NULL: it is not in the arena,
 * or cannot be mapped. The mapping stays as long as the peer. An aligned word is never split.
 */
void *vb_arena_window(struct vb_peer *peer, uint64_t addr, uint64_t length, size_t *room);

/*
 * A range of a peer's arena in a mapping of its own, in one piece, which outlives the peer; it begins as pieces do (host/piece.h). NULL:
 * it is not there, or cannot be mapped. Whole pages are mapped, others' bytes may lie in them: who gets here is trusted with all
 * of the peer's memory. unmap takes what map gave.
 */
void *vb_arena_map_piece(struct vb_peer *peer, uint64_t addr, uint64_t length);
void vb_arena_unmap_piece(void *mapping, uint64_t length);

/* This process's own memory through such a window: what the program does to its mapping cannot make a copy fault. */
struct vb_peer *vb_node_self(struct vb_node *node);

#endif

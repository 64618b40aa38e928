/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that peers map: device memory and buffers of ibv_alloc_buf(3).
 *
 * A process has one arena, a sparse memfd that cannot change size, and passes its descriptor to
 * every peer that it trusts with memory. In its owner the arena lies in one reserved range of
 * addresses whose start is published (page.h). A process that knows the peer and an address
 * therefore knows the place in the file; how the memory was registered does not matter. Peers map
 * windows of it when they need them.
 *
 * Several processes write these pages, because the pages are for that. The library keeps none of
 * its own state there. Atomics on them are the processor's own.
 */
#ifndef VB_HOST_ARENA_H
#define VB_HOST_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vb_node;
struct vb_peer;

/* Bytes of a window, within which an address of the peer moves as the address here does. */
#define VB_ARENA_WINDOW (64ull << 20)

/*
 * Allocates zero-filled memory: whole pages, all of them present, so that none is missing when a
 * peer touches it. 0; -ENOMEM with the reason recorded. vb_arena_free() takes what vb_arena_alloc()
 * gave; mappings in other processes read as zeros afterwards.
 */
int vb_arena_alloc(struct vb_node *node, size_t bytes, void **addr);
void vb_arena_free(struct vb_node *node, void *addr, size_t bytes);

/*
 * The program registers memory. What lies in its own blocks (mapped.h) gets all its pages now, so
 * that none is missing when a peer touches it. 0 also for other memory; -ENOMEM or -EOPNOTSUPP with
 * the reason recorded.
 */
int vb_arena_present(struct vb_node *node, const void *addr, size_t bytes);

/*
 * The file, and the place in it of an address that vb_arena_alloc() gave. The descriptor stays the
 * arena's. -1: the program has closed it.
 */
int vb_arena_file(struct vb_node *node, const void *addr, uint64_t *offset);

/*
 * Whether the whole range lies in the peer's arena. `addr` is an address in the peer's address
 * space.
 */
bool vb_arena_holds(const struct vb_peer *peer, uint64_t addr, uint64_t length);

/*
 * The address at which a range of the peer's arena is mapped here. *room gets how much of it lies
 * in one piece. NULL: the range is not in the arena, or cannot be mapped. The mapping stays as long
 * as the peer. An aligned word is never split.
 */
void *vb_arena_window(struct vb_peer *peer, uint64_t addr, uint64_t length, size_t *room);

/*
 * Maps a range of a peer's arena in one piece, by a mapping of its own that outlives the peer. The
 * range begins as pieces do (host/piece.h). NULL: it is not there, or cannot be mapped. Whole pages
 * are mapped, which may hold bytes of other pieces: the caller is trusted with all of the peer's
 * memory anyway. unmap takes what map gave.
 */
void *vb_arena_map_piece(struct vb_peer *peer, uint64_t addr, uint64_t length);
void vb_arena_unmap_piece(void *mapping, uint64_t length);

/*
 * This process's own memory through such a window: a copy cannot fault, whatever the program does
 * to its own mapping.
 */
struct vb_peer *vb_node_self(struct vb_node *node);

#endif

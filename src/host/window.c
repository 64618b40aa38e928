/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Windows into the arena of a peer, or of this process itself. Each is mapped once, when it is first touched, and stays until the peer goes. The
 * file was checked when its descriptor came: a memfd of ordinary pages that cannot shrink, so no access of ours can fault.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/reason.h"
#include "host/arena.h"
#include "host/descriptor.h"
#include "host/private.h"
#include "host/shared.h"

#define WINDOW_BYTES (64ull << 20)
#define LARGEST      (1ull << 40)

static size_t window_count(uint64_t size)
{
	return (size_t)((size + WINDOW_BYTES - 1) / WINDOW_BYTES);
}

static const char *file_defect(int fd, uint64_t *size)
{
	const char *defect = NULL;

	if (vb_shared_check(fd, true, size, &defect))
		return defect;
	return *size > LARGEST ? "its memory is too large" : NULL;
}

int vb_window_attach(struct vb_peer *peer, int fd, const char **defect)
{
	uint64_t size = 0;

	*defect = file_defect(fd, &size);
	if (*defect)
		return -EBADMSG;
	peer->window = calloc(window_count(size), sizeof(*peer->window));
	if (!peer->window) {
		*defect = "there is no memory for its windows";
		return -ENOMEM;
	}
	peer->arena_size = size;
	peer->arena_fd = fd;
	return 0;
}

void vb_window_detach(struct vb_peer *peer)
{
	for (size_t i = 0; peer->window && i < window_count(peer->arena_size); i++) {
		void *map = atomic_load(&peer->window[i]);

		if (map)
			munmap(map, WINDOW_BYTES);
	}
	free(peer->window);
	peer->window = NULL;
}

/* The place in the file. What the peer publishes is read once. */
static bool locate(const struct vb_peer *peer, uint64_t addr, uint64_t length, uint64_t *offset)
{
	if (!atomic_load_explicit(&peer->given, memory_order_acquire))
		return false;
	const struct vb_keyring *keys = peer->keys;

	if (!peer->window || !keys)
		return false;
	uint64_t base = __atomic_load_n(&keys->arena_base, __ATOMIC_ACQUIRE);
	uint64_t bytes = __atomic_load_n(&keys->arena_bytes, __ATOMIC_RELAXED);

	if (bytes > peer->arena_size)
		bytes = peer->arena_size;
	*offset = addr - base;
	return base && addr >= base && length <= bytes && *offset <= bytes - length;
}

bool vb_arena_holds(const struct vb_peer *peer, uint64_t addr, uint64_t length)
{
	uint64_t offset;

	return locate(peer, addr, length, &offset);
}

bool vb_peer_shares(const struct vb_peer *peer)
{
	return atomic_load_explicit(&peer->given, memory_order_acquire) && peer->window &&
	       peer->keys && __atomic_load_n(&peer->keys->arena_base, __ATOMIC_RELAXED);
}

/* Several threads may find it missing at once; one mapping stays. */
static void *window_open(struct vb_peer *peer, size_t index)
{
	void *none = NULL;

	if (!vb_descriptor_ours(peer->arena_fd))
		return NULL;
	void *map = mmap(NULL, WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			 peer->arena_fd, (off_t)(index * WINDOW_BYTES));

	if (map == MAP_FAILED) {
		vb_note(VB_REASON_NO_DIRECT_ACCESS,
			"process %u: its shared memory cannot be mapped here", vb_peer_pid(peer));
		return NULL;
	}
	madvise(map, WINDOW_BYTES, MADV_DONTFORK);
	madvise(map, WINDOW_BYTES, MADV_DONTDUMP);
	if (atomic_compare_exchange_strong(&peer->window[index], &none, map))
		return map;
	munmap(map, WINDOW_BYTES);
	return none;
}

void *vb_arena_window(struct vb_peer *peer, uint64_t addr, uint64_t length, size_t *room)
{
	uint64_t offset;

	if (!length || !locate(peer, addr, length, &offset))
		return NULL;
	size_t index = (size_t)(offset / WINDOW_BYTES);
	size_t at = (size_t)(offset % WINDOW_BYTES);
	char *map = atomic_load_explicit(&peer->window[index], memory_order_acquire);

	if (!map)
		map = window_open(peer, index);
	*room = WINDOW_BYTES - at;
	return map ? map + at : NULL;
}

/* Pieces begin with a page and have whole pages (vb_arena_alloc()). */
void *vb_arena_map_piece(struct vb_peer *peer, uint64_t addr, uint64_t length)
{
	uint64_t offset;

	if (!length || !locate(peer, addr, length, &offset) || offset % 4096 ||
	    !vb_descriptor_ours(peer->arena_fd))
		return NULL;
	void *map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			 peer->arena_fd, (off_t)offset);

	if (map == MAP_FAILED)
		return NULL;
	madvise(map, length, MADV_DONTFORK);
	return map;
}

void vb_arena_unmap_piece(void *mapping, uint64_t length)
{
	munmap(mapping, length);
}

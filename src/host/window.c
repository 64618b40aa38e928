/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Windows into the arena of a peer, or of this process itself. Those that a peer uses are mapped
 * when the descriptor of its arena comes. The descriptor is then closed, because one for each peer
 * adds up. When the peer uses more, it sends the descriptor again. Windows of this process itself
 * are mapped when they are first touched. Windows stay until the peer goes. The file is checked: a
 * memfd of ordinary pages that cannot shrink, so no access faults.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/reason.h"
#include "base/sys.h"
#include "host/arena.h"
#include "host/descriptor.h"
#include "host/piece.h"
#include "host/private.h"
#include "host/shared.h"

#define WINDOW_BYTES VB_ARENA_WINDOW
#define LARGEST      (1ull << 40)
/*
 * A peer's program can know of memory before the descriptor is here. The wait for the descriptor
 * has this bound.
 */
#define AWAIT_NS     (500 * VB_MSEC)
#define NAP_NS       (VB_MSEC / 10)

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

static uint64_t file_number(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : (uint64_t)st.st_ino;
}

/* A peer's arena: maps in one piece all that the peer says it uses and that is not mapped yet. */
static void windows_open(struct vb_peer *peer, int fd)
{
	uint64_t top = peer->keys ? __atomic_load_n(&peer->keys->arena_top, __ATOMIC_ACQUIRE) : 0;
	size_t from = peer->windows,
	       to = window_count(top < peer->arena_size ? top : peer->arena_size);

	if (to <= from)
		return;
	char *map = mmap(NULL, (to - from) * WINDOW_BYTES, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_NORESERVE, fd, (off_t)(from * WINDOW_BYTES));

	if (map == MAP_FAILED) {
		vb_note(VB_REASON_NO_DIRECT_ACCESS,
			"process %u: its shared memory cannot be mapped here", vb_peer_pid(peer));
		return;
	}
	madvise(map, (to - from) * WINDOW_BYTES, MADV_DONTFORK);
	madvise(map, (to - from) * WINDOW_BYTES, MADV_DONTDUMP);
	for (size_t i = from; i < to; i++)
		atomic_store_explicit(&peer->window[i], map + (i - from) * WINDOW_BYTES,
				      memory_order_release);
	peer->windows = to;
}

void vb_window_extend(struct vb_peer *peer, int fd)
{
	if (peer->window && file_number(fd) == peer->arena_file)
		windows_open(peer, fd);
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
	peer->arena_file = file_number(fd);
	if (peer->self) {
		peer->arena_fd = fd;
	} else {
		windows_open(peer, fd);
		vb_descriptor_close(fd);
	}
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

/* Finds the place in the file. What the peer publishes is read once. */
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

/*
 * A window of this process itself. Several threads may find it missing at once; one mapping stays.
 */
static void *window_open(struct vb_peer *peer, size_t index)
{
	void *none = NULL;

	if (!peer->self || !vb_descriptor_ours(peer->arena_fd))
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

/*
 * Whether everything that the range touches is mapped here, as soon as the peer's descriptor has
 * come.
 */
static bool windows_await(const struct vb_peer *peer, uint64_t offset, uint64_t length)
{
	int64_t until = vb_node_clock() + AWAIT_NS;
	struct timespec nap = {0, NAP_NS};
	size_t last = (size_t)((offset + length - 1) / WINDOW_BYTES);

	/* Windows are mapped in order. */
	while (!atomic_load_explicit(&peer->window[last], memory_order_acquire)) {
		if (!vb_peer_alive(peer) || vb_node_clock() > until)
			return false;
		vb_sys_nanosleep(&nap);
	}
	return true;
}

/* A second mapping of what a shared one shows (mremap(2), an old size of 0). */
static bool map_again(void *from, void *to, size_t bytes)
{
	return mremap(from, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED;
}

/*
 * Widens a range to whole pages; *offset and *length become theirs. Returns how far into them the
 * range begins.
 */
static uint64_t widen(uint64_t *offset, uint64_t *length)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t head = *offset % page;

	*offset -= head;
	*length = (*length + head + page - 1) / page * page;
	return head;
}

void *vb_arena_map_piece(struct vb_peer *peer, uint64_t addr, uint64_t length)
{
	uint64_t offset, head, room;

	if (!length || !locate(peer, addr, length, &offset) || offset % VB_PIECE_UNIT ||
	    peer->self || !windows_await(peer, offset, length))
		return NULL;
	head = widen(&offset, &length);
	char *map =
		mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (map == MAP_FAILED)
		return NULL;
	for (uint64_t done = 0; done < length; done += room) {
		uint64_t at = (offset + done) % WINDOW_BYTES;
		char *window = atomic_load(&peer->window[(offset + done) / WINDOW_BYTES]);

		room = WINDOW_BYTES - at < length - done ? WINDOW_BYTES - at : length - done;
		if (!map_again(window + at, map + done, room)) {
			munmap(map, length);
			return NULL;
		}
	}
	madvise(map, length, MADV_DONTFORK);
	return map + head;
}

void vb_arena_unmap_piece(void *mapping, uint64_t length)
{
	uint64_t start = (uintptr_t)mapping;
	uint64_t head = widen(&start, &length);

	munmap((char *)mapping - head, length);
}

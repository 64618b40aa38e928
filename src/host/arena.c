/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The arena of this process: its file, its range of addresses, and which pieces use which pages.
 *
 * The file is made with the node, because peers get its descriptor at first contact. The addresses
 * are reserved when they are first needed. Memory between the pieces in use is not accessible.
 */
#include "host/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/reason.h"
#include "base/sys.h"
#include "host/control.h"
#include "host/descriptor.h"
#include "host/mapped.h"
#include "host/private.h"
#include "host/shared.h"

/* Less where addresses are short (RLIMIT_AS). */
#define LARGEST      (64ull << 30)
#define SMALLEST     (128ull << 20)
/* Smaller pieces are allocated without checking the memory that the system has. */
#define CYCLE        (256ull << 20)
#define WORTH_ASKING (16ull << 20)

/*
 * A piece in use, in the order of offsets. Links change by single stores, so that a child that is
 * forked meanwhile can walk the list.
 */
struct vb_extent {
	struct vb_extent *next;
	uint64_t offset;
	uint64_t bytes;
};

static void publish(struct vb_node *node)
{
	struct vb_arena *arena = &node->arena;

	__atomic_store_n(&node->keyring->arena_bytes, arena->usable, __ATOMIC_RELAXED);
	__atomic_store_n(&node->keyring->arena_base, (uintptr_t)arena->base, __ATOMIC_RELEASE);
}

/*
 * The program's large blocks lie in a range that peers are to map (preload/mapped): that range is
 * the arena, and all of the blocks' part counts as used. False: there is no such range.
 */
static bool adopt(struct vb_node *node)
{
	struct vb_arena *arena = &node->arena;
	struct vb_mapped mapped;
	int fd;

	if (!verbatim_mapped_range || !verbatim_mapped_range(&mapped))
		return false;
	fd = vb_descriptor_adopt(fcntl(mapped.fd, F_DUPFD_CLOEXEC, 0));
	if (fd < 0)
		return false;
	arena->fd = fd;
	arena->size = arena->usable = mapped.size;
	arena->base = mapped.base;
	arena->holds = mapped.holds;
	arena->floor = mapped.blocks;
	arena->top = (mapped.blocks + VB_ARENA_WINDOW - 1) / VB_ARENA_WINDOW * VB_ARENA_WINDOW;
	__atomic_store_n(&node->keyring->arena_top, arena->top, __ATOMIC_RELEASE);
	publish(node);
	return true;
}

int vb_arena_create(struct vb_node *node)
{
	struct vb_arena *arena = &node->arena;

	pthread_mutex_init(&arena->lock, NULL);
	pthread_mutex_init(&arena->slab_lock, NULL);
	arena->fd = -1;
	if (adopt(node))
		return 0;
	for (uint64_t size = LARGEST; size >= SMALLEST; size /= 2) {
		int err = vb_shared_create_file("verbatim-memory", size, &arena->fd);

		arena->size = size;
		if (err != -EFBIG)
			return err;
	}
	return -EFBIG;
}

/* The caller holds the lock. */
static int reserve(struct vb_node *node)
{
	struct vb_arena *arena = &node->arena;
	void *map = MAP_FAILED;

	if (arena->base)
		return 0;
	for (uint64_t size = arena->size; size >= SMALLEST && map == MAP_FAILED; size /= 2) {
		map = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			   0);
		arena->usable = size;
	}
	if (map == MAP_FAILED)
		return -ENOMEM;
	arena->base = map;
	publish(node);
	return 0;
}

/*
 * Where the piece would lie between `e` and the next piece, not below `floor`. UINT64_MAX: it does
 * not fit.
 */
static uint64_t place_behind(const struct vb_arena *arena, const struct vb_extent *e,
			     uint64_t floor, uint64_t bytes)
{
	uint64_t start = e ? e->offset + e->bytes : 0;
	const struct vb_extent *next = e ? e->next : arena->extents;
	uint64_t end = next ? next->offset : arena->usable;

	if (start < floor)
		start = floor;
	return start <= end && end - start >= bytes ? start : UINT64_MAX;
}

/* Puts the piece into the first gap, from `floor` on, that has room for it. */
static bool place_from(struct vb_arena *arena, struct vb_extent *before, uint64_t floor,
		       struct vb_extent *piece)
{
	uint64_t at = place_behind(arena, before, floor, piece->bytes);

	while (at == UINT64_MAX) {
		before = before ? before->next : arena->extents;
		if (!before)
			return false;
		at = place_behind(arena, before, floor, piece->bytes);
	}
	struct vb_extent **link = before ? &before->next : &arena->extents;

	piece->offset = at;
	piece->next = *link;
	__atomic_store_n(link, piece, __ATOMIC_RELEASE);
	arena->latest = piece;
	arena->cursor = at + piece->bytes;
	return true;
}

/*
 * The caller holds the lock. A place that was freed rests: a process that still has a view of it
 * and has not noticed yet writes into no other memory (memory/dm.c). After CYCLE bytes the search
 * begins again at the bottom, so that peers map few windows.
 */
static int place(struct vb_arena *arena, struct vb_extent *piece)
{
	uint64_t from = arena->cursor > arena->floor ? arena->cursor : arena->floor;

	if (from - arena->floor < CYCLE && place_from(arena, arena->latest, from, piece))
		return 0;
	return place_from(arena, NULL, arena->floor, piece) ? 0 : -ENOMEM;
}

/* The caller holds the lock. NULL: no such piece. */
static struct vb_extent *unplace(struct vb_arena *arena, uint64_t offset, uint64_t bytes)
{
	struct vb_extent *before = NULL, *e = arena->extents;

	while (e && e->offset < offset) {
		before = e;
		e = e->next;
	}
	if (!e || e->offset != offset || e->bytes != bytes)
		return NULL;
	__atomic_store_n(before ? &before->next : &arena->extents, e->next, __ATOMIC_RELEASE);
	if (arena->latest == e)
		arena->latest = before;
	return e;
}

static uint64_t whole_pages(uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

/* MemAvailable of proc_meminfo(5). Unknown counts as plenty. */
static uint64_t memory_available(void)
{
	FILE *f = vb_sys_fopen("/proc/meminfo");
	uint64_t kib = UINT64_MAX >> 10;
	char line[128];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
			break;
	}
	if (f)
		fclose(f);
	return kib << 10;
}

/*
 * The pages are made present before a process touches them: a peer that found a page missing would
 * be killed for the owner's lack of memory. The kernel does not refuse pages that it does not have:
 * it fills all memory, then kills processes, none of which seems to hold that memory.
 */
static int populate(int fd, uint64_t offset, uint64_t bytes)
{
	int err;

	if (bytes >= WORTH_ASKING && bytes > memory_available())
		return -ENOMEM;
	do {
		err = vb_sys_fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes) ? errno
											     : 0;
	} while (err == EINTR);
	return -err;
}

static int map_piece(struct vb_arena *arena, const struct vb_extent *e, int flags)
{
	void *map = mmap(arena->base + e->offset, e->bytes, PROT_READ | PROT_WRITE,
			 flags | MAP_FIXED, arena->fd, (off_t)e->offset);

	return map == MAP_FAILED ? -errno : 0;
}

static void give_back(struct vb_arena *arena, const struct vb_extent *e)
{
	(void)mmap(arena->base + e->offset, e->bytes, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	if (vb_descriptor_ours(arena->fd))
		vb_sys_fallocate(arena->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				 (off_t)e->offset, (off_t)e->bytes);
}

/*
 * Peers keep no descriptor of the arena, and have mapped what was in use when they got it. They get
 * the descriptor again before the program can tell a peer of the new memory.
 */
static void show(struct vb_node *node, uint64_t end)
{
	struct vb_control msg = {.type = VB_CONTROL_MORE};
	uint64_t top = (end + VB_ARENA_WINDOW - 1) / VB_ARENA_WINDOW * VB_ARENA_WINDOW;

	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	if (top > node->arena.top) {
		node->arena.top = top;
		__atomic_store_n(&node->keyring->arena_top, top, __ATOMIC_RELEASE);
		for (struct vb_peer *p = node->peers; p; p = p->next) {
			struct vb_connection *conn = p->has_arena ? vb_connection_of(node, p)
								  : NULL;

			if (conn && vb_give_still(conn))
				vb_connection_send(node, conn, &msg, &node->arena.fd, 1, false);
		}
	}
	vb_mutex_release(&node->lock);
}

static int claim(struct vb_node *node, struct vb_extent *piece)
{
	int err = vb_descriptor_ours(node->arena.fd) ? 0 : -EBADF;

	vb_mutex_take(&node->arena.lock, VB_ORDER_ARENA);
	if (!err)
		err = reserve(node);
	if (!err)
		err = place(&node->arena, piece);
	vb_mutex_release(&node->arena.lock);
	return err;
}

static void unclaim(struct vb_arena *arena, struct vb_extent *piece)
{
	vb_mutex_take(&arena->lock, VB_ORDER_ARENA);
	struct vb_extent *e = unplace(arena, piece->offset, piece->bytes);

	vb_mutex_release(&arena->lock);
	free(e);
}

int vb_arena_alloc(struct vb_node *node, size_t bytes, void **addr)
{
	struct vb_arena *arena = &node->arena;
	struct vb_extent *piece = bytes && bytes <= LARGEST ? calloc(1, sizeof(*piece)) : NULL;
	int err = -ENOMEM;

	if (piece) {
		piece->bytes = whole_pages(bytes);
		err = claim(node, piece);
		if (err) {
			free(piece);
			piece = NULL;
		}
	}
	if (piece) {
		err = populate(arena->fd, piece->offset, piece->bytes);
		if (!err)
			err = map_piece(arena, piece, MAP_SHARED);
		if (err) {
			give_back(arena, piece);
			unclaim(arena, piece);
		}
	}
	if (err)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY,
				 "%zu bytes of memory that peers can map: %s", bytes,
				 strerror(-err));
	show(node, piece->offset + piece->bytes);
	*addr = arena->base + piece->offset;
	return 0;
}

void vb_arena_free(struct vb_node *node, void *addr, size_t bytes)
{
	struct vb_arena *arena = &node->arena;
	struct vb_extent piece = {
		.offset = (uint64_t)((char *)addr - arena->base),
		.bytes = whole_pages(bytes),
	};

	/*
	 * A piece that is out of the list may be allocated again at once, so it is emptied first.
	 */
	give_back(arena, &piece);
	unclaim(arena, &piece);
}

int vb_arena_present(struct vb_node *node, const void *addr, size_t bytes)
{
	struct vb_arena *arena = &node->arena;
	uintptr_t base = (uintptr_t)arena->base, start = (uintptr_t)addr, end = start + bytes;
	uint64_t page;
	int err = 0;

	if (!arena->floor || !bytes || start >= base + arena->floor || end <= base)
		return 0;
	if (!arena->holds(addr, bytes))
		return vb_refuse(
			EOPNOTSUPP, VB_REASON_UNSUPPORTED,
			"mr: %p+%zu: the program has mapped something else into a block of its mapped memory",
			addr, bytes);
	page = (uint64_t)sysconf(_SC_PAGESIZE);
	start = (start - base) / page * page;
	if (vb_descriptor_ours(arena->fd))
		err = populate(arena->fd, start, whole_pages(end - base) - start);
	if (err)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "mr: %zu bytes of mapped memory: %s",
				 bytes, strerror(-err));
	return 0;
}

int vb_arena_file(struct vb_node *node, const void *addr, uint64_t *offset)
{
	*offset = (uint64_t)((const char *)addr - node->arena.base);
	return vb_descriptor_ours(node->arena.fd) ? node->arena.fd : -1;
}

void vb_arena_destroy(struct vb_node *node)
{
	struct vb_arena *arena = &node->arena;

	while (arena->extents) {
		struct vb_extent *e = arena->extents;

		arena->extents = e->next;
		free(e);
	}
	free(arena->slab);
	if (arena->base && !arena->floor)
		munmap(arena->base, arena->usable);
	vb_descriptor_close(arena->fd);
	pthread_mutex_destroy(&arena->slab_lock);
	pthread_mutex_destroy(&arena->lock);
}

/*
 * In the child the program's memory stays, as all other memory does, but what the child writes is
 * its own. No lock is taken: there is one thread.
 */
void vb_arena_forked(struct vb_node *node)
{
	struct vb_arena *arena = &node->arena;

	if (!vb_descriptor_ours(arena->fd))
		return;
	for (struct vb_extent *e = __atomic_load_n(&arena->extents, __ATOMIC_ACQUIRE); e;
	     e = __atomic_load_n(&e->next, __ATOMIC_ACQUIRE))
		map_piece(arena, e, MAP_PRIVATE);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The range, its file, and which of its pages are in use. */
#include "range.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "extents.h"
#include "fork.h"
#include "host/mapped.h"
#include "pages.h"

/* Of the file, three quarters are for blocks; libibverbs places its own pieces behind them. */
#define LARGEST  (64ull << 30)
#define SMALLEST (1ull << 30)
/* Of the range: no block has a greater alignment. */
#define ALIGNED  (2ull << 20)

size_t page_bytes = 4096;

static struct {
	pthread_mutex_t lock;
	pthread_once_t once;
	bool ready;
	bool child; /* forked: blocks are ordinary memory, and there are no new ones */
	int fd;
	char *base;
	uint64_t size;   /* of the file and the range */
	uint64_t blocks; /* bytes from the base on that blocks may have */
	uint64_t most;   /* no block is longer: the machine has no more memory */
	uint64_t cursor; /* the page behind the latest block: what was freed rests */
	/*
	 * `lost` pages are the program's other mappings. Pages in neither set are of blocks; those `kept` are not for
	 * children. `wanted` has, at a block's
	 * first page, how many bytes malloc() was asked for.
	 */
	struct extents free, lost, kept;
	uint64_t *wanted;
} range = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT, .fd = -1};

/*
 * Limits that count private memory only, or that would be met by the range itself: the program's
 * memory stays ordinary.
 */
static bool limits_allow(void)
{
	struct rlimit l;
	char mode = '0';
	int fd;

	if (getrlimit(RLIMIT_AS, &l) || l.rlim_cur != RLIM_INFINITY || getrlimit(RLIMIT_DATA, &l) ||
	    l.rlim_cur != RLIM_INFINITY || getrlimit(RLIMIT_FSIZE, &l) ||
	    l.rlim_cur != RLIM_INFINITY)
		return false;
	/* Where memory is not overcommitted, malloc() fails in time; a file's pages would not. */
	fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (read(fd, &mode, 1) != 1)
			mode = '0';
		close(fd);
	}
	return mode != '2';
}

static bool make_file(void)
{
	int fd = memfd_create("verbatim-mapped", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	/* Out of the way of programs that expect low numbers. */
	int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 500);

	if (high >= 0) {
		close(fd);
		fd = high;
	}
	if (fd < 0)
		return false;
	if (ftruncate(fd, (off_t)range.size) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		close(fd);
		return false;
	}
	range.fd = fd;
	return true;
}

static bool reserve(void)
{
	void *map = MAP_FAILED;

	for (range.size = LARGEST; range.size >= SMALLEST; range.size /= 2) {
		map = pages_map(NULL, range.size + ALIGNED, PROT_NONE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (map != MAP_FAILED)
			break;
	}
	if (map == MAP_FAILED)
		return false;
	range.base = (char *)(((uintptr_t)map + ALIGNED - 1) & ~(uintptr_t)(ALIGNED - 1));
	range.blocks = range.size / 4 * 3;
	return true;
}

static bool make_tables(void)
{
	uint64_t pages = range.blocks / page_bytes;
	void *map = pages_map(NULL, pages * sizeof(*range.wanted), PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (map == MAP_FAILED || !extents_ready(&range.free) || !extents_ready(&range.lost) ||
	    !extents_ready(&range.kept))
		return false;
	range.wanted = map;
	extents_add(&range.free, 0, pages);
	return true;
}

static void make(void)
{
	int err = errno;
	struct sysinfo info;

	page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	if (limits_allow() && !sysinfo(&info) && reserve() && make_file() && make_tables()) {
		range.most = ((uint64_t)info.totalram + info.totalswap) * info.mem_unit;
		fork_prepare_for();
		__atomic_store_n(&range.ready, true, __ATOMIC_RELEASE);
	}
	errno = err;
}

static bool is_ready(void)
{
	return __atomic_load_n(&range.ready, __ATOMIC_ACQUIRE);
}

static bool is_child(void)
{
	return __atomic_load_n(&range.child, __ATOMIC_RELAXED);
}

bool range_ready(void)
{
	if (!is_ready())
		pthread_once(&range.once, make);
	return is_ready() && !is_child();
}

bool range_has(const void *addr)
{
	return is_ready() && (uint64_t)((const char *)addr - range.base) < range.blocks;
}

bool range_touches(const void *addr, size_t bytes)
{
	uintptr_t at = (uintptr_t)addr, base = (uintptr_t)range.base;

	return is_ready() && !is_child() && bytes && at < base + range.blocks && at + bytes > base;
}

static uint64_t page_of(const void *addr)
{
	return (uint64_t)((const char *)addr - range.base) / page_bytes;
}

static bool map_pages(uint64_t page, uint64_t pages, int prot)
{
	uint64_t at = page * page_bytes;

	/* Reserved nothing: as private memory, it is had when it is touched. */
	return pages_map(range.base + at, pages * page_bytes, prot,
			 MAP_SHARED | MAP_FIXED | MAP_NORESERVE, range.fd, (off_t)at) != MAP_FAILED;
}

static void unmap_pages(uint64_t page, uint64_t pages)
{
	uint64_t at = page * page_bytes, bytes = pages * page_bytes;

	(void)pages_map(range.base + at, bytes, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	(void)fallocate(range.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at,
			(off_t)bytes);
}

/* The lock is held. */
static bool take(uint64_t page, uint64_t pages, int prot)
{
	if (!extents_ready(&range.free) || !map_pages(page, pages, prot))
		return false;
	extents_remove(&range.free, page, pages);
	return true;
}

void *range_alloc(size_t bytes, size_t align, int prot)
{
	uint64_t pages, at, alignment = align > page_bytes ? align / page_bytes : 1;
	int err = errno;
	bool done;

	if (!bytes || bytes > LARGEST || !range_ready() || bytes > range.most)
		return NULL;
	if (align > ALIGNED)
		return NULL;
	pages = whole_pages(bytes) / page_bytes;
	pthread_mutex_lock(&range.lock);
	at = extents_find(&range.free, range.cursor, pages, alignment);
	done = at != UINT64_MAX && take(at, pages, prot);
	if (done)
		range.cursor = at + pages;
	pthread_mutex_unlock(&range.lock);
	errno = err;
	return done ? range.base + at * page_bytes : NULL;
}

/* The lock is held. The next run of pages, from `page` on and before `end`, that are of blocks or lost. */
static uint64_t used_run(uint64_t *page, uint64_t end)
{
	uint64_t pages = 0;

	if (*page < end && !extents_any(&range.free, *page, end - *page))
		return end - *page;
	while (*page < end && extents_any(&range.free, *page, 1))
		(*page)++;
	while (*page + pages < end && !extents_any(&range.free, *page + pages, 1))
		pages++;
	return pages;
}

/*
 * The lock is held. Takes those of the pages that are in the set out of it; page by page only where
 * there are some.
 */
static void forget(struct extents *set, uint64_t page, uint64_t pages)
{
	if (!extents_any(set, page, pages))
		return;
	for (uint64_t i = 0; i < pages; i++) {
		if (extents_any(set, page + i, 1) && extents_ready(set))
			extents_remove(set, page + i, 1);
	}
}

void range_free(void *addr, size_t bytes)
{
	uint64_t page = page_of(addr), end = page + whole_pages(bytes) / page_bytes, pages;
	int err = errno;

	if (is_child()) {
		(void)pages_unmap(addr, whole_pages(bytes));
		return;
	}
	pthread_mutex_lock(&range.lock);
	for (; (pages = used_run(&page, end)) > 0; page += pages) {
		range.wanted[page] = 0;
		unmap_pages(page, pages);
		forget(&range.lost, page, pages);
		forget(&range.kept, page, pages);
		if (extents_ready(&range.free))
			extents_add(&range.free, page, pages);
	}
	pthread_mutex_unlock(&range.lock);
	errno = err;
}

bool range_extend(void *addr, size_t bytes, size_t more, int prot)
{
	uint64_t page = page_of(addr) + bytes / page_bytes, pages = more / page_bytes;
	int err = errno;
	bool done;

	pthread_mutex_lock(&range.lock);
	done = extents_all(&range.free, page, pages) && take(page, pages, prot);
	if (done && range.cursor < page + pages)
		range.cursor = page + pages;
	pthread_mutex_unlock(&range.lock);
	errno = err;
	return done;
}

/* The lock is held. */
static bool is_held(uint64_t page, uint64_t pages)
{
	return (page + pages) * page_bytes <= range.blocks &&
	       !extents_any(&range.free, page, pages) && !extents_any(&range.lost, page, pages);
}

int range_zero(void *addr, size_t bytes, int prot)
{
	uint64_t page = page_of(addr), pages = whole_pages(bytes) / page_bytes;
	int err = 0;

	pthread_mutex_lock(&range.lock);
	if (!is_held(page, pages))
		err = ENOMEM;
	else if (fallocate(range.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			   (off_t)(page * page_bytes), (off_t)(pages * page_bytes)))
		err = errno;
	else if (prot >= 0 && !map_pages(page, pages, prot))
		err = errno;
	pthread_mutex_unlock(&range.lock);
	return err;
}

bool range_lose(void *addr, size_t bytes)
{
	uint64_t page = page_of(addr), pages = whole_pages(bytes) / page_bytes;
	bool done = true;

	pthread_mutex_lock(&range.lock);
	for (uint64_t i = page; i < page + pages && done; i++) {
		if (extents_any(&range.lost, i, 1))
			continue;
		done = extents_ready(&range.free) && extents_ready(&range.lost);
		if (done && extents_any(&range.free, i, 1))
			extents_remove(&range.free, i, 1);
		if (done)
			extents_add(&range.lost, i, 1);
	}
	pthread_mutex_unlock(&range.lock);
	return done;
}

/* The kernel leaves such pages out of a child, and parts the mapping where they begin and end. */
int range_keep(void *addr, size_t bytes, bool from_children)
{
	uint64_t page = page_of(addr), pages = whole_pages(bytes) / page_bytes;
	int err = 0;

	pthread_mutex_lock(&range.lock);
	if (!is_held(page, pages) || !extents_ready(&range.kept))
		err = ENOMEM;
	else if (pages_advise(addr, pages * page_bytes,
			      from_children ? MADV_DONTFORK : MADV_DOFORK))
		err = errno;
	if (!err)
		forget(&range.kept, page, pages);
	if (!err && from_children)
		extents_add(&range.kept, page, pages);
	pthread_mutex_unlock(&range.lock);
	return err;
}

bool range_is_kept(const void *addr)
{
	return extents_any(&range.kept, page_of(addr), 1);
}

bool range_holds(const void *addr, size_t bytes)
{
	uint64_t page, pages;
	bool holds;

	if (is_child() || !range_has(addr) || !bytes)
		return false;
	page = page_of(addr);
	pages = ((uint64_t)((const char *)addr - range.base) + bytes - 1) / page_bytes - page + 1;
	pthread_mutex_lock(&range.lock);
	holds = is_held(page, pages);
	pthread_mutex_unlock(&range.lock);
	return holds;
}

bool range_has_hole(const void *addr, size_t bytes)
{
	bool has;

	pthread_mutex_lock(&range.lock);
	has = extents_any(&range.free, page_of(addr), whole_pages(bytes) / page_bytes);
	pthread_mutex_unlock(&range.lock);
	return has;
}

size_t range_size(const void *addr)
{
	return __atomic_load_n(&range.wanted[page_of(addr)], __ATOMIC_RELAXED);
}

void range_size_set(void *addr, size_t bytes)
{
	__atomic_store_n(&range.wanted[page_of(addr)], bytes, __ATOMIC_RELAXED);
}

bool range_lock(struct range_view *view)
{
	if (!is_ready() || is_child())
		return false;
	pthread_mutex_lock(&range.lock);
	*view = (struct range_view){range.base, range.blocks, range.fd};
	return true;
}

void range_unlock(void)
{
	pthread_mutex_unlock(&range.lock);
}

/* The child's memory is ordinary from now on, and what it frees is not given out again. */
void range_forked(void)
{
	__atomic_store_n(&range.child, true, __ATOMIC_RELAXED);
	(void)close(range.fd);
}

ssize_t range_read(void *to, const void *addr, size_t bytes)
{
	return pread(range.fd, to, bytes, (off_t)((const char *)addr - range.base));
}

bool verbatim_mapped_range(struct vb_mapped *mapped)
{
	if (!range_ready())
		return false;
	*mapped = (struct vb_mapped){range.fd, range.size, range.blocks, range.base, range_holds};
	return true;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * mmap(2) and the calls that change what it gave. Private anonymous memory that can be read or written, at an address
 * that the kernel may choose, is a block of the range. mlock(2) and the like need nothing: a block is a mapping.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "caller.h"
#include "mmap.h"
#include "pages.h"
#include "range.h"

#define EXPORT      __attribute__((visibility("default")))

#define PLAIN_FLAGS (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_POPULATE)
#define ANY_FIXED   (MAP_FIXED | MAP_FIXED_NOREPLACE)

static void *failed(int err)
{
	errno = err;
	return MAP_FAILED;
}

static bool is_plain(int prot, int flags)
{
	return (flags & (MAP_PRIVATE | MAP_ANONYMOUS)) == (MAP_PRIVATE | MAP_ANONYMOUS) && prot &&
	       !(prot & ~(PROT_READ | PROT_WRITE)) && !(flags & ~(PLAIN_FLAGS | ANY_FIXED));
}

/* The part of a range of addresses that lies in the range of blocks. */
struct part {
	char *at;
	size_t bytes;
};

static struct part part_inside(void *addr, size_t bytes)
{
	struct part p = {addr, whole_pages(bytes)};

	while (p.bytes && !range_has(p.at)) {
		p.at += page_bytes;
		p.bytes -= page_bytes;
	}
	while (p.bytes && !range_has(p.at + p.bytes - 1))
		p.bytes -= page_bytes;
	return p;
}

/* At an address in the range. */
static void *map_there(void *addr, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	struct part p = part_inside(addr, bytes);
	int err;

	if (flags & MAP_FIXED_NOREPLACE)
		return failed(EEXIST);
	if ((uintptr_t)addr % page_bytes)
		return failed(EINVAL);
	if (is_plain(prot, flags) && p.at == addr && p.bytes == whole_pages(bytes) &&
	    range_holds(addr, p.bytes)) {
		err = range_zero(addr, p.bytes, prot);
		return err ? failed(err) : addr;
	}
	if (!range_lose(p.at, p.bytes))
		return failed(ENOMEM);
	return pages_map(addr, bytes, prot, flags, fd, offset);
}

void *mmap_any(void *addr, size_t bytes, int prot, int flags, int fd, off_t offset,
	       const void *caller)
{
	void *block = NULL;

	if (flags & ANY_FIXED && range_touches(addr, bytes))
		return map_there(addr, bytes, prot, flags, fd, offset);
	if (!addr && is_plain(prot, flags) && !(flags & ANY_FIXED) && !caller_is_library(caller))
		block = range_alloc(bytes, 0, prot);
	if (!block)
		return pages_map(addr, bytes, prot, flags, fd, offset);
	if (flags & MAP_POPULATE)
		(void)pages_advise(block, whole_pages(bytes), MADV_POPULATE_WRITE);
	return block;
}

int munmap_any(void *addr, size_t bytes)
{
	struct part p;
	char *end;

	if (!range_touches(addr, bytes) || (uintptr_t)addr % page_bytes)
		return pages_unmap(addr, bytes);
	p = part_inside(addr, bytes);
	end = (char *)addr + whole_pages(bytes);
	if (p.at > (char *)addr)
		(void)pages_unmap(addr, (size_t)(p.at - (char *)addr));
	if (end > p.at + p.bytes)
		(void)pages_unmap(p.at + p.bytes, (size_t)(end - (p.at + p.bytes)));
	range_free(p.at, p.bytes);
	return 0;
}

/* Copies blocks whatever their protection; pages that the program mapped otherwise must be readable. */
static bool block_copy(char *to, const char *from, size_t bytes)
{
	if (!range_holds(from, bytes)) {
		memcpy(to, from, bytes);
		return true;
	}
	while (bytes) {
		ssize_t n = range_read(to, from, bytes);

		if (n <= 0)
			return false;
		to += n;
		from += n;
		bytes -= (size_t)n;
	}
	return true;
}

/* A block moves by a copy: its pages belong to their place in the file. */
static void *block_move(void *old, size_t had, size_t bytes, int flags, void *fixed)
{
	int where = flags & MREMAP_FIXED ? MAP_FIXED : 0;
	size_t kept = had < bytes ? had : bytes;
	void *to = mmap_any(where ? fixed : NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | where, -1, 0, NULL);

	if (to == MAP_FAILED)
		return to;
	if (!block_copy(to, old, kept)) {
		(void)munmap_any(to, bytes);
		return failed(ENOMEM);
	}
	if (flags & MREMAP_DONTUNMAP)
		(void)range_zero(old, had, -1);
	else
		(void)munmap_any(old, had);
	return to;
}

static void *block_remap(void *old, size_t had, size_t bytes, int flags, void *fixed)
{
	if ((uintptr_t)old % page_bytes || !bytes || !had ||
	    flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP) ||
	    (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP) && !(flags & MREMAP_MAYMOVE)))
		return failed(EINVAL);
	had = whole_pages(had);
	bytes = whole_pages(bytes);
	if (!(flags & (MREMAP_FIXED | MREMAP_DONTUNMAP))) {
		if (bytes < had)
			range_free((char *)old + bytes, had - bytes);
		if (bytes <= had || range_extend(old, had, bytes - had, PROT_READ | PROT_WRITE))
			return old;
		if (!(flags & MREMAP_MAYMOVE))
			return failed(ENOMEM);
	}
	return block_move(old, had, bytes, flags, fixed);
}

void *mremap_any(void *old, size_t had, size_t bytes, int flags, void *fixed)
{
	if (range_has(old) && range_ready())
		return block_remap(old, had, bytes, flags, fixed);
	if (flags & MREMAP_FIXED && range_touches(fixed, bytes)) {
		struct part p = part_inside(fixed, bytes);

		if (!range_lose(p.at, p.bytes))
			return failed(ENOMEM);
	}
	return pages_remap(old, had, bytes, flags, fixed);
}

/* The pages become private memory for good. */
static int make_ordinary(char *addr, size_t bytes)
{
	void *copy = pages_anonymous(bytes);

	if (copy == MAP_FAILED)
		return -1;
	if (!block_copy(copy, addr, bytes) || !range_lose(addr, bytes) ||
	    pages_move(copy, bytes, addr)) {
		(void)pages_unmap(copy, bytes);
		errno = ENOMEM;
		return -1;
	}
	return 0;
}

static int failed_as(int err)
{
	if (!err)
		return 0;
	errno = err;
	return -1;
}

/* Pages that become zeros. Those that the program mapped otherwise are the kernel's matter. */
static int forget(char *addr, size_t bytes, int advice)
{
	if (range_holds(addr, bytes))
		return failed_as(range_zero(addr, bytes, -1));
	for (size_t at = 0; at < bytes; at += page_bytes) {
		if (range_holds(addr + at, page_bytes))
			(void)range_zero(addr + at, page_bytes, -1);
		else if (pages_advise(addr + at, page_bytes, advice))
			return -1;
	}
	return 0;
}

/* Where nothing is mapped, as far as the program knows, the range has memory without rights. */
static bool hole(void *addr, size_t bytes)
{
	struct part p = part_inside(addr, bytes);

	return p.bytes && range_has_hole(p.at, p.bytes);
}

int mprotect_any(void *addr, size_t bytes, int prot)
{
	if (range_touches(addr, bytes) && hole(addr, bytes))
		return failed_as(ENOMEM);
	return pages_protect(addr, bytes, prot);
}

int madvise_any(void *addr, size_t bytes, int advice)
{
	if (!range_touches(addr, bytes) || (uintptr_t)addr % page_bytes)
		return pages_advise(addr, bytes, advice);
	bytes = whole_pages(bytes);
	if (hole(addr, bytes))
		return failed_as(ENOMEM);
	switch (advice) {
	case MADV_DONTNEED:
	case MADV_FREE: /* the kernel may take them at once */
		return forget(addr, bytes, advice);
	case MADV_REMOVE: /* not for private memory */
		errno = EINVAL;
		return -1;
	case MADV_DONTFORK:
	case MADV_DOFORK:
		if (!range_holds(addr, bytes))
			break;
		return failed_as(range_keep(addr, bytes, advice == MADV_DONTFORK));
	case MADV_WIPEONFORK:
	case MADV_KEEPONFORK:
		if (range_holds(addr, bytes) && make_ordinary(addr, bytes))
			return -1;
		break;
	default:
		break;
	}
	return pages_advise(addr, bytes, advice);
}

/* The functions that the program has. A program may put code of its own over their first instructions. */
EXPORT void *mmap(void *addr, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	return mmap_any(addr, bytes, prot, flags, fd, offset, __builtin_return_address(0));
}

EXPORT void *mmap64(void *addr, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	return mmap_any(addr, bytes, prot, flags, fd, offset, __builtin_return_address(0));
}

EXPORT int munmap(void *addr, size_t bytes)
{
	return munmap_any(addr, bytes);
}

EXPORT void *mremap(void *old, size_t had, size_t bytes, int flags, ...)
{
	void *fixed = NULL;
	va_list ap;

	if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) {
		va_start(ap, flags);
		fixed = va_arg(ap, void *);
		va_end(ap);
	}
	return mremap_any(old, had, bytes, flags, fixed);
}

EXPORT int mprotect(void *addr, size_t bytes, int prot)
{
	return mprotect_any(addr, bytes, prot);
}

EXPORT int madvise(void *addr, size_t bytes, int advice)
{
	return madvise_any(addr, bytes, advice);
}

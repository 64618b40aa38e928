/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Mapped ranges. The kernel is asked, because a trial write would change what other threads read.
 *
 * Kernels from 6.11 on answer for one address at a time (PROCMAP_QUERY on /proc/self/maps). The
 * file stays open then: opening it would cost several times the question, and programs register
 * hundreds of thousands of regions. On older kernels the text of that file is read, which costs
 * about a microsecond for each mapping of the process. When the answer is not near the beginning of
 * the text, the pages of a small range are asked instead (mapping_probe.c). The rest of the text is
 * read only for a large range and for one that the probe did not answer. Without /proc, msync(2) at
 * least tells whether the range is mapped.
 */
#include "memory/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/sys.h"
#include "host/descriptor.h"
#include "memory/mapping_probe.h"

/* linux/fs.h has this from 6.11 on. The headers of the build machine may be older. */
struct procmap_query {
	uint64_t size;
	uint64_t query_flags;
	uint64_t query_addr;
	uint64_t vma_start;
	uint64_t vma_end;
	uint64_t vma_flags;
	uint64_t vma_page_size;
	uint64_t vma_offset;
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
	uint32_t vma_name_size;
	uint32_t build_id_size;
	uint64_t vma_name_addr;
	uint64_t build_id_addr;
};

_Static_assert(sizeof(struct procmap_query) == 104, "the kernel's layout");

#define QUERY_IOCTL    _IOWR('f', 17, struct procmap_query)
#define QUERY_READABLE 0x01
#define QUERY_WRITABLE 0x02
#define QUERY_SHARED   0x08

#define TEXT_BEGINNING (32u * 1024u) /* holds some hundred mappings */

/* The range that is looked for: everything below `at` was found. */
struct wanted {
	uintptr_t at;
	uintptr_t last; /* address of the last byte */
	bool writable;
	bool done;
	bool shared; /* some of the mappings found are shared */
};

/* One mapping. */
struct piece {
	uintptr_t start, end;
	bool readable, writable, shared;
};

/* Judges the next mapping in order of addresses. False: stop, the answer is known. */
static bool consider(struct wanted *w, const struct piece *p)
{
	if (p->end <= w->at)
		return true;
	if (p->start > w->at || !p->readable || (w->writable && !p->writable))
		return false;
	w->shared |= p->shared;
	if (p->end > w->last) {
		w->done = true;
		return false;
	}
	w->at = p->end;
	return true;
}

/* Returns -ENOTTY on an older kernel. */
static int check_query(int fd, struct wanted *w)
{
	for (;;) {
		struct procmap_query q = {.size = sizeof(q), .query_addr = w->at};

		if (ioctl(fd, QUERY_IOCTL, &q))
			return errno == ENOENT ? 0 : -errno;
		struct piece p = {.start = q.vma_start,
				  .end = q.vma_end,
				  .readable = q.vma_flags & QUERY_READABLE,
				  .writable = q.vma_flags & QUERY_WRITABLE,
				  .shared = q.vma_flags & QUERY_SHARED};

		if (!consider(w, &p))
			return 0;
	}
}

/* Reads lines of which only the beginning matters: "7f00-7f10 rw-p ...". */
struct scanner {
	struct piece piece;
	int field; /* 0 start, 1 end, 2 to 5 characters of the rights, -1 rest of the line */
};

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* True at the end of a line. */
static bool scan_char(struct scanner *s, char c)
{
	int digit = hex_digit(c);

	if (c == '\n')
		return true;
	if (s->field == 0 && digit >= 0) {
		s->piece.start = s->piece.start << 4 | (uintptr_t)digit;
	} else if (s->field == 1 && digit >= 0) {
		s->piece.end = s->piece.end << 4 | (uintptr_t)digit;
	} else if (s->field == 2) {
		s->piece.readable = c == 'r';
		s->field = 3;
	} else if (s->field == 3) {
		s->piece.writable = c == 'w';
		s->field = 4;
	} else if (s->field == 5) {
		s->piece.shared = c == 's';
		s->field = -1;
	} else if (s->field >= 0) {
		s->field++;
	}
	return false;
}

/* Reads on, about `limit` bytes. True: `w` has the answer. */
static bool check_text(int fd, struct scanner *s, struct wanted *w, size_t limit)
{
	char buf[4096];
	size_t done = 0;

	while (done < limit) {
		ssize_t n = vb_sys_read(fd, buf, sizeof(buf));

		if (n <= 0)
			return true;
		for (ssize_t i = 0; i < n; i++) {
			if (!scan_char(s, buf[i]))
				continue;
			if (!consider(w, &s->piece))
				return true;
			memset(s, 0, sizeof(*s));
		}
		done += (size_t)n;
	}
	return false;
}

/* The first part of the range may have been found already. */
static void check_old_kernel(int fd, struct wanted *w)
{
	struct scanner s = {0};
	bool shared;

	if (check_text(fd, &s, w, TEXT_BEGINNING))
		return;
	w->done = vb_mapping_probe(w->at, w->last - w->at + 1, w->writable, &shared);
	if (w->done)
		w->shared |= shared;
	else
		check_text(fd, &s, w, SIZE_MAX);
}

static int answer(const struct wanted *w, uintptr_t *bad)
{
	*bad = w->at;
	return w->done ? 0 : -EFAULT;
}

int vb_mapping_check_text(int fd, uintptr_t addr, size_t length, bool writable, bool *shared,
			  uintptr_t *bad)
{
	struct wanted w = {.at = addr, .last = addr + length - 1, .writable = writable};
	struct scanner s = {0};

	check_text(fd, &s, &w, SIZE_MAX);
	*shared = w.shared;
	return answer(&w, bad);
}

static int check_msync(uintptr_t addr, size_t length, uintptr_t *bad)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = addr & ~(page - 1);

	*bad = addr;
	/* MS_ASYNC writes no page back; it only walks the mappings. */
	if (vb_sys_msync((void *)start, addr + length - start, MS_ASYNC) && errno == ENOMEM)
		return -EFAULT;
	return 0;
}

/* For the questions of all threads; -1: not open. */
static _Atomic int maps = -1;
/* The kernel takes no questions. */
static _Atomic bool only_text;

static int maps_open(void)
{
	return vb_sys_open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
}

/*
 * The file of all threads. The program may have closed it: then its number may be another file's by
 * now, and stays out of use.
 */
static int maps_shared(void)
{
	int fd = atomic_load_explicit(&maps, memory_order_acquire);
	int none = -1;

	if (fd >= 0)
		return vb_descriptor_still(fd) ? fd : -1;
	fd = vb_descriptor_adopt(maps_open());
	if (fd < 0 || atomic_compare_exchange_strong(&maps, &none, fd))
		return fd;
	vb_descriptor_close(fd); /* another thread was first */
	return none;
}

/* True: the kernel has answered. */
static bool asked(struct wanted *w)
{
	int fd = atomic_load_explicit(&only_text, memory_order_relaxed) ? -1 : maps_shared();
	int err = fd < 0 ? -EBADF : check_query(fd, w);

	if (err == -ENOTTY || err == -EINVAL)
		atomic_store_explicit(&only_text, true, memory_order_relaxed);
	return !err;
}

/* With a file of its own, of which the text can be read from the beginning. */
static void check_alone(struct wanted *w, uintptr_t addr, size_t length, uintptr_t *bad)
{
	int fd = maps_open();
	int err;

	if (fd < 0) {
		w->done = w->shared = !check_msync(addr, length, bad);
		return;
	}
	err = check_query(fd, w);
	if (err == -ENOTTY || err == -EINVAL)
		check_old_kernel(fd, w);
	else if (err)
		w->shared = w->done = !check_msync(addr, length, bad);
	vb_sys_close(fd);
}

int vb_mapping_check(uintptr_t addr, size_t length, bool writable, bool *shared, uintptr_t *bad)
{
	struct wanted w = {.at = addr, .last = addr + length - 1, .writable = writable};

	if (!asked(&w)) {
		w = (struct wanted){.at = addr, .last = addr + length - 1, .writable = writable};
		check_alone(&w, addr, length, bad);
	}
	*shared = w.shared;
	return answer(&w, bad);
}

/* The file tells of the parent's mappings. */
static void forked(void)
{
	vb_descriptor_close(atomic_exchange(&maps, -1));
}

VB_FORK_HOOK(.phase = VB_FORK_ROOMS, .child = forked);

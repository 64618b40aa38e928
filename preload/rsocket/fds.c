/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The table: one word for each number, in pages that stay. */
#include "fds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE_BITS = 10, PAGE_WORDS = 1 << PAGE_BITS, PAGES = 1024, KIND_SHIFT = 32 };

struct word {
	uint64_t what;   /* kind and number behind */
	uint32_t places; /* placeholders that stand for this number, when it is a socket */
	int attached;    /* a descriptor plus one */
};

static struct word *pages[PAGES];

static struct word *word_of(int fd, bool make)
{
	struct word *page, *fresh, *none = NULL;

	if (fd < 0 || fd >= PAGES * PAGE_WORDS)
		return NULL;
	page = __atomic_load_n(&pages[fd >> PAGE_BITS], __ATOMIC_ACQUIRE);
	if (!page && make) {
		fresh = calloc(PAGE_WORDS, sizeof(*fresh));
		if (!fresh)
			return NULL;
		if (!__atomic_compare_exchange_n(&pages[fd >> PAGE_BITS], &none, fresh, false,
						 __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
			free(fresh);
		page = __atomic_load_n(&pages[fd >> PAGE_BITS], __ATOMIC_ACQUIRE);
	}
	return page ? &page[fd & (PAGE_WORDS - 1)] : NULL;
}

static struct fd split(uint64_t what)
{
	return (struct fd){(enum fd_kind)(what >> KIND_SHIFT), (int)(uint32_t)what};
}

struct fd fd_get(int fd)
{
	const struct word *w = word_of(fd, false);

	return split(w ? __atomic_load_n(&w->what, __ATOMIC_ACQUIRE) : 0);
}

void fd_set_kind(int fd, enum fd_kind kind, int behind)
{
	struct word *w = word_of(fd, true);

	if (w)
		__atomic_store_n(&w->what, (uint64_t)kind << KIND_SHIFT | (uint32_t)behind,
				 __ATOMIC_RELEASE);
}

struct fd fd_take(int fd)
{
	struct word *w = word_of(fd, false);

	return split(w ? __atomic_exchange_n(&w->what, 0, __ATOMIC_ACQ_REL) : 0);
}

void fd_hold(int behind)
{
	struct word *w = word_of(behind, true);

	if (w)
		__atomic_add_fetch(&w->places, 1, __ATOMIC_RELAXED);
}

bool fd_release(int behind)
{
	struct word *w = word_of(behind, false);

	return !w || !__atomic_sub_fetch(&w->places, 1, __ATOMIC_ACQ_REL);
}

void fd_attach(int behind, int attached)
{
	struct word *w = word_of(behind, true);

	if (w)
		w->attached = attached + 1;
}

int fd_attached(int behind)
{
	const struct word *w = word_of(behind, false);

	return w ? w->attached - 1 : -1;
}

int fd_placeholder(bool cloexec)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | (cloexec ? O_CLOEXEC : 0),
			      0);

	if (fd >= 0 && !word_of(fd, true)) {
		syscall(SYS_close, fd);
		errno = EMFILE;
		return -1;
	}
	return fd;
}

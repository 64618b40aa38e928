/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory hidden from children: a list of ranges in order, without overlap, each with its count. */
#include "base/fork_range.h"
#include "base/lock.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/reason.h"
#include "base/sys.h"

struct range {
	uintptr_t start, end;
	uintptr_t page; /* page size of the mapping that the range lies in */
	uint32_t count;
	struct range *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *ranges;

static void fork_lock(void)
{
	vb_mutex_take(&lock, VB_ORDER_FORK_RANGES);
}

static void fork_parent(void)
{
	vb_mutex_release(&lock);
}

/* The child has none of the hidden ranges. */
static void fork_child(void)
{
	while (ranges) {
		struct range *r = ranges;

		ranges = r->next;
		free(r);
	}
	vb_mutex_release(&lock);
}

static void register_handlers(void)
{
	pthread_atfork(fork_lock, fork_parent, fork_child);
}

static void prepare(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_handlers);
}

/* The page size of the mapping at the address (proc(5), smaps); 0: not found. */
static uintptr_t mapping_page(uintptr_t addr)
{
	FILE *f = vb_sys_fopen("/proc/self/smaps");
	unsigned long start = 0, end = 0, kb = 0;
	char line[512];
	uintptr_t page = 0;

	if (!f)
		return 0;
	while (!page && fgets(line, sizeof(line), f)) {
		unsigned long a, b;

		if (sscanf(line, "%lx-%lx ", &a, &b) == 2) {
			start = a;
			end = b;
		} else if (addr >= start && addr < end &&
			   sscanf(line, "KernelPageSize: %lu kB", &kb) == 1) {
			page = kb * 1024u;
		}
	}
	fclose(f);
	return page;
}

static int advise(uintptr_t start, uintptr_t end, int advice)
{
	return madvise((void *)start, end - start, advice) ? -errno : 0;
}

static struct range *range_new(uintptr_t start, uintptr_t end, uintptr_t page, uint32_t count,
			       struct range *next)
{
	struct range *r = malloc(sizeof(*r));

	if (r)
		*r = (struct range){start, end, page, count, next};
	return r;
}

/* Splits the range that `at` lies in, so that a range begins at `at`. */
static int split(uintptr_t at)
{
	for (struct range *r = ranges; r; r = r->next) {
		if (at <= r->start || at >= r->end)
			continue;
		struct range *rest = range_new(at, r->end, r->page, r->count, r->next);

		if (!rest)
			return -ENOMEM;
		r->end = at;
		r->next = rest;
		break;
	}
	return 0;
}

/* Fills the gaps of [start, end) with ranges that count 0. */
static int fill_gaps(uintptr_t start, uintptr_t end, uintptr_t page)
{
	struct range **p = &ranges;

	while (start < end) {
		while (*p && (*p)->end <= start)
			p = &(*p)->next;
		uintptr_t to = *p && (*p)->start < end ? (*p)->start : end;

		if (to > start) {
			struct range *r = range_new(start, to, page, 0, *p);

			if (!r)
				return -ENOMEM;
			*p = r;
		}
		start = *p ? (*p)->end : end;
	}
	return 0;
}

/* Removes the ranges that count 0, and joins neighbours with the same count. */
static void tidy(void)
{
	struct range **p = &ranges;

	while (*p) {
		struct range *r = *p, *n = r->next;

		if (!r->count) {
			*p = n;
			free(r);
		} else if (n && n->start == r->end && n->count == r->count && n->page == r->page) {
			r->end = n->end;
			r->next = n->next;
			free(n);
		} else {
			p = &r->next;
		}
	}
}

static void change_counts(uintptr_t start, uintptr_t end, int by)
{
	for (struct range *r = ranges; r; r = r->next) {
		if (r->start >= start && r->end <= end)
			r->count += (uint32_t)by;
	}
}

/*
 * The caller holds the lock. When the kernel refuses a part of the range, the part before it is
 * shown again.
 */
static int hide(uintptr_t start, uintptr_t end, uintptr_t page)
{
	int err = split(start);

	if (!err)
		err = split(end);
	if (!err)
		err = fill_gaps(start, end, page);
	if (!err)
		err = advise(start, end, MADV_DONTFORK);
	if (!err)
		change_counts(start, end, 1);
	for (struct range *r = err ? ranges : NULL; r; r = r->next) {
		if (!r->count)
			(void)advise(r->start, r->end, MADV_DOFORK);
	}
	tidy();
	return err;
}

static uintptr_t round_down(uintptr_t at, uintptr_t page)
{
	return at & ~(page - 1);
}

static uintptr_t round_up(uintptr_t at, uintptr_t page)
{
	return round_down(at + page - 1, page);
}

int vb_fork_range_hide(void *base, size_t size)
{
	uintptr_t start = (uintptr_t)base;
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	int err;

	if (!size)
		return 0;
	if (start + size - 1 < start)
		return vb_refuse(EINVAL, VB_REASON_ARG, "dontfork_range: %p+%zu wraps", base, size);
	prepare();
	vb_mutex_take(&lock, VB_ORDER_FORK_RANGES);
	err = hide(round_down(start, page), round_up(start + size, page), page);
	/* A mapping of huge pages accepts advice for whole huge pages only. */
	if (err == -EINVAL && mapping_page(start) > page) {
		page = mapping_page(start);
		err = hide(round_down(start, page), round_up(start + size, page), page);
	}
	vb_mutex_release(&lock);
	if (err)
		return vb_refuse(-err, err == -ENOMEM ? VB_REASON_UNMAPPED : VB_REASON_SYSTEM,
				 "dontfork_range: %p+%zu: %s", base, size, strerror(-err));
	return 0;
}

static const struct range *find(uintptr_t at)
{
	for (const struct range *r = ranges; r; r = r->next) {
		if (at >= r->start && at < r->end)
			return r;
	}
	return NULL;
}

/* The caller holds the lock. */
static int show(uintptr_t start, uintptr_t end)
{
	const struct range *r;
	int err;

	for (uintptr_t at = start; at < end; at = r->end) {
		r = find(at);
		if (!r)
			return -EINVAL;
	}
	err = split(start);
	if (!err)
		err = split(end);
	if (err)
		return err;
	change_counts(start, end, -1);
	/* Memory that was unmapped meanwhile needs no advice. */
	for (r = ranges; r; r = r->next) {
		if (!r->count)
			(void)advise(r->start, r->end, MADV_DOFORK);
	}
	tidy();
	return 0;
}

int vb_fork_range_show(void *base, size_t size)
{
	uintptr_t start = (uintptr_t)base;
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	const struct range *r;
	int err;

	if (!size)
		return 0;
	vb_mutex_take(&lock, VB_ORDER_FORK_RANGES);
	r = find(start);
	page = r ? r->page : page;
	err = r && start + size - 1 >= start
		      ? show(round_down(start, page), round_up(start + size, page))
		      : -EINVAL;
	vb_mutex_release(&lock);
	if (err)
		return vb_refuse(-err, err == -EINVAL ? VB_REASON_ARG : VB_REASON_NO_MEMORY,
				 "dofork_range: %p+%zu is not all hidden from children", base,
				 size);
	return 0;
}

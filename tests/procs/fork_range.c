/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: ibv_dontfork_range() keeps memory from forked children, ibv_dofork_range() gives it
 * back, and overlapping ranges count: a page is a child's again when every call that took it was
 * answered by one that gives it.
 *
 * usage: fork_range [huge]
 */
#include <infiniband/verbs.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/random.h"

/* Exported, but in no public header. */
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

enum { PAGES = 12 };

static unsigned char *memory;
static size_t page;

/* One bit for each page that a child has. */
static unsigned int seen_by_child(void)
{
	unsigned int seen = 0;
	int pipe_fd[2];
	pid_t child;

	CHECK_ZERO(pipe(pipe_fd));
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		for (unsigned int i = 0; i < PAGES; i++) {
			unsigned char vec[1];

			if (!mincore(memory + i * page, 1, vec))
				seen |= 1u << i;
		}
		_exit(write(pipe_fd[1], &seen, sizeof(seen)) != sizeof(seen));
	}
	CHECK_EQ(read(pipe_fd[0], &seen, sizeof(seen)), sizeof(seen));
	close(pipe_fd[0]);
	close(pipe_fd[1]);
	CHECK_EQ(waitpid(child, NULL, 0), child);
	return seen;
}

static void hide(int from, int to)
{
	CHECK_ZERO(ibv_dontfork_range(memory + (size_t)from * page, (size_t)(to - from) * page));
}

static void show(int from, int to)
{
	CHECK_ZERO(ibv_dofork_range(memory + (size_t)from * page, (size_t)(to - from) * page));
}

static unsigned int without(int from, int to)
{
	return ((1u << PAGES) - 1) & ~(((1u << to) - 1) & ~((1u << from) - 1));
}

static void simple(void)
{
	promise("a range is kept from children and given back");
	CHECK_EQ(seen_by_child(), without(0, 0));
	hide(3, 6);
	CHECK_EQ(seen_by_child(), without(3, 6));
	show(3, 6);
	CHECK_EQ(seen_by_child(), without(0, 0));
	/* Parts of pages are whole ones. */
	CHECK_ZERO(ibv_dontfork_range(memory + page + 5, 1));
	CHECK_EQ(seen_by_child(), without(1, 2));
	CHECK_ZERO(ibv_dofork_range(memory + page + 100, 8));
	CHECK_ZERO(ibv_dontfork_range(memory + 2 * page - 1, 2));
	CHECK_EQ(seen_by_child(), without(1, 3));
	CHECK_ZERO(ibv_dofork_range(memory + 2 * page - 1, 2));
	CHECK_EQ(seen_by_child(), without(0, 0));
}

static void overlapping(void)
{
	promise("overlapping ranges count");
	hide(1, 6);
	hide(4, 9);
	CHECK_EQ(seen_by_child(), without(1, 9));
	show(1, 6);
	CHECK_EQ(seen_by_child(), without(4, 9));
	show(4, 9);
	CHECK_EQ(seen_by_child(), without(0, 0));
	hide(0, 12);
	hide(5, 6);
	hide(5, 6);
	show(0, 12);
	CHECK_EQ(seen_by_child(), without(5, 6));
	show(5, 6);
	CHECK_EQ(seen_by_child(), without(5, 6));
	show(5, 6);
	CHECK_EQ(seen_by_child(), without(0, 0));
	/* Two that touch, given back as one; one, given back as two. */
	hide(2, 4);
	hide(4, 7);
	show(2, 7);
	CHECK_EQ(seen_by_child(), without(0, 0));
	hide(2, 7);
	show(5, 7);
	CHECK_EQ(seen_by_child(), without(2, 5));
	show(2, 5);
	CHECK_EQ(seen_by_child(), without(0, 0));
}

/* Every page, against a count of our own. */
static void at_random(void)
{
	uint64_t state = 20;
	int count[PAGES] = {0};

	promise("any sequence of ranges is counted page by page");
	for (int i = 0; i < 400; i++) {
		int from = (int)(random_next(&state) % PAGES);
		int to = from + 1 + (int)(random_next(&state) % (uint64_t)(PAGES - from));
		unsigned int want = 0;
		bool can_show = true;

		for (int p = from; p < to; p++)
			can_show = can_show && count[p];
		bool showing = random_next(&state) % 2;

		if (showing && !can_show) {
			CHECK_EQ(ibv_dofork_range(memory + (size_t)from * page,
						  (size_t)(to - from) * page),
				 EINVAL);
		} else {
			for (int p = from; p < to; p++)
				count[p] += showing ? -1 : 1;
			showing ? show(from, to) : hide(from, to);
		}
		for (int p = 0; p < PAGES; p++)
			want |= (count[p] ? 0u : 1u) << p;
		if (i % 8 == 0)
			CHECK_EQ(seen_by_child(), want);
	}
	for (int p = 0; p < PAGES; p++) {
		for (; count[p]; count[p]--)
			show(p, p + 1);
	}
	CHECK_EQ(seen_by_child(), without(0, 0));
}

static void refused(void)
{
	unsigned char *hole = mmap(NULL, 3 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	promise("what is not mapped or not hidden is refused, without effect");
	CHECK(hole != MAP_FAILED);
	CHECK_ZERO(munmap(hole + page, page));
	CHECK_EQ(ibv_dontfork_range(hole, 3 * page), ENOMEM);
	CHECK_EQ(ibv_dofork_range(hole, page), EINVAL);
	CHECK_EQ(ibv_dofork_range(memory, page), EINVAL);
	hide(2, 4);
	CHECK_EQ(ibv_dofork_range(memory + page, 3 * page), EINVAL);
	CHECK_EQ(seen_by_child(), without(2, 4));
	show(2, 4);
	CHECK_EQ(ibv_dofork_range(memory + 2 * page, 2 * page), EINVAL);
	CHECK_EQ(ibv_dontfork_range((void *)(UINTPTR_MAX - 10), 100), EINVAL);
	CHECK_EQ(ibv_dontfork_range((void *)(UINTPTR_MAX - 10), 5), EINVAL);
	CHECK_EQ(ibv_dofork_range((void *)(UINTPTR_MAX - 10), 100), EINVAL);
	CHECK_EQ(ibv_dontfork_range(NULL, page), ENOMEM);
	CHECK_ZERO(ibv_dontfork_range(memory, 0));
	CHECK_ZERO(ibv_dofork_range(memory, 0));
	munmap(hole, page);
	munmap(hole + 2 * page, page);
}

/* A child starts with what it has, and nothing counted. */
static void in_child(void)
{
	pid_t child;
	int status = -1;

	promise("a child counts its own memory");
	hide(0, 2);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		CHECK_EQ(ibv_dofork_range(memory, page), EINVAL);
		hide(5, 6);
		CHECK_EQ(seen_by_child(), without(0, 2) & without(5, 6));
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_ZERO(status);
	show(0, 2);
	CHECK_EQ(seen_by_child(), without(0, 0));
}

int main(int argc, char **argv)
{
	bool huge = argc > 1 && strcmp(argv[1], "huge") == 0;

	watchdog(60);
	page = huge ? (size_t)2 << 20 : (size_t)sysconf(_SC_PAGESIZE);
	memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | (huge ? MAP_HUGETLB : 0), -1, 0);
	if (memory == MAP_FAILED && huge)
		SKIP("no %d huge pages are free (vm.nr_hugepages)", PAGES);
	CHECK(memory != MAP_FAILED);
	CHECK_ZERO(ibv_fork_init());
	simple();
	overlapping();
	at_random();
	if (!huge)
		refused();
	in_child();
	return 0;
}

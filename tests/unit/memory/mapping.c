/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whether a range of addresses is mapped, found out in each of three ways: by asking the kernel
 * (PROCMAP_QUERY), from the pages, and from the text of /proc/PID/maps. With the argument "old-
 * kernel" the kernel acts as one before 6.11: a filter refuses PROCMAP_QUERY as an unknown ioctl.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "memory/mapping.h"
#include "memory/mapping_probe.h"
#include "support/filter.h"

#define PAGE 4096u

static int check_text(uintptr_t addr, size_t length, bool writable, bool *shared, uintptr_t *bad)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	int err = vb_mapping_check_text(fd, addr, length, writable, shared, bad);

	close(fd);
	return err;
}

static bool found_shared;

/* Both ways must agree. */
static int check(const void *at, size_t length, bool writable)
{
	uintptr_t bad = 0, bad_text = 0;
	bool shared = false, shared_text = false;
	int err = vb_mapping_check((uintptr_t)at, length, writable, &shared, &bad);

	assert_int_equal(check_text((uintptr_t)at, length, writable, &shared_text, &bad_text), err);
	if (err)
		assert_true(bad == bad_text);
	/*
	 * A page of a file that was not written is the file's, whatever the mapping: it counts as
	 * shared where the pages are asked.
	 */
	if (writable || shared_text)
		assert_int_equal(shared, shared_text);
	found_shared = shared;
	return err;
}

/* Eight pages: rw rw r- hole none rw rw hole. */
static char *make_pages(void)
{
	char *p = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	mprotect(p + 2 * PAGE, PAGE, PROT_READ);
	munmap(p + 3 * PAGE, PAGE);
	mprotect(p + 4 * PAGE, PAGE, PROT_NONE);
	munmap(p + 7 * PAGE, PAGE);
	return p;
}

static void rights(void **state)
{
	char *p = make_pages();

	(void)state;
	assert_int_equal(check(p, 2 * PAGE, true), 0);
	assert_int_equal(check(p + 1, 2 * PAGE - 1, true), 0);
	assert_int_equal(check(p + 1, 2 * PAGE, true),
			 -EFAULT); /* one byte into the read-only page */
	assert_int_equal(check(p, 3 * PAGE, false), 0);
	assert_int_equal(check(p + 2 * PAGE, 1, false), 0);
	assert_int_equal(check(p + 2 * PAGE, 1, true), -EFAULT);
	assert_int_equal(check(p + 4 * PAGE, 1, false), -EFAULT);
	munmap(p, 8 * PAGE);
}

static void holes(void **state)
{
	char *p = make_pages();
	uintptr_t bad;
	bool shared;

	(void)state;
	assert_int_equal(check(p, 3 * PAGE + 1, false), -EFAULT);
	assert_int_equal(check(p + 3 * PAGE, 1, false), -EFAULT);
	assert_int_equal(check(p + 6 * PAGE, PAGE + 1, false), -EFAULT);
	assert_int_equal(check(p + 7 * PAGE - 1, 1, true), 0);
	assert_int_equal(vb_mapping_check((uintptr_t)p, 8 * PAGE, false, &shared, &bad), -EFAULT);
	assert_true(bad == (uintptr_t)p + 3 * PAGE);
	assert_int_equal(check(NULL, 1, false), -EFAULT);
	assert_int_equal(check((void *)(UINTPTR_MAX - 10), 11, false), -EFAULT);
	munmap(p, 8 * PAGE);
}

static void ordinary_memory(void **state)
{
	static const char constant[] = "read only";
	int on_stack = 0;

	(void)state;
	assert_int_equal(check(&on_stack, sizeof(on_stack), true), 0);
	assert_int_equal(check(constant, sizeof(constant), false), 0);
	assert_int_equal(check(constant, sizeof(constant), true), -EFAULT);
}

/*
 * Lines as no kernel here writes them: long names, addresses of all lengths, an end without
 * newline.
 */
static void strange_text(void **state)
{
	static const char text[] =
		"1000-2000 rw-p 00000000 00:00 0 /a - b/(deleted) 1000-9000 rw-p\n"
		"2000-3000 r--s 0 0 0\n"
		"ffffffff00000000-ffffffff00001000 rwxp 0 0 0\n"
		"ffffffff00001000-ffffffff00002000 rw";
	int pipes[2];
	uintptr_t bad;

	(void)state;
	for (int i = 0; i < 5; i++) {
		static const struct {
			uintptr_t addr;
			size_t length;
			bool writable;
			int err;
			bool shared;
		} cases[] = {
			{0x1000, 0x1000, true, 0, false},        {0x1000, 0x2000, false, 0, true},
			{0x1fff, 2, true, -EFAULT, false},       {0x3000, 1, false, -EFAULT, false},
			{0xffffffff00000fff, 1, true, 0, false},
		};
		bool shared;

		assert_int_equal(pipe(pipes), 0);
		assert_int_equal(write(pipes[1], text, sizeof(text) - 1), sizeof(text) - 1);
		close(pipes[1]);
		assert_int_equal(vb_mapping_check_text(pipes[0], cases[i].addr, cases[i].length,
						       cases[i].writable, &shared, &bad),
				 cases[i].err);
		assert_int_equal(shared, cases[i].shared);
		close(pipes[0]);
	}
}

/* Whether other processes may have mapped the memory too. */
static void shared_mappings(void **state)
{
	char *p = make_pages();

	(void)state;
	assert_int_equal(check(p, 2 * PAGE, true), 0);
	assert_false(found_shared);
	assert_ptr_equal(mmap(p + PAGE, PAGE, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 p + PAGE);
	assert_int_equal(check(p, PAGE, true), 0);
	assert_false(found_shared);
	assert_int_equal(check(p, PAGE + 1, true), 0);
	assert_true(found_shared);
	assert_int_equal(check(p, 3 * PAGE, false), 0);
	assert_true(found_shared);
	munmap(p, 8 * PAGE);
}

/* From now on ioctl(2) is refused with ENOTTY. */
static bool be_old(void)
{
	return filter_refuse(SYS_ioctl, ENOTTY);
}

/* Bytes that this process has read, by whatever call; -1: the kernel does not count them. */
static long bytes_read(void)
{
	char text[256] = "";
	int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	long bytes;

	if (fd >= 0)
		close(fd);
	return n > 0 && sscanf(text, "rchar: %ld", &bytes) == 1 ? bytes : -1;
}

enum { MAPPINGS = 20000, TEXT_ENOUGH = 256 * 1024 };

/*
 * What a registration reads has nothing to do with the number of mappings: their text is a megabyte
 * here, below what is asked for.
 */
static void many_mappings(void **state)
{
	size_t size = VB_MAPPING_PROBE_BYTES + PAGE;
	char *below = mmap(NULL, MAPPINGS * (size_t)PAGE + size, PROT_READ,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *p = below + MAPPINGS * (size_t)PAGE;
	uintptr_t bad;
	bool shared;
	long before;

	(void)state;
	assert_ptr_not_equal(below, MAP_FAILED);
	assert_int_equal(mprotect(p, size, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(check(p, VB_MAPPING_PROBE_BYTES, true), 0);
	for (size_t i = 0; i < MAPPINGS; i += 2)
		assert_int_equal(mprotect(below + i * PAGE, PAGE, PROT_NONE), 0);
	before = bytes_read();
	assert_int_equal(
		vb_mapping_check((uintptr_t)p + 1, VB_MAPPING_PROBE_BYTES, true, &shared, &bad), 0);
	assert_false(shared);
	if (before >= 0)
		assert_in_range(bytes_read() - before, 0, TEXT_ENOUGH);
	/* The same cases as with few mappings: what is refused, and where. */
	assert_int_equal(check(p, size, true), 0);
	assert_int_equal(mprotect(p + 2 * PAGE, PAGE, PROT_READ), 0);
	assert_int_equal(check(p, 2 * PAGE, true), 0);
	assert_int_equal(check(p, 2 * PAGE + 1, true), -EFAULT);
	assert_int_equal(check(p, 3 * PAGE, false), 0);
	assert_int_equal(mprotect(p + 4 * PAGE, PAGE, PROT_NONE), 0);
	assert_int_equal(check(p + PAGE, 4 * PAGE, false), -EFAULT);
	munmap(below, MAPPINGS * (size_t)PAGE + size);
}

enum { ADDITIONS = 200000 };
static _Atomic int adding;

static void *add(void *word)
{
	for (int i = 0; i < ADDITIONS; i++)
		__atomic_fetch_add((uint32_t *)word, 1, __ATOMIC_RELAXED);
	adding = 0;
	return NULL;
}

/* Nothing that another thread writes meanwhile is lost. */
static void probing_changes_nothing(void **state)
{
	char *p = make_pages();
	pthread_t thread;
	bool shared;

	(void)state;
	adding = 1;
	assert_int_equal(pthread_create(&thread, NULL, add, p), 0);
	while (adding)
		assert_true(vb_mapping_probe((uintptr_t)p + 8, PAGE, true, &shared));
	pthread_join(thread, NULL);
	assert_int_equal(*(uint32_t *)p, ADDITIONS);
	for (unsigned int i = sizeof(uint32_t); i < 3 * PAGE; i++)
		assert_int_equal(p[i], 0);
	munmap(p, 8 * PAGE);
}

/*
 * Pages of a private file mapping become the process's own when it writes; those of a shared one
 * never do.
 */
static void files(void **state)
{
	int fd = memfd_create("mapping", MFD_CLOEXEC);
	char *mine, *others, *nobodys;

	(void)state;
	assert_int_equal(ftruncate(fd, 2 * PAGE), 0);
	mine = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	others = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	nobodys = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_int_equal(check(mine, 2 * PAGE, true), 0);
	assert_false(found_shared);
	assert_int_equal(check(others, 2 * PAGE, true), 0);
	assert_true(found_shared);
	/* Mapped, but the file ends before. */
	assert_int_equal(check(nobodys, 4 * PAGE, true), 0);
	assert_true(found_shared);
	munmap(mine, 2 * PAGE);
	munmap(others, 2 * PAGE);
	munmap(nobodys, 4 * PAGE);
	close(fd);
}

static uint32_t files_open(int *maps)
{
	char path[64], name[64];
	uint32_t n = 0;

	*maps = -1;
	for (int fd = 0; fd < 2048; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		ssize_t length = readlink(path, name, sizeof(name) - 1);

		if (length < 0)
			continue;
		n++;
		name[length] = 0;
		if (length > 5 && !strcmp(name + length - 5, "/maps"))
			*maps = fd;
	}
	return n;
}

/* One file serves all questions; a program that closes it, and uses its number, gets answers. */
static void file_stays_open(void **state)
{
	char *p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t open_before;
	int maps, other[2];

	(void)state;
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(check(p, PAGE, false), 0);
	open_before = files_open(&maps);
	for (int i = 0; i < 100; i++)
		assert_int_equal(check(p, PAGE, false), 0);
	assert_int_equal(files_open(&maps), open_before);
	if (maps < 0)
		skip(); /* this kernel takes no questions */
	assert_int_equal(pipe(other), 0);
	assert_int_equal(dup2(other[0], maps), maps);
	assert_int_equal(check(p, PAGE, false), 0);
	assert_int_equal(check(p, PAGE, true), -EFAULT);
	close(maps);
	assert_int_equal(check(p, PAGE, false), 0);
	close(other[0]);
	close(other[1]);
	munmap(p, PAGE);
}

/* Nor is it told of another process's mappings where the program has opened these under the number. */
static void file_of_another(void **state)
{
	char *p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), path[64];
	int maps, hold[2], told[2], other, saved;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(hold), 0);
	assert_int_equal(pipe(told), 0);
	child = fork();
	if (!child) {
		char c = (char)munmap(p, PAGE);

		close(hold[1]);
		c = write(told[1], &c, 1) == 1 && read(hold[0], &c, 1) == 0;
		_exit(!c);
	}
	assert_int_equal(read(told[0], path, 1), 1);
	assert_int_equal(path[0], 0);
	assert_int_equal(check(p, PAGE, false), 0);
	files_open(&maps);
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)child);
	other = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(other >= 0);
	saved = dup(maps);
	if (maps >= 0)
		assert_int_equal(dup2(other, maps), maps);
	assert_int_equal(check(p, PAGE, false), 0);
	if (maps >= 0)
		assert_int_equal(dup2(saved, maps), maps);
	close(saved);
	close(other);
	close(hold[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(hold[0]);
	close(told[0]);
	close(told[1]);
	munmap(p, PAGE);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rights),          cmocka_unit_test(holes),
		cmocka_unit_test(shared_mappings), cmocka_unit_test(ordinary_memory),
		cmocka_unit_test(strange_text),    cmocka_unit_test(many_mappings),
		cmocka_unit_test(files),           cmocka_unit_test(probing_changes_nothing),
		cmocka_unit_test(file_of_another), cmocka_unit_test(file_stays_open),
	};

	if (argc > 1 && !strcmp(argv[1], "old-kernel") && !be_old()) {
		print_message(
			"seccomp(2) is not to be had: this kernel's own way is tested alone\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

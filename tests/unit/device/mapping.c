/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which ranges count as mapped, asked both ways: of this kernel, and by reading the text as on older ones. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "device/mapping.h"

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

/* Lines as no kernel here writes them: long names, addresses of all lengths, an end without newline. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rights),          cmocka_unit_test(holes),
		cmocka_unit_test(shared_mappings), cmocka_unit_test(ordinary_memory),
		cmocka_unit_test(strange_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The futex word by which peers tell whether a process lives. Where the C library keeps the word
 * elsewhere than expected, the node does not start.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "host/private.h"

/* What another C library's mutex might begin with, in place of its futex word. */
static enum { OUR_LIBRARY, A_TYPE, NOTHING } layout;

int __real_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr);
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
	int err = __real_pthread_mutex_init(mutex, attr);

	if (layout == A_TYPE)
		*(uint32_t *)(void *)mutex = 4;
	return err;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	return layout == OUR_LIBRARY ? __real_pthread_mutex_lock(mutex) : 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	return layout == OUR_LIBRARY ? __real_pthread_mutex_unlock(mutex) : 0;
}

static struct vb_page *page_new(void)
{
	struct vb_page *page = aligned_alloc(4096, sizeof(*page));

	assert_non_null(page);
	return page;
}

static void this_library(void **state)
{
	struct vb_page *page = page_new();

	(void)state;
	layout = OUR_LIBRARY;
	assert_int_equal(vb_alive_init(page), 0);
	assert_false(vb_alive_word_held(page));
	assert_int_equal(pthread_mutex_lock(&page->header.alive), 0);
	assert_true(vb_alive_word_held(page));
	assert_int_equal(pthread_mutex_unlock(&page->header.alive), 0);
	assert_false(vb_alive_word_held(page));
	free(page);
}

static void another_library(void **state)
{
	struct vb_page *page = page_new();
	int type, nothing;

	(void)state;
	layout = A_TYPE;
	type = vb_alive_init(page);
	layout = NOTHING;
	nothing = vb_alive_init(page);
	layout = OUR_LIBRARY;
	assert_int_equal(type, -ENOTSUP);
	assert_int_equal(nothing, -ENOTSUP);
	free(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(this_library),
		cmocka_unit_test(another_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

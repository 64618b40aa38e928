/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Handle tables: which handles lead to an object, which do not, and how long a number rests before
 * it is used again.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "object/handle.h"

static int objects[5000];

static void names_its_object_only(void **state)
{
	struct vb_handle_table t;
	uint32_t a, b;

	(void)state;
	assert_int_equal(vb_handle_table_init(&t), 0);
	assert_false(vb_handle_valid(&t, 0, NULL));
	assert_int_equal(vb_handle_add(&t, &objects[0], &a), 0);
	assert_int_equal(vb_handle_add(&t, &objects[1], &b), 0);
	assert_int_not_equal(a, b);
	assert_int_not_equal(a, 0);
	assert_true(vb_handle_valid(&t, a, &objects[0]));
	assert_false(vb_handle_valid(&t, a, &objects[1]));
	assert_false(vb_handle_valid(&t, a + 1000, &objects[0]));
	assert_false(vb_handle_valid(&t, UINT32_MAX, &objects[0]));
	assert_false(vb_handle_valid(&t, a, NULL));
	vb_handle_table_fini(&t);
}

static void removed_once(void **state)
{
	struct vb_handle_table t;
	uint32_t a;

	(void)state;
	vb_handle_table_init(&t);
	vb_handle_add(&t, &objects[0], &a);
	assert_int_equal(vb_handle_remove(&t, a, &objects[1]), -ENOENT);
	assert_int_equal(vb_handle_remove(&t, a + 1, &objects[0]), -ENOENT);
	assert_int_equal(vb_handle_remove(&t, a, &objects[0]), 0);
	assert_int_equal(vb_handle_remove(&t, a, &objects[0]), -ENOENT);
	assert_false(vb_handle_valid(&t, a, &objects[0]));
	assert_int_equal(t.count, 0);
	vb_handle_table_fini(&t);
}

static void freed_number_rests(void **state)
{
	struct vb_handle_table t;
	uint32_t first, next;

	(void)state;
	vb_handle_table_init(&t);
	vb_handle_add(&t, &objects[0], &first);
	vb_handle_remove(&t, first, &objects[0]);
	for (int i = 0; i < 15; i++) {
		vb_handle_add(&t, &objects[1], &next);
		assert_int_not_equal(next, first);
		vb_handle_remove(&t, next, &objects[1]);
	}
	vb_handle_table_fini(&t);
}

static void grows_and_keeps(void **state)
{
	static uint32_t handle[5000];
	struct vb_handle_table t;

	(void)state;
	vb_handle_table_init(&t);
	for (int i = 0; i < 5000; i++)
		assert_int_equal(vb_handle_add(&t, &objects[i], &handle[i]), 0);
	for (int i = 0; i < 5000; i++)
		assert_true(vb_handle_valid(&t, handle[i], &objects[i]));
	for (int i = 0; i < 5000; i += 2)
		assert_int_equal(vb_handle_remove(&t, handle[i], &objects[i]), 0);
	for (int i = 0; i < 5000; i++)
		assert_int_equal(vb_handle_valid(&t, handle[i], &objects[i]), i % 2);
	assert_int_equal(t.count, 2500);
	vb_handle_table_fini(&t);
}

/*
 * In a forked child: old handles name nothing valid, are told apart from those that never did, and
 * are not given out again.
 */
static void disowned(void **state)
{
	struct vb_handle_table t;
	uint32_t old[100], handle;
	uint64_t object[201];

	(void)state;
	assert_int_equal(vb_handle_table_init(&t), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(vb_handle_add(&t, &object[i], &old[i]), 0);
	pthread_mutex_lock(&t.lock); /* by a thread that the child does not have */
	vb_handle_forked(&t);
	vb_handle_disown(&t);
	assert_int_equal(t.inherited, 100);
	handle = 0;
	assert_null(vb_handle_any(&t, &handle));
	for (int i = 0; i < 100; i++) {
		assert_false(vb_handle_valid(&t, old[i], &object[i]));
		assert_true(vb_handle_inherited(&t, old[i], &object[i]));
		assert_false(vb_handle_inherited(&t, old[i], &object[100]));
		assert_int_equal(vb_handle_remove(&t, old[i], &object[i]), -ENOENT);
	}
	for (int i = 100; i < 200; i++) {
		assert_int_equal(vb_handle_add(&t, &object[i], &handle), 0);
		assert_true(vb_handle_valid(&t, handle, &object[i]));
		assert_false(vb_handle_inherited(&t, handle, &object[i]));
		for (int j = 0; j < 100; j++)
			assert_int_not_equal(handle, old[j]);
	}
	handle = 0;
	assert_ptr_equal(vb_handle_any(&t, &handle), &object[100]);
	vb_handle_table_fini(&t);
}

/* Ending all objects walks the table once: each is found behind the one before it. */
static void ended_in_one_walk(void **state)
{
	enum { COUNT = 1000 };
	static int object[COUNT];
	struct vb_handle_table t;
	uint32_t handle = 0, before = 0;

	(void)state;
	assert_int_equal(vb_handle_table_init(&t), 0);
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(vb_handle_add(&t, &object[i], &handle), 0);
	handle = 0;
	for (int i = 0; i < COUNT; i++) {
		void *found = vb_handle_any(&t, &handle);

		assert_non_null(found);
		assert_true(handle > before);
		before = handle;
		assert_int_equal(vb_handle_remove(&t, handle, found), 0);
	}
	assert_null(vb_handle_any(&t, &handle));
	vb_handle_table_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(disowned),        cmocka_unit_test(names_its_object_only),
		cmocka_unit_test(removed_once),    cmocka_unit_test(freed_number_rests),
		cmocka_unit_test(grows_and_keeps), cmocka_unit_test(ended_in_one_walk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The matching list alone: order, masks, handles of removed entries, and entries that are held back
 * until both sides agree on which messages were unexpected.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tag/match.h"

static uint32_t add(struct vb_tag_list *list, uint64_t wr_id, uint64_t tag, uint64_t mask)
{
	struct ibv_ops_wr wr = {.tm.add = {.recv_wr_id = wr_id, .tag = tag, .mask = mask}};
	uint32_t handle = UINT32_MAX;

	assert_non_null(vb_tag_list_add(list, &wr, &handle));
	return handle;
}

/* The wr_id of the buffer that the tag gets; 0: none. */
static uint64_t match(struct vb_tag_list *list, uint64_t tag)
{
	struct vb_tag_entry *e = vb_tag_list_match(list, tag);
	uint64_t wr_id = e ? e->wqe.wr_id : 0;

	if (e)
		vb_tag_list_release(list, e);
	return wr_id;
}

static void oldest_first(void **state)
{
	struct vb_tag_list list;

	(void)state;
	assert_int_equal(vb_tag_list_init(&list, 8, 2), 0);
	assert_int_equal(match(&list, 5), 0);
	add(&list, 1, 5, UINT64_MAX);
	add(&list, 2, 5, UINT64_MAX);
	add(&list, 3, 6, UINT64_MAX);
	assert_int_equal(match(&list, 6), 3);
	assert_int_equal(match(&list, 5), 1);
	assert_int_equal(match(&list, 5), 2);
	assert_int_equal(match(&list, 5), 0);
	vb_tag_list_fini(&list);
}

/* TMH.tag & entry.mask == entry.tag */
static void masks(void **state)
{
	struct vb_tag_list list;

	(void)state;
	assert_int_equal(vb_tag_list_init(&list, 8, 2), 0);
	add(&list, 1, 0x1200, 0xff00);
	add(&list, 2, 0x1201, 0xff00); /* its tag has bits that its mask does not: never */
	add(&list, 3, 0, 0);           /* anything */
	assert_int_equal(match(&list, 0x1255), 1);
	assert_int_equal(match(&list, 0x1201), 3);
	assert_int_equal(match(&list, 0x1201), 0);
	vb_tag_list_fini(&list);
}

static void handles(void **state)
{
	struct vb_tag_list list;
	struct vb_tag_entry *e;
	uint32_t first, second;

	(void)state;
	assert_int_equal(vb_tag_list_init(&list, 2, 0), 0);
	first = add(&list, 1, 1, UINT64_MAX);
	second = add(&list, 2, 2, UINT64_MAX);
	assert_null(vb_tag_list_add(&list, &(struct ibv_ops_wr){0}, &first));
	assert_true(vb_tag_list_remove(&list, first));
	assert_false(vb_tag_list_remove(&list, first));
	/* The place is used again, the old handle does not name it. */
	assert_int_not_equal(add(&list, 3, 3, UINT64_MAX), first);
	assert_false(vb_tag_list_remove(&list, first));
	/* Taken by a message. */
	e = vb_tag_list_match(&list, 2);
	assert_non_null(e);
	assert_false(vb_tag_list_remove(&list, second));
	vb_tag_list_release(&list, e);
	assert_false(vb_tag_list_remove(&list, second));
	assert_false(vb_tag_list_knows(&list, 2));
	assert_false(vb_tag_list_remove(&list, 2));
	assert_true(vb_tag_list_knows(&list, second));
	assert_int_equal(match(&list, 3), 3);
	vb_tag_list_fini(&list);
}

static void given_up(void **state)
{
	struct vb_tag_list list;
	struct vb_tag_entry *e;

	(void)state;
	assert_int_equal(vb_tag_list_init(&list, 8, 2), 0);
	for (uint64_t i = 1; i <= 3; i++)
		add(&list, i, 7, UINT64_MAX);
	assert_int_equal(match(&list, 7), 1);
	e = vb_tag_list_match(&list, 7);
	assert_int_equal(e->wqe.wr_id, 2);
	e->wqe.length = 99;
	vb_tag_list_untake(&list, e);
	assert_int_equal(e->wqe.length, 0);
	assert_int_equal(match(&list, 7), 2);
	assert_int_equal(match(&list, 7), 3);
	vb_tag_list_fini(&list);
}

/*
 * A buffer added before the program saw an unexpected message must not take a later one of the same
 * tag.
 */
static void rests(void **state)
{
	struct vb_tag_list list;

	(void)state;
	assert_int_equal(vb_tag_list_init(&list, 8, 2), 0);
	add(&list, 1, 7, UINT64_MAX);
	list.unexpected++;
	assert_false(vb_tag_list_agrees(&list));
	add(&list, 2, 8, UINT64_MAX);
	assert_int_equal(match(&list, 8), 0);
	assert_int_equal(match(&list, 7), 1); /* older than the disagreement */
	list.unexpected++;
	vb_tag_list_report(&list, 1);
	assert_int_equal(match(&list, 8), 0);
	vb_tag_list_report(&list, 2);
	assert_true(vb_tag_list_agrees(&list));
	assert_int_equal(match(&list, 8), 2);
	vb_tag_list_fini(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(oldest_first), cmocka_unit_test(masks), cmocka_unit_test(handles),
		cmocka_unit_test(given_up),     cmocka_unit_test(rests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

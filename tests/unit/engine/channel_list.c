/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How many channels one poll looks at, and how many polls pass until a channel is looked at again:
 * counted, with a thousand channels.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine/channel_list.h"

enum { MANY = 1000, SETTLE = 4 * VB_QUIET_AFTER };

/* `full_at`: whether a message waits there; `remote_id`: looks. */
static struct vb_channel *channel;
static uint32_t looks, found;

static bool look(void *arg, struct vb_channel *c)
{
	(void)arg;
	looks++;
	c->remote_id++;
	if (!c->full_at)
		return false;
	c->full_at = 0;
	found++;
	return true;
}

static bool serve(struct vb_channel_list *list, bool all)
{
	looks = 0;
	return vb_channel_list_serve(list, all, look, NULL);
}

static void settle(struct vb_channel_list *list)
{
	for (int i = 0; i < SETTLE; i++)
		assert_false(serve(list, false));
}

static int set_up(void **state)
{
	struct vb_channel_list *list = calloc(1, sizeof(*list));

	channel = calloc(MANY, sizeof(*channel));
	*state = list;
	return list && channel ? 0 : -1;
}

static int tear_down(void **state)
{
	free(channel);
	free(*state);
	return 0;
}

static void add(struct vb_channel_list *list, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		vb_channel_list_add(list, &channel[i]);
}

static void few_are_all_looked_at(void **state)
{
	struct vb_channel_list *list = *state;

	add(list, VB_BUSY_FEW);
	settle(list);
	serve(list, false);
	assert_int_equal(looks, VB_BUSY_FEW);
}

static void nothing_costs_little(void **state)
{
	struct vb_channel_list *list = *state;

	add(list, MANY);
	serve(list, false);
	assert_int_equal(looks, MANY); /* they are new */
	settle(list);
	serve(list, false);
	assert_in_range(looks, 1, VB_BUSY_FEW + MANY / VB_QUIET_TURNS + 1);
	/* A thread that goes to sleep misses none. */
	for (uint32_t i = 0; i < MANY; i++)
		channel[i].remote_id = 0;
	serve(list, true);
	assert_int_equal(looks, MANY);
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(channel[i].remote_id, 1);
}

static void nobody_waits_for_long(void **state)
{
	struct vb_channel_list *list = *state;

	add(list, MANY);
	settle(list);
	for (uint32_t i = 0; i < MANY; i += 7) {
		uint32_t polls = 1;

		channel[i].full_at = 1;
		while (!serve(list, false))
			polls++;
		assert_in_range(polls, 1, 2 * VB_QUIET_TURNS);
		/* It is a busy one now: what follows is found at once. */
		channel[i].full_at = 1;
		assert_true(serve(list, false));
	}
	/* All at once. */
	settle(list);
	found = 0;
	for (uint32_t i = 0; i < MANY; i++)
		channel[i].full_at = 1;
	for (uint32_t i = 0; i < 2 * VB_QUIET_TURNS; i++)
		serve(list, false);
	assert_int_equal(found, MANY);
}

static uint32_t count(const struct vb_channel_list *list)
{
	uint32_t n = 0;

	for (struct vb_channel *c = vb_channel_list_first(list); c;
	     c = vb_channel_list_next(list, c))
		n++;
	return n;
}

/* From either half, its beginning, middle and end; the rest stays whole. */
static void leaving(void **state)
{
	struct vb_channel_list *list = *state;

	add(list, MANY);
	settle(list);
	for (uint32_t i = 0; i < MANY; i += 50) {
		channel[i].full_at = 1;
		serve(list, true);
	}
	assert_int_equal(count(list), MANY);
	for (uint32_t left = MANY; left; left--) {
		struct vb_channel *gone = left % 3 ? list->quiet_last : vb_channel_list_first(list);

		if (!gone)
			gone = list->busy;
		if (left % 5 == 0)
			serve(list, false);
		vb_channel_list_remove(list, gone);
		vb_channel_list_remove(list, gone);
		assert_int_equal(count(list), left - 1);
		assert_int_equal(list->num_busy + list->num_quiet, left - 1);
	}
	assert_false(serve(list, true));
	assert_int_equal(looks, 0);
	add(list, 1);
	assert_int_equal(count(list), 1);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(few_are_all_looked_at),
		TEST(nothing_costs_little),
		TEST(nobody_waits_for_long),
		TEST(leaving),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

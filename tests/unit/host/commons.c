/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tables that processes share by name, with no process in charge: a table is made once, handed on
 * to later members, and gone with the last one; and blocks of a table change hands.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "host/commons.h"
#include "unit/host/end.h"

#define BYTES 65536u

static char name[40];

struct table {
	uint64_t value;
	uint64_t count;
};

static struct vb_commons *join(struct end *end, bool create, bool want_fresh)
{
	struct vb_commons *c = NULL;
	bool fresh = !want_fresh;

	assert_int_equal(vb_commons_join(end->node, name, BYTES, create, &c, &fresh), 0);
	assert_int_equal(fresh, want_fresh);
	return c;
}

/* A member in a process of its own: joins, adds what it is told, says its seat, waits. */
static int member(int sock, void *arg)
{
	static struct end end;
	struct vb_commons *c;
	struct table *t;
	uint64_t rounds;

	(void)arg;
	hear(sock);
	end_start(&end);
	c = join(&end, true, false);
	t = vb_commons_table(c);
	tell(sock, vb_commons_seat(c));
	tell(sock, t->value);
	rounds = hear(sock);
	for (uint64_t i = 0; i < rounds; i++) {
		if (!vb_commons_lock(c))
			return 1;
		t->count++;
		vb_commons_unlock(c);
	}
	tell(sock, 1);
	if (hear(sock) == 2)
		_exit(vb_commons_lock(c) ? 0 : 1); /* dies with the lock held */
	vb_commons_leave(end.node, c);
	end_stop(&end);
	return 0;
}

static void test_shared(void **state)
{
	static struct end end;
	struct vb_commons *c;
	struct child one, two;
	struct table *t;
	bool fresh;

	(void)state;
	child_start(&one, member, NULL);
	child_start(&two, member, NULL);
	end_start(&end);
	assert_int_equal(vb_commons_join(end.node, name, BYTES, false, &c, &fresh), -ENOENT);
	c = join(&end, true, true);
	t = vb_commons_table(c);
	assert_int_equal(vb_commons_seat(c), 0);
	t->value = 4711;
	for (int i = 0; i < 2; i++) {
		int sock = i ? two.sock : one.sock;

		tell(sock, 0);
		assert_int_equal(hear(sock), i + 1);
		assert_int_equal(hear(sock), 4711);
		assert_true(vb_commons_seat_taken(c, (uint32_t)i + 1, false));
	}
	assert_false(vb_commons_seat_taken(c, 3, false));
	/* The lock keeps three processes apart. */
	tell(one.sock, 20000);
	tell(two.sock, 20000);
	for (int i = 0; i < 20000; i++) {
		assert_true(vb_commons_lock(c));
		t->count++;
		vb_commons_unlock(c);
	}
	hear(one.sock);
	hear(two.sock);
	assert_int_equal(t->count, 60000);
	/* The one who made it leaves: the table stays, and is found through the others. */
	vb_commons_leave(end.node, c);
	c = join(&end, false, false);
	t = vb_commons_table(c);
	assert_int_equal(t->value, 4711);
	assert_int_equal(vb_commons_seat(c), 0);
	/* A process that dies with the lock held keeps neither the lock nor its seat. */
	tell(one.sock, 2);
	child_join(&one);
	assert_true(vb_commons_lock(c));
	vb_commons_unlock(c);
	for (int i = 0; i < 1000 && vb_commons_seat_taken(c, 1, false); i++)
		end_sleep_ms(5);
	assert_false(vb_commons_seat_taken(c, 1, false));
	tell(two.sock, 1);
	child_join(&two);
	vb_commons_leave(end.node, c);
	assert_int_equal(vb_commons_join(end.node, name, BYTES, false, &c, &fresh), -ENOENT);
	end_stop(&end);
}

/* Another size is another layout. */
static void test_other_size(void **state)
{
	static struct end end;
	struct vb_commons *c, *other;
	bool fresh;

	(void)state;
	end_start(&end);
	c = join(&end, true, true);
	assert_true(vb_commons_join(end.node, name, 2 * BYTES, true, &other, &fresh) < 0);
	vb_commons_leave(end.node, c);
	end_stop(&end);
}

/* Owns a block, and closes it, or dies with it. */
static int owner(int sock, void *arg)
{
	static struct end end;
	uint32_t block = 0;

	(void)arg;
	hear(sock);
	end_start(&end);
	if (vb_node_block_open(end.node, &block))
		return 1;
	if (!vb_node_qp_entry(end.node, block << VB_QPN_BLOCK_BITS))
		return 1;
	tell(sock, block);
	if (hear(sock) == 2)
		_exit(0);
	vb_node_block_close(end.node, block);
	tell(sock, vb_node_qp_entry(end.node, block << VB_QPN_BLOCK_BITS) == NULL);
	hear(sock);
	end_stop(&end);
	return 0;
}

static void test_block_changes_hands(void **state)
{
	static struct end end;
	struct child child[2];

	(void)state;
	child_start(&child[0], owner, NULL);
	child_start(&child[1], owner, NULL);
	end_start(&end);
	for (int dies = 0; dies < 2; dies++) {
		int sock = child[dies].sock;
		int err;

		tell(sock, 0);
		uint32_t block = (uint32_t)hear(sock);

		assert_int_equal(vb_node_block_open(end.node, &block), -EADDRINUSE);
		assert_null(vb_node_qp_entry(end.node, block << VB_QPN_BLOCK_BITS));
		tell(sock, dies ? 2 : 1);
		if (dies)
			child_join(&child[dies]);
		else
			assert_int_equal(hear(sock), 1);
		do {
			err = vb_node_block_open(end.node, &block);
		} while (err == -EADDRINUSE); /* until the kernel has closed its sockets */
		assert_int_equal(err, 0);
		assert_non_null(vb_node_qp_entry(end.node, block << VB_QPN_BLOCK_BITS));
		if (!dies) {
			tell(sock, 0);
			child_join(&child[dies]);
		}
	}
	end_stop(&end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_other_size),
		cmocka_unit_test(test_block_changes_hands),
	};

	snprintf(name, sizeof(name), "commons-test-%d", (int)getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Contact between processes: channels come up, carry slots both ways, are refused, closed and asked for again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "unit/host/end.h"

/* A process with one queue pair that returns each number plus one; 0 ends it. */
static int echo(int sock, void *arg)
{
	struct end end;
	uint64_t n;

	(void)arg;
	end_start(&end);
	tell(sock, end_qp(&end, end_engine(&end), NULL));
	struct vb_channel *ch = end_announced(&end, 0, 5000);

	if (!ch)
		return 1;
	do {
		if (!end_take(ch, &n) || !end_push(ch, n + 1))
			return 2;
	} while (n);
	hear(sock);
	vb_channel_close(end.node, ch);
	end_stop(&end);
	return 0;
}

static void test_two_processes(void **state)
{
	enum vb_contact why;
	struct child child;
	struct end end;
	uint64_t n;

	(void)state;
	child_start(&child, echo, NULL);
	end_start(&end);
	uint32_t engine = end_engine(&end);
	struct vb_channel *ch = end_find(&end, engine, (uint32_t)hear(child.sock), 5000, &why);

	assert_non_null(ch);
	assert_int_equal(why, VB_CONTACT_UP);
	assert_false(ch->loop);
	assert_int_equal(vb_peer_pid(ch->peer), child.pid);
	for (uint64_t i = 5000; i > 0; i--) {
		assert_true(end_push(ch, i - 1));
		assert_true(end_take(ch, &n));
		assert_int_equal(n, i);
	}
	tell(child.sock, 1);
	assert_true(end_await(&end.downs, 1, 2000));
	assert_ptr_equal(atomic_load(&end.down), ch);
	assert_true(atomic_load(&ch->dead));
	vb_channel_close(end.node, ch);
	child_join(&child);
	assert_true(end_await(&end.deaths, 1, 2000));
	end_stop(&end);
}

static void test_loop(void **state)
{
	enum vb_contact why;
	struct end end;
	uint64_t n;

	(void)state;
	end_start(&end);
	uint32_t a = end_engine(&end), b = end_engine(&end);
	uint32_t qa = end_qp(&end, a, NULL), qb = end_qp(&end, b, NULL);
	struct vb_channel *ch = vb_channel_find(end.node, a, qb, &why);

	assert_non_null(ch);
	assert_true(ch->loop);
	assert_true(vb_peer_is_self(ch->peer));
	assert_int_equal(atomic_load(&end.ups), 2);
	assert_ptr_equal(atomic_load(&end.up[0]), ch);
	struct vb_channel *other = atomic_load(&end.up[1]);

	assert_ptr_equal(other, ch->other);
	assert_ptr_equal(vb_channel_find(end.node, a, qb, &why), ch);
	assert_ptr_equal(vb_channel_find(end.node, b, qa, &why), other);
	assert_true(end_push(ch, 7) && end_take(other, &n));
	assert_int_equal(n, 7);
	assert_true(end_push(other, 8) && end_take(ch, &n));
	assert_int_equal(n, 8);

	struct vb_channel *self = vb_channel_find(end.node, a, qa, &why);

	assert_ptr_equal(self->other, self);
	assert_int_equal(atomic_load(&end.ups), 3);
	for (uint64_t i = 0; i < 3000; i++) {
		assert_true(end_push(self, i) && end_take(self, &n));
		assert_int_equal(n, i);
	}
	vb_channel_close(end.node, self);
	vb_channel_close(end.node, ch);
	assert_true(end_await(&end.downs, 1, 2000));
	assert_ptr_equal(atomic_load(&end.down), other);
	vb_channel_close(end.node, other);
	end_stop(&end);
}

static void test_absent(void **state)
{
	enum vb_contact why;
	struct end end;

	(void)state;
	end_start(&end);
	uint32_t engine = end_engine(&end);
	uint32_t own = end_qp(&end, engine, NULL);

	/* No owner: pending first, then absent, and told so. */
	assert_null(end_find(&end, engine, (own ^ 0x800000) & 0xfffc00, 2000, &why));
	assert_int_equal(why, VB_CONTACT_ABSENT);
	assert_true(end_await(&end.changes, 1, 2000));
	/* Our own block, no such queue pair. */
	assert_null(vb_channel_find(end.node, engine, own ^ 1, &why));
	assert_int_equal(why, VB_CONTACT_ABSENT);
	assert_null(vb_channel_find(end.node, engine, 0x1000000, &why));
	assert_int_equal(why, VB_CONTACT_ABSENT);
	end_stop(&end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_processes),
		cmocka_unit_test(test_loop),
		cmocka_unit_test(test_absent),
	};

	return cmocka_run_group_tests_name("host/contact", tests, NULL, NULL);
}

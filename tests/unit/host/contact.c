/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Contact between processes: channels are opened, carry slots in both directions, are refused,
 * closed, and asked for again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "unit/host/end.h"

/* A process with one queue pair that returns each number plus one; 0 ends it. */
static int echo(int sock, void *arg)
{
	static struct end end; /* its thread outlives this function */
	uint64_t n = 0;

	(void)arg;
	struct vb_channel *ch = end_serve(&end, sock, NULL);

	if (!ch)
		return 1;
	do {
		if (!end_take(ch, &n) || !end_push(ch, n + 1))
			return 2;
	} while (n);
	hear(sock);
	end_close(&end, ch);
	end_stop(&end);
	return 0;
}

static void test_two_processes(void **state)
{
	enum vb_contact why;
	struct child child;
	struct end end;
	uint64_t n = 0;

	(void)state;
	uint32_t qpn, engine = end_start_beside(&end, &child, echo, &qpn);
	struct vb_channel *ch = end_find(&end, engine, qpn, END_PATIENCE_MS, &why);

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
	assert_true(end_await(&end.downs, 1, END_PATIENCE_MS));
	assert_ptr_equal(atomic_load(&end.down), ch);
	assert_true(atomic_load(&ch->dead));
	end_close(&end, ch);
	child_join(&child);
	assert_true(end_await(&end.deaths, 1, END_PATIENCE_MS));
	end_stop(&end);
}

static void test_loop(void **state)
{
	enum vb_contact why;
	struct end end;
	uint64_t n = 0;

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
	end_close(&end, self);
	end_close(&end, ch);
	assert_true(end_await(&end.downs, 1, END_PATIENCE_MS));
	assert_ptr_equal(atomic_load(&end.down), other);
	end_close(&end, other);
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
	assert_null(end_find(&end, engine, (own ^ 0x800000) & 0xfffc00, END_PATIENCE_MS, &why));
	assert_int_equal(why, VB_CONTACT_ABSENT);
	assert_true(end_await(&end.changes, 1, END_PATIENCE_MS));
	/* Our own block, no such queue pair. */
	assert_null(vb_channel_find(end.node, engine, own ^ 1, &why));
	assert_int_equal(why, VB_CONTACT_ABSENT);
	assert_null(vb_channel_find(end.node, engine, 0x1000000, &why));
	assert_int_equal(why, VB_CONTACT_ABSENT);
	end_stop(&end);
}

/*
 * The next number, by any of the channels that were announced (a find may return one a moment
 * earlier). False: none in 5 s.
 */
static bool hear_any(struct end *end, uint64_t *n)
{
	for (int i = 0; i < 5000; i++) {
		for (int k = 0; k < atomic_load(&end->ups); k++) {
			struct vb_slot slot;

			if (!vb_ring_peek(&atomic_load(&end->up[k])->rx, &slot))
				continue;
			memcpy(n, slot.data, sizeof(*n));
			return true;
		}
		end_sleep_ms(1);
	}
	return false;
}

/*
 * A process that calls back the numbers that it is told: its own number, then the first number that
 * came by a channel.
 */
static int caller(int sock, void *arg)
{
	enum vb_contact why;
	static struct end end; /* its thread outlives this function */
	uint64_t n = 0;

	(void)arg;
	end_start(&end);
	uint32_t engine = end_engine(&end);

	tell(sock, end_qp(&end, engine, NULL));
	struct vb_channel *ch = end_find(&end, engine, (uint32_t)hear(sock), END_PATIENCE_MS, &why);

	if (!ch || !end_push(ch, 1))
		return 1;
	if (!hear_any(&end, &n))
		return 2;
	tell(sock, n);
	hear(sock);
	return 0;
}

/*
 * Both call at the same moment, many times: no request is lost, both are heard, and there is one
 * channel (host/crossing tells how there could be two).
 */
static void test_both_at_once(void **state)
{
	(void)state;
	for (int i = 0; i < 30; i++) {
		enum vb_contact why;
		struct child child;
		struct end end;
		uint64_t n = 0;

		uint32_t other, engine = end_start_beside(&end, &child, caller, &other);

		tell(child.sock, end_qp(&end, engine, NULL));
		struct vb_channel *ch = end_find(&end, engine, other, END_PATIENCE_MS, &why);

		assert_non_null(ch);
		assert_true(end_push(ch, 2));
		assert_int_equal(hear(child.sock), 2);
		/*
		 * It was sent before; but our own channel may have been found before it was
		 * announced.
		 */
		assert_true(hear_any(&end, &n));
		assert_int_equal(n, 1);
		assert_true(end_await(&end.ups, 1, END_PATIENCE_MS));
		assert_int_equal(atomic_load(&end.ups), 1);
		tell(child.sock, 0);
		child_join(&child);
		end_stop(&end);
	}
}

/* Engines and queue pairs by number; answers with how often its doorbell rang. */
static int sleeper(int sock, void *arg)
{
	struct vb_page_qp *entry;
	static struct end end; /* its thread outlives this function */

	(void)arg;
	end_start(&end);
	uint32_t engine = end_engine(&end);

	tell(sock, end_qp(&end, engine, &entry));
	for (;;) {
		switch (hear(sock)) {
		case 0:
			return 0;
		case 1: /* asleep */
			__atomic_store_n(&vb_node_page(end.node)->engine[engine].asleep, 1,
					 __ATOMIC_SEQ_CST);
			break;
		case 2: /* awake */
			__atomic_store_n(&vb_node_page(end.node)->engine[engine].asleep, 0,
					 __ATOMIC_SEQ_CST);
			break;
		case 3: /* the engine goes, its queue pair's entry stays for a while */
			end.no_engine = engine;
			break;
		case 4:
			end.no_engine = UINT32_MAX;
			break;
		case 5: /* more queue pairs than one block holds */
			for (uint32_t i = 0; i < VB_QPN_BLOCK_SIZE; i++)
				end_qp(&end, engine, NULL);
			tell(sock, end_qp(&end, engine, NULL));
			continue;
		case 6:
			entry->qpn = 0;
			break;
		default:
			return 1;
		}
		tell(sock, (uint64_t)atomic_load(&end.rings));
	}
}

static uint64_t order(struct child *child, uint64_t what)
{
	tell(child->sock, what);
	return hear(child->sock);
}

/* The doorbell is rung for an engine that sleeps and for no other. */
static void test_wake(void **state)
{
	enum vb_contact why;
	struct child child;
	struct end end;

	(void)state;
	uint32_t qpn, engine = end_start_beside(&end, &child, sleeper, &qpn);
	struct vb_channel *ch = end_find(&end, engine, qpn, END_PATIENCE_MS, &why);

	assert_non_null(ch);
	uint64_t rings = order(&child, 2);

	for (int i = 0; i < 10; i++)
		vb_channel_wake(ch);
	end_sleep_ms(20);
	assert_int_equal(order(&child, 1), rings);
	vb_channel_wake(ch);
	for (int i = 0; i < END_PATIENCE_MS / 10 && order(&child, 1) == rings; i++)
		end_sleep_ms(10);
	assert_int_equal(order(&child, 2), rings + 1);
	end_close(&end, ch);
	tell(child.sock, 0);
	child_join(&child);
	end_stop(&end);
}

/*
 * An engine that is gone refuses; when it is back, asking again succeeds. A queue pair that is gone
 * is absent.
 */
static void test_refused_then_accepted(void **state)
{
	enum vb_contact why;
	struct child child;
	struct end end;

	(void)state;
	uint32_t qpn, engine = end_start_beside(&end, &child, sleeper, &qpn);

	order(&child, 3);
	for (int i = 0; i < 20; i++) {
		assert_null(end_find(&end, engine, qpn, END_PATIENCE_MS, &why));
		assert_int_equal(why, VB_CONTACT_ABSENT);
	}
	assert_int_equal(atomic_load(&end.ups), 0);
	order(&child, 4);
	struct vb_channel *ch = NULL;

	for (int i = 0; i < END_PATIENCE_MS / 2 && !ch; i++) {
		end_sleep_ms(2);
		ch = end_find(&end, engine, qpn, END_PATIENCE_MS, &why);
	}
	assert_non_null(ch);
	assert_true(end_await(&end.ups, 1, END_PATIENCE_MS));
	assert_int_equal(atomic_load(&end.ups), 1);
	order(&child, 6);
	assert_null(vb_channel_find(end.node, engine, qpn, &why));
	assert_int_equal(why, VB_CONTACT_ABSENT);
	tell(child.sock, 0);
	child_join(&child);
	end_stop(&end);
}

/* A number in a second block of a process leads to the same peer, and to the same channel. */
static void test_second_block(void **state)
{
	enum vb_contact why;
	struct child child;
	struct end end;

	(void)state;
	uint32_t first, engine = end_start_beside(&end, &child, sleeper, &first);
	struct vb_channel *ch = end_find(&end, engine, first, END_PATIENCE_MS, &why);
	uint32_t second = (uint32_t)order(&child, 5);

	assert_int_not_equal(first >> VB_QPN_BLOCK_BITS, second >> VB_QPN_BLOCK_BITS);
	assert_ptr_equal(vb_channel_find(end.node, engine, second, &why), ch);
	assert_non_null(vb_peer_qp(ch->peer, second));
	assert_null(vb_peer_qp(ch->peer, second ^ 0x800000));
	assert_null(vb_peer_qp(ch->peer, 0x1000000 | second));
	/* By its own name, from a process that does not know the first. */
	struct end stranger;

	end_start(&stranger);
	assert_non_null(end_find(&stranger, end_engine(&stranger), second, END_PATIENCE_MS, &why));
	end_stop(&stranger);
	end_close(&end, ch);
	tell(child.sock, 0);
	child_join(&child);
	end_stop(&end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_processes), cmocka_unit_test(test_loop),
		cmocka_unit_test(test_absent),        cmocka_unit_test(test_both_at_once),
		cmocka_unit_test(test_wake),          cmocka_unit_test(test_refused_then_accepted),
		cmocka_unit_test(test_second_block),
	};

	return cmocka_run_group_tests_name("host/contact", tests, NULL, NULL);
}

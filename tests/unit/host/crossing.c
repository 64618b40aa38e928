/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Promise: there is one channel at most between an engine of this process and one of a peer's, and
 * each of its ends leads to the other. Two processes that call each other have two connections, so
 * messages about channels can be read in another order than they were sent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "host/descriptor.h"
#include "host/ring.h"
#include "host/shared.h"
#include "unit/host/puppet.h"

struct fixture {
	struct end end;
	uint32_t engine, block;
	struct puppet peer;
	uint32_t racks; /* that the peer has shown */
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	end_start(&f->end);
	f->engine = end_engine(&f->end);
	f->block = end_qp(&f->end, f->engine, NULL) >> VB_QPN_BLOCK_BITS;
	puppet_make(&f->end, f->block, &f->peer);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	puppet_drop(&f->peer);
	end_stop(&f->end);
	free(f);
	return 0;
}

/* A message of the peer with a ring of its own. */
static void send_ring(struct fixture *f, enum vb_control_type type, struct vb_control msg)
{
	void *map;
	int ring;

	assert_int_equal(vb_shared_create("ring", sizeof(struct vb_ring_half), &map, &ring), 0);
	msg.ring.rack = f->racks++;
	msg.to_engine = f->engine;
	puppet_send(f->peer.sock, type, msg, &ring, 1);
	vb_descriptor_close(ring);
	vb_shared_unmap(map, sizeof(struct vb_ring_half));
}

static void peer_accept(struct fixture *f, uint32_t id, uint32_t own)
{
	send_ring(f, VB_CONTROL_ACCEPT, (struct vb_control){.to_id = id, .from_id = own});
}

static void peer_open(struct fixture *f, uint32_t own)
{
	send_ring(f, VB_CONTROL_OPEN, (struct vb_control){.from_id = own});
}

static struct vb_channel *find(struct fixture *f, enum vb_contact *why)
{
	return vb_channel_find(f->end.node, f->engine, f->peer.qpn, why);
}

/* The number of this side's request. */
static uint32_t asked(struct fixture *f)
{
	enum vb_contact why;

	assert_null(find(f, &why));
	assert_int_equal(why, VB_CONTACT_PENDING);
	return puppet_expect(f->peer.sock, VB_CONTROL_OPEN).from_id;
}

/* The peer's request was sent before it accepted this side's, and is read after that. */
static void test_request_after_the_answer_to_ours(void **state)
{
	struct fixture *f = *state;
	enum vb_contact why;

	peer_accept(f, asked(f), 7);
	struct vb_channel *ch = end_announced(&f->end, 0, END_PATIENCE_MS);

	peer_open(f, 6);
	assert_int_equal(puppet_expect(f->peer.sock, VB_CONTROL_DUPLICATE).to_id, 6);
	assert_int_equal(atomic_load(&f->end.ups), 1);
	assert_int_equal(atomic_load(&f->end.downs), 0);
	assert_ptr_equal(find(f, &why), ch);
}

/* Numbers go on after the last one of 32 bits. */
static void test_numbers_begin_again(void **state)
{
	struct fixture *f = *state;

	peer_accept(f, asked(f), 3);
	assert_non_null(end_announced(&f->end, 0, END_PATIENCE_MS));
	peer_open(f, UINT32_MAX - 1);
	assert_int_equal(puppet_expect(f->peer.sock, VB_CONTROL_DUPLICATE).to_id, UINT32_MAX - 1);
	assert_int_equal(atomic_load(&f->end.ups), 1);
}

/* The message that closes the peer's end is read after its next request, or not at all. */
static void test_request_in_place_of_a_closed_end(void **state)
{
	struct fixture *f = *state;
	enum vb_contact why;

	uint32_t id = asked(f);

	peer_accept(f, id, 7);
	struct vb_channel *old = end_announced(&f->end, 0, END_PATIENCE_MS);

	peer_open(f, 8);
	assert_int_equal(puppet_expect(f->peer.sock, VB_CONTROL_ACCEPT).to_id, 8);
	assert_true(end_await(&f->end.downs, 1, END_PATIENCE_MS));
	assert_ptr_equal(atomic_load(&f->end.down), old);
	assert_true(atomic_load(&old->dead));
	assert_int_equal(atomic_load(&f->end.ups), 2);
	assert_ptr_equal(find(f, &why), atomic_load(&f->end.up[1]));
	puppet_send(f->peer.sock, VB_CONTROL_CLOSE, (struct vb_control){.to_id = id}, NULL, 0);
	peer_open(f, 7);
	puppet_expect(f->peer.sock, VB_CONTROL_DUPLICATE);
	assert_int_equal(atomic_load(&f->end.downs), 1);
}

/* The connection is lost on which this side had asked. */
static void test_answer_to_a_lost_request(void **state)
{
	struct fixture *f = *state;
	uint32_t id = asked(f);
	int changes = atomic_load(&f->end.changes);

	close(f->peer.sock);
	assert_true(end_await(&f->end.changes, changes + 1, END_PATIENCE_MS));
	f->peer.sock = puppet_call(f->block, &f->peer);
	puppet_grant(&f->end, f->peer.sock);
	peer_accept(f, id, 7);
	assert_int_equal(puppet_expect(f->peer.sock, VB_CONTROL_CLOSE).to_id, 7);
	assert_int_equal(atomic_load(&f->end.ups), 0);
	/* The next request is answered, and its channel comes up. */
	peer_accept(f, asked(f), 8);
	assert_non_null(end_announced(&f->end, 0, END_PATIENCE_MS));
	assert_int_equal(atomic_load(&f->end.deaths), 0);
}

/* The peer accepts and closes at once, and the second message is read first. */
static void test_closed_before_the_answer(void **state)
{
	struct fixture *f = *state;
	uint32_t id = asked(f);
	int changes = atomic_load(&f->end.changes);

	puppet_send(f->peer.sock, VB_CONTROL_CLOSE, (struct vb_control){.to_id = id}, NULL, 0);
	assert_true(end_await(&f->end.changes, changes + 1, END_PATIENCE_MS));
	peer_accept(f, id, 7);
	assert_int_equal(puppet_expect(f->peer.sock, VB_CONTROL_CLOSE).to_id, 7);
	assert_int_equal(atomic_load(&f->end.ups), 0);
	assert_int_equal(atomic_load(&f->end.deaths), 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_request_after_the_answer_to_ours), TEST(test_numbers_begin_again),
		TEST(test_request_in_place_of_a_closed_end), TEST(test_answer_to_a_lost_request),
		TEST(test_closed_before_the_answer),
	};

	return cmocka_run_group_tests_name("host/crossing", tests, NULL, NULL);
}

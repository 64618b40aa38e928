/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Numbers that a process hands out: keys, queue pair numbers, engines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "unit/host/end.h"

static int make(void **state)
{
	static struct end end;

	end_start(&end);
	*state = &end;
	return 0;
}

static int drop(void **state)
{
	end_stop(*state);
	return 0;
}

static uint32_t key_of(struct vb_node *node)
{
	struct vb_key *entry;
	uint32_t key;

	assert_int_equal(vb_node_key_alloc(node, &key, &entry), 0);
	assert_int_not_equal(key, 0);
	assert_ptr_equal(entry, &vb_node_keyring(node)->key[vb_key_slot(key)]);
	assert_int_equal(entry->key, 0);
	return key;
}

/* A neighbour of a key, got by changing its slot or its tag, is not a key. */
static void test_key_neighbours(void **state)
{
	struct end *end = *state;
	uint32_t keys[2000];
	int same_tag = 0, same_top = 0;

	for (int i = 0; i < 2000; i++)
		keys[i] = key_of(end->node);
	for (int i = 1; i < 2000; i++) {
		assert_int_not_equal(vb_key_slot(keys[i]), vb_key_slot(keys[i - 1]));
		same_tag += (uint8_t)keys[i] == (uint8_t)keys[i - 1];
		same_top += keys[i] >> VB_KEY_TOP_SHIFT == keys[i - 1] >> VB_KEY_TOP_SHIFT;
	}
	/* 8 and 4 random bits: 7.8 and 125 are expected. */
	assert_in_range(same_tag, 0, 40);
	assert_in_range(same_top, 0, 220);
	for (int i = 0; i < 2000; i++)
		vb_node_key_free(end->node, keys[i]);
}

static void test_key_reuse(void **state)
{
	struct end *end = *state;
	uint32_t first = key_of(end->node);
	int later = 0;

	vb_node_key_free(end->node, first);
	for (;;) {
		uint32_t key = key_of(end->node);

		vb_node_key_free(end->node, key);
		later++;
		if (vb_key_slot(key) != vb_key_slot(first))
			continue;
		assert_true(later > 4096);
		assert_int_not_equal((uint8_t)key, (uint8_t)first);
		assert_int_not_equal(key >> VB_KEY_TOP_SHIFT, first >> VB_KEY_TOP_SHIFT);
		break;
	}
}

/* A key that is not (or no longer) allocated is not freed, and a slot is never handed out twice. */
static void test_key_wrong_free(void **state)
{
	struct end *end = *state;
	uint32_t key = key_of(end->node);

	vb_node_key_free(end->node, key ^ 0x80000000u);
	vb_node_key_free(end->node, key);
	vb_node_key_free(end->node, key);
	vb_node_key_free(end->node, 0);
	/* The low 8 bits are chosen by the program that binds a window. */
	key = key_of(end->node);
	vb_node_key_free(end->node, key ^ 0x55);
	vb_node_key_free(end->node, key);
	for (int i = 0; i < 20000; i++) {
		uint32_t a = key_of(end->node), b = key_of(end->node);

		assert_int_not_equal(vb_key_slot(a), vb_key_slot(b));
		vb_node_key_free(end->node, a);
		vb_node_key_free(end->node, b);
	}
}

static void test_key_exhaustion(void **state)
{
	static uint8_t seen[VB_MAX_KEYS];
	struct end *end = *state;
	struct vb_key *entry;
	uint32_t key;

	memset(seen, 0, sizeof(seen));
	for (uint32_t i = 1; i < VB_MAX_KEYS; i++) {
		key = key_of(end->node);
		assert_int_equal(seen[vb_key_slot(key)]++, 0);
	}
	assert_int_equal(seen[0], 0);
	assert_int_equal(vb_node_key_alloc(end->node, &key, &entry), -ENOMEM);
	/* One freed, one more to be had. */
	vb_node_key_free(end->node, key);
	assert_int_equal(vb_key_slot(key_of(end->node)), vb_key_slot(key));
}

static void test_qpn(void **state)
{
	struct end *end = *state;
	struct vb_page_qp *entry;
	uint32_t first, qpn;

	assert_int_equal(vb_node_qpn_alloc(end->node, &first, &entry), 0);
	assert_true(first > 1 && first < 0xffffff);
	vb_node_qpn_free(end->node, first);
	vb_node_qpn_free(end->node, first);
	vb_node_qpn_free(end->node, first ^ 0x800000);
	/* Least recently freed first: it does not come back for a whole block. */
	for (uint32_t i = 1; i < VB_QPN_BLOCK_SIZE; i++) {
		assert_int_equal(vb_node_qpn_alloc(end->node, &qpn, &entry), 0);
		assert_int_not_equal(qpn, first);
		vb_node_qpn_free(end->node, qpn);
	}
	assert_int_equal(vb_node_qpn_alloc(end->node, &qpn, &entry), 0);
	assert_int_equal(qpn, first);
	vb_node_qpn_free(end->node, qpn);
}

/* The next block when one is full, up to all; each number once; each entry its own. */
static void test_qpn_blocks(void **state)
{
	static uint8_t seen[1 << 24];
	struct end *end = *state;
	struct vb_page *page = vb_node_page(end->node);
	struct vb_page_qp *entry;
	uint32_t qpn;

	memset(seen, 0, sizeof(seen));
	for (uint32_t i = 0; i < VB_MAX_QPS; i++) {
		assert_int_equal(vb_node_qpn_alloc(end->node, &qpn, &entry), 0);
		assert_int_equal(seen[qpn]++, 0);
		assert_int_equal(entry->qpn, 0);
		entry->qpn = qpn;
	}
	assert_int_equal(vb_node_qpn_alloc(end->node, &qpn, &entry), -ENOMEM);
	assert_int_equal(page->header.num_blocks, VB_MAX_BLOCKS);
	for (uint32_t i = 0; i < VB_MAX_BLOCKS; i++) {
		assert_in_range(page->header.block[i], 1, (1 << 14) - 2);
		for (uint32_t k = 0; k < VB_QPN_BLOCK_SIZE; k++)
			assert_int_equal(page->qp[i * VB_QPN_BLOCK_SIZE + k].qpn,
					 page->header.block[i] * VB_QPN_BLOCK_SIZE + k);
	}
}

static void test_engines(void **state)
{
	struct end *end = *state;
	struct vb_page *page = vb_node_page(end->node);
	uint32_t a = end_engine(end), b = end_engine(end);

	assert_int_equal(a, 0);
	assert_int_equal(b, 1);
	assert_int_equal(page->header.num_engines, 2);
	assert_int_equal(page->engine[a].generation & 1, 1);
	vb_node_engine_free(end->node, a);
	assert_int_equal(page->engine[a].generation & 1, 0);
	vb_node_engine_free(end->node, a);
	assert_int_equal(page->engine[a].generation & 1, 0);
	/* The lowest free one again: marks to be scanned stay few. */
	assert_int_equal(end_engine(end), a);
	assert_int_equal(page->engine[a].generation & 1, 1);
	assert_int_equal(page->header.num_engines, 2);
	assert_int_equal(end_engine(end), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_key_neighbours, make, drop),
		cmocka_unit_test_setup_teardown(test_key_reuse, make, drop),
		cmocka_unit_test_setup_teardown(test_key_wrong_free, make, drop),
		cmocka_unit_test_setup_teardown(test_key_exhaustion, make, drop),
		cmocka_unit_test_setup_teardown(test_qpn, make, drop),
		cmocka_unit_test_setup_teardown(test_qpn_blocks, make, drop),
		cmocka_unit_test_setup_teardown(test_engines, make, drop),
	};

	return cmocka_run_group_tests_name("host/numbers", tests, NULL, NULL);
}

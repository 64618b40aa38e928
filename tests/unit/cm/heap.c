/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The heap of deadlines gives them in their order, whatever was moved and removed in between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "cm/heap.h"

#define NODES 200u

static uint32_t seed = 1;

static uint32_t roll(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

static uint64_t earliest(const struct vb_cm_node *nodes)
{
	uint64_t due = 0;

	for (unsigned int i = 0; i < NODES; i++) {
		if (nodes[i].due && (!due || nodes[i].due < due))
			due = nodes[i].due;
	}
	return due;
}

static void the_earliest_is_known(void **state)
{
	struct vb_cm_node nodes[NODES] = {{0}};
	struct vb_cm_heap heap = {NULL};

	(void)state;
	for (unsigned int i = 0; i < 100000; i++) {
		struct vb_cm_node *node = &nodes[roll(NODES)];

		if (!roll(4) && heap.root)
			vb_cm_heap_remove(&heap, heap.root);
		else if (!roll(3))
			vb_cm_heap_remove(&heap, node);
		else
			vb_cm_heap_set(&heap, node, 1 + roll(1000));
		assert_int_equal(vb_cm_heap_due(&heap), earliest(nodes));
	}
}

static void they_leave_in_order(void **state)
{
	static struct vb_cm_node nodes[10000];
	struct vb_cm_heap heap = {NULL};
	uint64_t last = 0;

	(void)state;
	for (unsigned int i = 0; i < 10000; i++)
		vb_cm_heap_set(&heap, &nodes[i], 1 + roll(5000));
	for (unsigned int i = 0; i < 10000; i++) {
		assert_true(vb_cm_heap_due(&heap) >= last);
		last = vb_cm_heap_due(&heap);
		vb_cm_heap_remove(&heap, heap.root);
	}
	assert_int_equal(vb_cm_heap_due(&heap), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_earliest_is_known),
		cmocka_unit_test(they_leave_in_order),
	};

	return cmocka_run_group_tests_name("cm_heap", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Engine indices: the lowest free one, so that peers scan few marks. */
#include <errno.h>

#include "base/lock.h"
#include "base/reason.h"
#include "host/private.h"

static int lowest_free(const struct vb_engines *engines)
{
	for (int i = 0; i < VB_MAX_ENGINES / 64; i++) {
		if (~engines->used[i])
			return i * 64 + __builtin_ctzll(~engines->used[i]);
	}
	return -1;
}

bool vb_node_has_engine(const struct vb_node *node, uint32_t engine)
{
	return engine < VB_MAX_ENGINES && (node->engines.used[engine / 64] >> engine % 64 & 1);
}

int vb_node_engine_alloc(struct vb_node *node, uint32_t *index)
{
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	int i = lowest_free(&node->engines);

	if (i >= 0) {
		struct vb_page_engine *e = &node->page->engine[i];

		node->engines.used[i / 64] |= 1ull << i % 64;
		__atomic_store_n(&e->asleep, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&e->generation, e->generation + 1, __ATOMIC_RELEASE);
		if ((uint32_t)i >= node->page->header.num_engines)
			__atomic_store_n(&node->page->header.num_engines, (uint32_t)i + 1,
					 __ATOMIC_SEQ_CST);
	}
	vb_mutex_release(&node->lock);
	if (i < 0)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "all %u engines are in use",
				 VB_MAX_ENGINES);
	*index = (uint32_t)i;
	return 0;
}

void vb_node_engine_free(struct vb_node *node, uint32_t index)
{
	if (atomic_load(&node->forked))
		return;
	vb_mutex_take(&node->lock, VB_ORDER_NODE);
	if (index < VB_MAX_ENGINES && (node->engines.used[index / 64] >> index % 64 & 1)) {
		struct vb_page_engine *e = &node->page->engine[index];

		__atomic_store_n(&e->generation, e->generation + 1, __ATOMIC_RELEASE);
		node->engines.used[index / 64] &= ~(1ull << index % 64);
	}
	vb_mutex_release(&node->lock);
}

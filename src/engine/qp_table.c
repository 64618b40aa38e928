/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The process's queue pairs by number: parallel to the published entries, found by block and index.
 */
#include <stdatomic.h>

#include "engine/qp.h"

static _Atomic(struct vb_qp *) table[VB_MAX_QPS];

/*
 * Where blocks were found last, by their lowest bits: a message does not pay for the number of
 * blocks. A guess, which is checked.
 */
static _Atomic uint8_t guess[VB_MAX_BLOCKS];

/* The index of the page's entry for this number. VB_MAX_QPS: no block of this process has it. */
static uint32_t table_index(struct vb_node *node, uint32_t qpn)
{
	const struct vb_page_header *h = &vb_node_page(node)->header;
	uint32_t block = qpn >> VB_QPN_BLOCK_BITS;
	uint32_t n = __atomic_load_n(&h->num_blocks, __ATOMIC_ACQUIRE);

	_Atomic uint8_t *place = &guess[block % VB_MAX_BLOCKS];
	uint32_t i = atomic_load_explicit(place, memory_order_relaxed);

	if (i < n && h->block[i] == block)
		return i * VB_QPN_BLOCK_SIZE + (qpn & (VB_QPN_BLOCK_SIZE - 1));
	for (i = 0; i < n; i++) {
		if (h->block[i] != block)
			continue;
		atomic_store_explicit(place, (uint8_t)i, memory_order_relaxed);
		return i * VB_QPN_BLOCK_SIZE + (qpn & (VB_QPN_BLOCK_SIZE - 1));
	}
	return VB_MAX_QPS;
}

struct vb_qp *vb_qp_lookup(struct vb_engine *engine, uint32_t qpn)
{
	uint32_t i = table_index(engine->node, qpn);

	if (i == VB_MAX_QPS)
		return NULL;
	/*
	 * The entry of this process's own page names the engine. Only if it is the caller's, whose
	 * lock is held, may the queue pair be touched.
	 */
	const struct vb_page_qp *entry = &vb_node_page(engine->node)->qp[i];

	if (__atomic_load_n(&entry->qpn, __ATOMIC_ACQUIRE) != qpn ||
	    __atomic_load_n(&entry->engine, __ATOMIC_RELAXED) != engine->index)
		return NULL;
	return atomic_load_explicit(&table[i], memory_order_acquire);
}

enum vb_qp_owner vb_qp_owner(struct vb_node *node, uint32_t qpn, uint32_t *engine)
{
	uint32_t i = table_index(node, qpn);

	if (i == VB_MAX_QPS)
		return VB_QP_ELSEWHERE;
	const struct vb_page_qp *entry = &vb_node_page(node)->qp[i];

	if (__atomic_load_n(&entry->qpn, __ATOMIC_ACQUIRE) != qpn)
		return VB_QP_UNKNOWN;
	*engine = __atomic_load_n(&entry->engine, __ATOMIC_RELAXED);
	return VB_QP_HERE;
}

void vb_qp_table_add(struct vb_qp *qp)
{
	qp->listed = true;
	atomic_store_explicit(&table[table_index(qp->engine->node, qp->t.qpn)], qp,
			      memory_order_release);
}

void vb_qp_table_remove(struct vb_qp *qp)
{
	if (!qp->listed)
		return;
	qp->listed = false;
	atomic_store_explicit(&table[table_index(qp->engine->node, qp->t.qpn)], NULL,
			      memory_order_release);
}

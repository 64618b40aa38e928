/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* When the progress thread looks next, and waking it when that is too late. */
#include <stdatomic.h>

#include "process/process.h"

/* When the thread will look by itself (CLOCK_MONOTONIC ns). UINT64_MAX: only when it is woken. */
static _Atomic uint64_t planned;

void vb_progress_expect(uint64_t at)
{
	struct vb_node *node = vb_process_node_started();

	/*
	 * Pairs with vb_progress_look(): either the thread sees what was armed before this call, or
	 * this call sees `planned` cleared.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (node && at < atomic_load_explicit(&planned, memory_order_relaxed)) {
		atomic_store_explicit(&planned, at, memory_order_relaxed);
		vb_node_kick(node);
	}
}

void vb_progress_look(void)
{
	atomic_store(&planned, UINT64_MAX);
}

bool vb_progress_plan(uint64_t until)
{
	uint64_t expected = UINT64_MAX;

	return atomic_compare_exchange_strong(&planned, &expected, until);
}

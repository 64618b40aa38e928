/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fork support: ibv_fork_init(3), ibv_is_fork_initialized(3).
 *
 * No page is pinned or given to an adapter: the parent's memory stays the parent's whatever its
 * children do, so there is nothing to prepare. Memory is hidden from children only where a program
 * asks for that.
 */
#include "base/fork_range.h"
#include "verbs/face.h"
#include "verbs/fork.h"

VB_EXPORT int ibv_fork_init(void)
{
	return 0;
}

VB_EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

VB_EXPORT int ibv_dontfork_range(void *base, size_t size)
{
	return vb_answer(vb_fork_range_hide(base, size));
}

VB_EXPORT int ibv_dofork_range(void *base, size_t size)
{
	return vb_answer(vb_fork_range_show(base, size));
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that the children of a fork do not get (MADV_DONTFORK), counted by page: a child gets a
 * page again when ibv_dofork_range() was called for it as often as ibv_dontfork_range(). The unit
 * is the page of the mapping: a huge page where the range lies in a mapping of such pages.
 */
#ifndef VB_BASE_FORK_RANGE_H
#define VB_BASE_FORK_RANGE_H

#include <stddef.h>

/*
 * -ENOMEM: no memory, or a page of the range is not mapped. -EINVAL: the kernel refuses the range.
 * A refused call changes nothing.
 */
int vb_fork_range_hide(void *base, size_t size);
/* -EINVAL with the reason recorded: a page of the range is not hidden. */
int vb_fork_range_show(void *base, size_t size);

#endif

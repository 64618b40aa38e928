/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that forked children do not get (MADV_DONTFORK), counted: a page comes back into their sight when as many calls have
 * given it back as had taken it (ibv_dontfork_range, ibv_dofork_range). Whole pages, huge ones where the range lies in such.
 */
#ifndef VB_BASE_FORK_RANGE_H
#define VB_BASE_FORK_RANGE_H

#include <stddef.h>

/* -ENOMEM: also where a page of the range is not mapped; -EINVAL: the kernel refuses it. Refused calls change nothing. */
int vb_fork_range_hide(void *base, size_t size);
/* -EINVAL with the reason recorded: some page of the range is not hidden. */
int vb_fork_range_show(void *base, size_t size);

#endif

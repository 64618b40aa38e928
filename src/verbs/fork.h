/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two exported functions (IBVERBS_1.1) that no public header declares; providers call them.
 */
#ifndef VB_VERBS_FORK_H
#define VB_VERBS_FORK_H

#include <stddef.h>

/* Keep a range out of children, or let it in again; calls are counted, page by page. 0, or the errno. */
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

#endif

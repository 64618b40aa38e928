/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two exported functions (IBVERBS_1.1) that no public header declares; providers call them.
 */
#ifndef VB_VERBS_FORK_H
#define VB_VERBS_FORK_H

#include <stddef.h>

/* Hides a range from children, or ends that. Calls are counted for each page. 0, or the errno. */
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A forked child has none of its parent's channels, ids and devices. It makes its own; what was
 * inherited is recognised by its generation.
 */
#ifndef VB_RDMACM_FORK_H
#define VB_RDMACM_FORK_H

#include <stdint.h>

/* How many forks lie between this process and the one that loaded the library. */
uint32_t vb_cma_generation(void);

/* -ENODEV if the object was made before a fork; `what` names the call. */
int vb_cma_check_generation(uint32_t generation, const char *what);

#endif

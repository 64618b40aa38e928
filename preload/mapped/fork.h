/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A forked child gets its own copies of all blocks, as fork(2) promises of private memory. */
#ifndef PRELOAD_MAPPED_FORK_H
#define PRELOAD_MAPPED_FORK_H

void fork_prepare_for(void);

#endif

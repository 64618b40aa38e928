/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What happens to the device when the program forks. */
#ifndef VB_PROCESS_FORK_H
#define VB_PROCESS_FORK_H

#include <stdint.h>

/* Registers the handlers (pthread_atfork(3)), once. */
void vb_fork_prepare(void);

/* How many forks lie between this process and the first: what was made under another number is a parent's. */
uint32_t vb_fork_generation(void);

#endif

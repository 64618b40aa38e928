/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef TOOLS_SECCOMP_MODE_H
#define TOOLS_SECCOMP_MODE_H

/*
 * What decides about the system calls of this process, and so of programs that it starts: 0 nothing,
 * or it cannot be told; 1 and 2 the modes of seccomp(2), 2: a filter.
 */
int seccomp_mode(void);

#endif

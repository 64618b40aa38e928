/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The three standard descriptors. */
#ifndef TOOLS_RUN_DESCRIPTORS_H
#define TOOLS_RUN_DESCRIPTORS_H

/*
 * Fills those of descriptors 0, 1 and 2 that are closed, until the next execve(2): no file that is
 * opened gets one of them and is then written to as standard error. The program finds them closed.
 */
void descriptors_reserve(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A condition that does not hold for most messages: the compiler puts what follows from it aside.
 * For the fast path only, where the order of the code is measured.
 */
#ifndef VB_BASE_SELDOM_H
#define VB_BASE_SELDOM_H

#define VB_SELDOM(condition) __builtin_expect(!!(condition), 0)

#endif

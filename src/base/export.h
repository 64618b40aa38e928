/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The mark of functions that libibverbs.so.1 shares with librdmacm.so.1 (VERBATIM_PRIVATE_1 in
 * verbs/libibverbs.map), because there must be one of what they guard: descriptors, counters, the
 * log, the GSI. No program may use them.
 */
#ifndef VB_BASE_EXPORT_H
#define VB_BASE_EXPORT_H

#define VB_SHARED __attribute__((visibility("default")))

#endif

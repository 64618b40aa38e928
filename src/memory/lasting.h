/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Regions of memory that the library itself has mapped and unmaps after the region: librdmacm's
 * buffers. Peers' requests for other memory are carried out by the kernel, because the program may
 * have unmapped it; for these the copy is a plain one, without a system call.
 */
#ifndef VB_MEMORY_LASTING_H
#define VB_MEMORY_LASTING_H

#include "base/export.h"

struct ibv_mr;

/* The memory of the region is there until ibv_dereg_mr(3). ibv_rereg_mr(3) ends that. */
VB_SHARED void vb_mr_lasts(struct ibv_mr *mr);

#endif

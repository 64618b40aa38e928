/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The 40 bytes in front of every UD receive. */
#ifndef VB_TRANSPORT_GRH_H
#define VB_TRANSPORT_GRH_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/run.h"

#define VB_GRH_BYTES 40

/*
 * The network header of a RoCEv2 datagram with `length` bytes of payload. IPv6 (path of non-mapped GIDs): its header.
 * IPv4: 20 zero bytes, then a header with correct checksum, so that ibv_init_ah_from_wc(3) recognises it.
 */
void vb_grh_build(const struct vb_path *path, uint32_t length, bool imm, uint8_t grh[VB_GRH_BYTES]);

#endif

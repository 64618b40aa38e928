/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The 40 bytes in front of every UD receive. */
#ifndef VB_TRANSPORT_GRH_H
#define VB_TRANSPORT_GRH_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/run.h"

#define VB_GRH_BYTES 40

/*
 * Builds the network header of a RoCEv2 datagram with `length` bytes of payload. IPv6 (no GID of
 * the path is mapped): its header. IPv4: 20 zero bytes, then a header with a correct checksum, so
 * that ibv_init_ah_from_wc(3) recognises it.
 */
void vb_grh_build(const struct vb_path *path, uint32_t length, bool imm, uint8_t grh[VB_GRH_BYTES]);

/*
 * The kind of a datagram's header, as a completion tells it. IBA A17.4.5.1 wants the kind told, but
 * struct ibv_wc has no member for it. A service level does not travel in RoCEv2, so adapters use
 * `sl`: bit 3 means UDP, and the bits below it are the kind of header. Without it, programs that
 * check the address to which a datagram came (UCX) take IPv4 for IPv6.
 */
enum { VB_GRH_KIND_IPV6 = 8 | 1, VB_GRH_KIND_IPV4 = 8 | 2 };
uint8_t vb_grh_kind(const struct vb_path *path);

#endif

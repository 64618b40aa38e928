/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packets that are not delivered. */
#ifndef VB_REMOTE_DROP_H
#define VB_REMOTE_DROP_H

#include <stdint.h>

#include "base/reason.h"
#include "transport/run.h"

struct vb_node;

/*
 * Why a queue pair that has no part between hosts takes nothing from there: it is not ready, or its
 * peer is a process of this host. From what is published of it, since another engine may serve it.
 */
enum vb_reason vb_udp_no_part(struct vb_node *node, uint32_t qpn);

/* Drops the packet and counts it under its reason. */
void vb_udp_drop(enum vb_reason reason, const struct vb_run *run);

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packets that are not delivered. */
#ifndef VB_REMOTE_DROP_H
#define VB_REMOTE_DROP_H

#include "base/reason.h"
#include "transport/run.h"

/* Drops the packet and counts it under its reason. */
void vb_udp_drop(enum vb_reason reason, const struct vb_run *run);

#endif

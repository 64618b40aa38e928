/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The link between hosts: RoCEv2 over UDP. */
#ifndef VB_REMOTE_UDP_H
#define VB_REMOTE_UDP_H

#include "engine/link.h"

extern const struct vb_link vb_udp_link;

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A packet from the wire has found its engine: the queue pair takes it, or it is dropped with a
 * reason.
 */
#ifndef VB_REMOTE_ADMIT_H
#define VB_REMOTE_ADMIT_H

#include <stdint.h>

#include "transport/run.h"

struct vb_engine;

/*
 * The packet is for a queue pair of this engine, with the number run->dest_qpn. `payload`: as long
 * as the call. Engine's lock.
 */
void vb_udp_admit(struct vb_engine *engine, const struct vb_run *run, const uint8_t *payload);

#endif

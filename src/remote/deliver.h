/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A packet from the wire finds its queue pair: in this engine, in another engine, in another
 * process of this host.
 */
#ifndef VB_REMOTE_DELIVER_H
#define VB_REMOTE_DELIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/run.h"

struct vb_engine;

/*
 * Sink of vb_udp_receive(). `arg` is the engine that is being driven (its lock is held). `ifindex`:
 * the interface on which the packet came.
 */
void vb_udp_deliver(void *arg, const struct vb_run *run, const uint8_t *payload, uint32_t ifindex);
/* The packet is for a queue pair of this process, with the number run->dest_qpn. Engine's lock. */
void vb_udp_deliver_process(struct vb_engine *engine, const struct vb_run *run,
			    const uint8_t *payload);

/*
 * Queue pair 1 is one for all processes of a host, so a room above finds out which of them a packet
 * for it is meant for. `take` is called under the lock of some engine. For a constructor.
 */
void vb_udp_deliver_services(void (*take)(const struct vb_run *run, const uint8_t *payload));

/*
 * Under the engine's lock: delivers what other engines' drives left for this one, and what waited
 * for contact. True if anything was delivered.
 */
bool vb_udp_deliver_late(struct vb_engine *engine);

#endif

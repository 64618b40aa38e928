/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A packet from the wire finds its queue pair: here, in another engine, in another process of this host. */
#ifndef VB_REMOTE_DELIVER_H
#define VB_REMOTE_DELIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/reason.h"
#include "transport/run.h"

struct vb_engine;

/* Sink of vb_udp_receive(); `arg` is the engine that is being driven (its lock is held). `ifindex`: where the packet came in. */
void vb_udp_deliver(void *arg, const struct vb_run *run, const uint8_t *payload, uint32_t ifindex);
/* The packet is for a queue pair of this process, whose number is run->dest_qpn. Engine's lock. */
void vb_udp_deliver_process(struct vb_engine *engine, const struct vb_run *run,
			    const uint8_t *payload);
/* The packet is for this very engine (another process or engine has sorted it). Engine's lock. */
void vb_udp_deliver_here(struct vb_engine *engine, const struct vb_run *run,
			 const uint8_t *payload);

/* Under the engine's lock: what other engines' drives left for this one, and what waits for contact. True if anything was delivered. */
bool vb_udp_deliver_late(struct vb_engine *engine);

/* An engine gets its first queue pair on this link; -ENOMEM. And: the engine is gone from every list. */
int vb_udp_engine_init(struct vb_engine *engine);
void vb_udp_engine_fini(struct vb_engine *engine);

/* The packet goes nowhere: counted under its reason. */
void vb_udp_drop(enum vb_reason reason, const struct vb_run *run);

#endif

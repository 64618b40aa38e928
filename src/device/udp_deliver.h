/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A packet from the wire finds its queue pair: here, in another engine, in another process of this host. */
#ifndef VB_DEVICE_UDP_DELIVER_H
#define VB_DEVICE_UDP_DELIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/run.h"

struct vb_engine;

/* Sink of vb_udp_receive(); `arg` is the engine that is being driven (its lock is held). */
void vb_udp_deliver(void *arg, const struct vb_run *run, const uint8_t *payload);

/* Under the engine's lock: what other engines' drives left for this one. True if there was anything. */
bool vb_udp_inbox_serve(struct vb_engine *engine);
/* An engine gets its first queue pair on this link; -ENOMEM. And: the engine is gone from every list. */
int vb_udp_inbox_create(struct vb_engine *engine);
void vb_udp_inbox_destroy(struct vb_engine *engine);

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Strays: packets that the kernel gave to this process's socket, and that are for a queue pair of
 * another process of the host. They are passed on through shared memory. The first ones wait until
 * contact with that process is made, because datagrams are not sent again.
 *
 * One for each engine, made with the first stray. Under the engine's lock unless said.
 */
#ifndef VB_REMOTE_STRAY_H
#define VB_REMOTE_STRAY_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/run.h"

struct vb_channel;
struct vb_engine;
struct vb_strays;

/*
 * Passes the packet on, or keeps a copy until that can be done. It does not overtake waiting
 * packets for the same queue pair.
 */
void vb_udp_stray(struct vb_engine *engine, const struct vb_run *run, const uint8_t *payload);
/*
 * Passes on packets that waited for contact, drops those that have waited too long. True if one of
 * them is gone now.
 */
bool vb_udp_stray_late(struct vb_engine *engine);
/* Whether a packet waits for contact. */
bool vb_udp_stray_waits(const struct vb_engine *engine);
/* The channel is gone. */
void vb_udp_stray_forget(struct vb_engine *engine, const struct vb_channel *channel);
/*
 * The engine is about to end; without its lock. Packets that still wait for contact are given to
 * the keeper: the caller does not wait for contact.
 */
void vb_udp_stray_finish(struct vb_engine *engine);
/* Frees what is there. */
void vb_udp_stray_fini(struct vb_engine *engine);
/*
 * An engine without a queue that only passes packets on when the engine that received them has
 * ended. The progress thread drives it. NULL: no memory.
 */
struct vb_engine *vb_udp_stray_keeper(void);
/* Without locks: whether the keeper has packets left. */
bool vb_udp_stray_kept(void);

#endif

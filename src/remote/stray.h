/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Strays: packets that the kernel gave to this process's socket, but that are for a queue pair of another process of the
 * host. They are passed on through shared memory. The first ones wait for contact with that process to be made: datagrams are
 * not sent again by anybody.
 *
 * One per engine, made with the first stray; under the engine's lock unless said.
 */
#ifndef VB_REMOTE_STRAY_H
#define VB_REMOTE_STRAY_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/run.h"

struct vb_channel;
struct vb_engine;
struct vb_strays;

/* Passes the packet on, or keeps a copy until that can be done. Not before those for the same queue pair that wait. */
void vb_udp_stray(struct vb_engine *engine, const struct vb_run *run, const uint8_t *payload);
/* Passes on what waited for contact, drops what has waited too long. True if any of it is gone now. */
bool vb_udp_stray_late(struct vb_engine *engine);
/* Does something wait for contact? */
bool vb_udp_stray_waits(const struct vb_engine *engine);
/* The channel is gone. */
void vb_udp_stray_forget(struct vb_engine *engine, const struct vb_channel *channel);
/* The engine is about to go; without its lock. What still waits for contact is handed to the keeper: nobody waits for contact here. */
void vb_udp_stray_finish(struct vb_engine *engine);
/* Frees what there is. */
void vb_udp_stray_fini(struct vb_engine *engine);
/* An engine without a queue that only passes packets on, driven by the progress thread, when the one that received them has ended. NULL: no memory. */
struct vb_engine *vb_udp_stray_keeper(void);
/* Without locks: has the keeper anything left? */
bool vb_udp_stray_kept(void);

#endif

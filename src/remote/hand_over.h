/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets that one engine's drive has read from the socket for another engine of the process wait in
 * that engine's inbox. What an inbox has no room for stays in the socket, whose buffer is larger.
 */
#ifndef VB_REMOTE_HAND_OVER_H
#define VB_REMOTE_HAND_OVER_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/run.h"

struct vb_engine;

/* Under the drain lock. `owner`: index of the engine. Drops the packet if it cannot be kept. */
void vb_udp_hand_over(uint32_t owner, const struct vb_run *run, const uint8_t *payload);

/* Under the engine's lock: delivers what was handed over to it. True if anything was. */
bool vb_udp_handed_over(struct vb_engine *engine);

/*
 * Under the drain lock: whether the socket may be read. False: an engine does not take in what it
 * has, and is waited for (20 ms at most).
 */
bool vb_udp_hand_over_may(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For which engines the doorbell rang.
 *
 * A process has one doorbell and perhaps thousands of engines. Who rings notes in his own page first for which engine of which process
 * (struct vb_page_bells), so that the one who is woken looks after that engine alone. Calls from within the process go straight to its
 * table of called engines. All functions are thread-safe unless said.
 */
#ifndef VB_HOST_BELL_H
#define VB_HOST_BELL_H

#include <stdbool.h>
#include <stdint.h>

struct vb_node;
struct vb_peer;

/* The progress thread is to look after this engine of ours when it looks next; does not wake it. */
void vb_bell_call(struct vb_node *node, uint32_t engine);
/* Engines 64 * word and following that were called since the last time. Progress thread. */
uint64_t vb_bell_take(struct vb_node *node, uint32_t word);
/* Some peer rang more often than its notes reach back: every engine is to be looked after. Progress thread; tells once. */
bool vb_bell_lost(struct vb_node *node);

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engines that the doorbell rang for.
 *
 * A process has one doorbell and perhaps thousands of engines. A process that rings first notes in
 * its own page which engine of which process it rings for (struct vb_page_bells), so that the woken
 * process serves that engine alone. Calls from within the process go straight to its table of
 * called engines. All functions are thread-safe unless said.
 */
#ifndef VB_HOST_BELL_H
#define VB_HOST_BELL_H

#include <stdbool.h>
#include <stdint.h>

struct vb_node;
struct vb_peer;

/*
 * The engine sleeps. True: its senders have no fence of their own, so vb_bell_senders_pass() is to
 * follow, once for as many engines as fall asleep together. Called under the engine's lock. When both
 * have returned, whoever pushes finds out in vb_channel_wake(), or has pushed before, so that the
 * caller's next look sees the message.
 */
bool vb_bell_engine_sleeps(struct vb_node *node, uint32_t engine);
void vb_bell_senders_pass(void);

/*
 * The progress thread is to serve this engine of this process when it looks next. Does not wake it.
 */
void vb_bell_call(struct vb_node *node, uint32_t engine);
/* The engines 64 * word and following that were called since the last time. Progress thread. */
uint64_t vb_bell_take(struct vb_node *node, uint32_t word);
/*
 * A peer has rung more often than its notes reach back: every engine is to be served. Progress
 * thread; true once.
 */
bool vb_bell_lost(struct vb_node *node);

#endif

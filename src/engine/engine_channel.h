/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An engine's channels: taking new ones up, losing them. All under the engine's lock. */
#ifndef VB_ENGINE_ENGINE_CHANNEL_H
#define VB_ENGINE_ENGINE_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

struct vb_channel;
struct vb_engine;
struct vb_qp;

/* New channel ends (vb_engines_adopt) join the list. Returns how many. */
uint32_t vb_engine_take_channels(struct vb_engine *engine);
/* The engine is about to end: closes the channels of its list. No queue pair is left. */
void vb_engine_close_channels(struct vb_engine *engine);

/*
 * Under the lock: a slot was pushed into the channel. vb_engine_flush() rings the doorbells that
 * need it.
 */
void vb_engine_pushed(struct vb_engine *engine, struct vb_channel *channel);
void vb_engine_flush(struct vb_engine *engine);
/*
 * Under the lock: the channel has ended (its peer died, or the remote engine closed it): tells the
 * queue pairs and closes this end.
 */
void vb_engine_lose_channel(struct vb_engine *engine, struct vb_channel *channel, bool peer_dead);

/*
 * The channel that a connected queue pair takes from now on; NULL: none. The channel knows its queue
 * pairs, so that its end looks at them alone.
 */
void vb_engine_set_channel(struct vb_qp *qp, struct vb_channel *channel);

#endif

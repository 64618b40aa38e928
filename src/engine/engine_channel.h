/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An engine's channels: taking new ones up, losing them. All under the engine's lock. */
#ifndef VB_ENGINE_ENGINE_CHANNEL_H
#define VB_ENGINE_ENGINE_CHANNEL_H

#include <stdbool.h>

struct vb_channel;
struct vb_engine;

/* New channel ends (vb_engines_adopt) join the list. */
void vb_engine_take_channels(struct vb_engine *engine);
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

#endif

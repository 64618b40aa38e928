/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An engine's channels: taking new ones up, losing them. All under the engine's lock. */
#ifndef VB_ENGINE_ENGINE_CHANNEL_H
#define VB_ENGINE_ENGINE_CHANNEL_H

#include <stdbool.h>

struct vb_engine;

/* New channel ends (vb_engine_adopt) join the list. */
void vb_engine_take_channels(struct vb_engine *engine);
/* The engine is about to end: closes the channels of its list. No queue pair is left. */
void vb_engine_close_channels(struct vb_engine *engine);

#endif

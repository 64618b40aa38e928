/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Engines: creation and end. */
#ifndef VB_ENGINE_ENGINE_LIFE_H
#define VB_ENGINE_ENGINE_LIFE_H

#include <stdbool.h>

struct ibv_device;
struct vb_engine;

/*
 * `device`: for whose port it counts (NULL: none). `leans`: the engine's lock may lean towards a
 * thread (base/bias.h).
 */
int vb_engine_create(struct vb_engine **engine, const struct ibv_device *device, bool leans);
/* No queue pair is left. Takes the engine off the process's list and closes its channels. */
void vb_engine_destroy(struct vb_engine *engine);

#endif

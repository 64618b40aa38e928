/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How the process's work was done: direct access, rings to other processes, rings within the
 * process.
 */
#ifndef VB_ENGINE_PATHS_H
#define VB_ENGINE_PATHS_H

#include "engine/engine.h"

/* An engine ends: adds its counts to the process's sum. */
void vb_paths_keep(const struct vb_paths *paths);
/* The process's sum so far, with the engines that exist. */
void vb_paths_sum(struct vb_paths *sum);
/* Writes one line at level info, when a context is closed. */
void vb_paths_log(const char *device);

#endif

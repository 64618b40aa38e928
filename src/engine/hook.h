/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What rooms above have to do when an engine is driven: they register it here. progress.h is the
 * same for the progress thread.
 */
#ifndef VB_ENGINE_HOOK_H
#define VB_ENGINE_HOOK_H

#include <stdbool.h>
#include <stdint.h>

struct vb_engine;
struct vb_run;

/*
 * A hook of an engine, embedded in the object that it serves. Both functions may be NULL. Under the
 * engine's lock.
 */
struct vb_engine_hook {
	struct vb_engine_hook *next;
	/* In each drive: takes in what has come. True if something had. */
	bool (*drain)(struct vb_engine_hook *hook);
	/* Takes a slot that another process hands over. Its content was decoded and not judged. */
	void (*handed)(struct vb_engine_hook *hook, const struct vb_run *run, const void *payload);
};

void vb_engine_hook_add(struct vb_engine *engine, struct vb_engine_hook *hook);
void vb_engine_hook_remove(struct vb_engine *engine, struct vb_engine_hook *hook);

#endif

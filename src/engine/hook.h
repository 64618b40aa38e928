/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What rooms above have to do when an engine is driven: they register it here. For the progress thread there is progress.h. */
#ifndef VB_ENGINE_HOOK_H
#define VB_ENGINE_HOOK_H

#include <stdbool.h>
#include <stdint.h>

struct vb_engine;
struct vb_run;

/* Something that an engine serves beside its channels; embedded in what it is of. Both functions may be NULL. Engine's lock. */
struct vb_engine_hook {
	struct vb_engine_hook *next;
	/* Each drive: takes in what has come. True: something had. */
	bool (*drain)(struct vb_engine_hook *hook);
	/* A slot that another process hands over; what is in it was only decoded. */
	void (*handed)(struct vb_engine_hook *hook, const struct vb_run *run, const void *payload);
};

void vb_engine_hook_add(struct vb_engine *engine, struct vb_engine_hook *hook);
void vb_engine_hook_remove(struct vb_engine *engine, struct vb_engine_hook *hook);

#endif

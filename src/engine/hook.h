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
	/*
	 * Takes a run for a number of this engine that no queue pair has. Its content was decoded
	 * and not judged. `wire`: it came from another host, perhaps by way of another process.
	 * False: it is not the hook's.
	 */
	bool (*numbered)(struct vb_engine_hook *hook, const struct vb_run *run, const void *payload,
			 bool wire);
};

void vb_engine_hook_add(struct vb_engine *engine, struct vb_engine_hook *hook);
void vb_engine_hook_remove(struct vb_engine *engine, struct vb_engine_hook *hook);

/* No queue pair has the number run->dest_qpn. True: a hook has taken the run. */
bool vb_engine_hooks_take(struct vb_engine *engine, const struct vb_run *run, const void *payload,
			  bool wire);

#endif

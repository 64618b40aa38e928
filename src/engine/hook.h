/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What rooms above have to do when an engine is driven, or the progress thread looks: they register it here. */
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

/* Something that the progress thread does now and then. */
struct vb_duty {
	/* Does what is due; when the next time is (CLOCK_MONOTONIC ns), 0: nothing is planned. */
	uint64_t (*serve)(void);
	struct vb_duty *next;
};

/* While the library is loaded. */
void vb_duty_register(struct vb_duty *duty);
/* Serves all of them; the earliest next time, 0: none. */
uint64_t vb_duties_serve(void);

/* Registers the duty of this file when the library is loaded: VB_DUTY(function); */
#define VB_DUTY(function)                                       \
	static struct vb_duty duty;                             \
	__attribute__((constructor)) static void duty_add(void) \
	{                                                       \
		vb_duty_register(&duty);                        \
	}                                                       \
	static struct vb_duty duty = {.serve = (function)}

#endif

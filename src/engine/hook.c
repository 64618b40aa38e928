/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What other rooms have registered with an engine, and with the progress thread. */
#include "engine/hook.h"

#include <stddef.h>

#include "engine/engine.h"

static struct vb_duty *duties; /* changes only while the library is loaded */

void vb_engine_hook_add(struct vb_engine *e, struct vb_engine_hook *hook)
{
	hook->next = e->hooks;
	e->hooks = hook;
}

void vb_engine_hook_remove(struct vb_engine *e, struct vb_engine_hook *hook)
{
	for (struct vb_engine_hook **at = &e->hooks; *at; at = &(*at)->next) {
		if (*at == hook) {
			*at = hook->next;
			return;
		}
	}
}

void vb_duty_register(struct vb_duty *duty)
{
	duty->next = duties;
	duties = duty;
}

uint64_t vb_duties_serve(void)
{
	uint64_t earliest = 0;

	for (struct vb_duty *duty = duties; duty; duty = duty->next) {
		uint64_t at = duty->serve();

		if (at && (!earliest || at < earliest))
			earliest = at;
	}
	return earliest;
}

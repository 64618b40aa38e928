/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The hooks that other rooms have registered with an engine. */
#include "engine/hook.h"

#include <stddef.h>

#include "engine/engine.h"

void vb_engine_hook_add(struct vb_engine *e, struct vb_engine_hook *hook)
{
	vb_lock_assert_held(&e->lock);
	hook->next = e->hooks;
	e->hooks = hook;
}

void vb_engine_hook_remove(struct vb_engine *e, struct vb_engine_hook *hook)
{
	vb_lock_assert_held(&e->lock);
	for (struct vb_engine_hook **at = &e->hooks; *at; at = &(*at)->next) {
		if (*at == hook) {
			*at = hook->next;
			return;
		}
	}
}

bool vb_engine_hooks_take(struct vb_engine *e, const struct vb_run *run, const void *payload,
			  bool wire)
{
	for (struct vb_engine_hook *h = e->hooks; h; h = h->next) {
		if (h->numbered && h->numbered(h, run, payload, wire))
			return true;
	}
	return false;
}

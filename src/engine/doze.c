/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Engines that fall asleep together (doze.h). */
#include "engine/doze.h"

#include "engine/drive.h"
#include "engine/engine.h"
#include "engine/engines.h"
#include "host/bell.h"

void vb_doze_add(struct vb_doze *d, struct vb_engine *e)
{
	d->owes |= vb_engine_sleep_begin(e);
	d->engine[d->count++] = e->index;
}

/* False: another thread is in the engine. It may have looked before the barrier. */
static bool look_once_more(struct vb_node *node, uint32_t index)
{
	struct vb_engine *e = vb_engines_hold(index);
	bool entered;

	if (!e)
		return true;
	entered = vb_engine_try(e);
	if (entered) {
		vb_engine_sleep_end(e);
		vb_lock_release(&e->lock);
	} else {
		vb_bell_call(node, index);
	}
	vb_engines_release(e);
	return entered;
}

bool vb_doze_end(struct vb_doze *d, struct vb_node *node)
{
	bool all = true;

	if (d->owes)
		vb_bell_senders_pass();
	for (uint32_t i = 0; i < d->count; i++)
		all &= look_once_more(node, d->engine[i]);
	d->count = 0;
	d->owes = false;
	return all;
}

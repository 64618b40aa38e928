/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The engine of a thread domain. */
#include "engine/td_engine.h"

#include "base/lock.h"
#include "engine/engine.h"
#include "engine/engine_life.h"
#include "object/td.h"

int vb_td_engine(struct vb_td *t, struct vb_engine **engine)
{
	int err = 0;

	vb_mutex_take(&t->lock, VB_ORDER_THREAD_DOMAIN);
	if (!t->engine)
		err = vb_engine_create(&t->engine, t->td.context->device, true);
	t->engine_end = vb_engine_destroy;
	*engine = t->engine;
	vb_mutex_release(&t->lock);
	return err;
}

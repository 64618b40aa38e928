/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Engines: creation and end. */
#include "engine/engine_life.h"

#include <errno.h>

#include "base/reason.h"
#include "device/counters.h"
#include "engine/engine.h"
#include "engine/engine_channel.h"
#include "engine/engines.h"
#include "engine/link.h"
#include "engine/paths.h"
#include "process/process.h"

static void life_step(struct vb_engine *e)
{
	vb_lock_take(&e->lock);
	__atomic_store_n(&e->life, e->life + 1, __ATOMIC_RELAXED);
	vb_lock_release(&e->lock);
}

static void count_for(struct vb_engine *e, const struct ibv_device *device)
{
	e->counters = vb_counters_take(device ? device->name : NULL);
	e->port = e->counters ? &e->counters->block->c : NULL;
}

static void count_no_more(struct vb_engine *e)
{
	if (e->counters)
		vb_counters_give_back(e->counters);
}

int vb_engine_create(struct vb_engine **engine, const struct ibv_device *device, bool leans)
{
	struct vb_engine *e = vb_engines_new(leans);
	int err;

	if (!e)
		return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "engine");
	count_for(e, device);
	err = vb_process_node(&e->node);
	if (!err && leans)
		err = vb_bias_allow(&e->lock);
	if (!err)
		err = vb_node_engine_alloc(e->node, &e->index);
	if (err) {
		count_no_more(e);
		vb_engines_give_back(e);
		return err;
	}
	e->pub = &vb_node_page(e->node)->engine[e->index];
	__atomic_store_n(&e->pub->asleep, 1, __ATOMIC_SEQ_CST);
	vb_engine_join_links(e);
	e->used = false;
	life_step(e);
	vb_engines_add(e);
	*engine = e;
	return 0;
}

void vb_engine_destroy(struct vb_engine *e)
{
	for (uint32_t i = 0; i < e->num_links; i++) {
		if (e->link[i]->leave)
			e->link[i]->leave(e);
	}
	/* A thread that polled it once and looks at it now finds it gone (poll_others.c). */
	life_step(e);
	vb_engines_remove(e);
	vb_engine_close_channels(e);
	vb_paths_keep(&e->paths);
	for (uint32_t i = 0; i < e->num_links; i++) {
		if (e->link[i]->fini)
			e->link[i]->fini(e);
	}
	vb_node_engine_free(e->node, e->index);
	count_no_more(e);
	vb_engines_give_back(e);
}

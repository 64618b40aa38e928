/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* DEVICE_REMOVAL and ADDR_CHANGE. */
#include "rdmacm/removal.h"

#include <stdatomic.h>

#include "base/lock.h"
#include "gsi/gsi.h"
#include "rdmacm/face.h"
#include "rdmacm/id.h"
#include "rdmacm/id_list.h"
#include "rdmacm/manager.h"

static atomic_bool due;

struct sweep {
	struct vb_cm *cm;
	uint32_t done; /* the interface that the core was told of last: many ids have the same */
};

static void look_at(const struct vb_cma_place *place, struct vb_gsi_device_state *state)
{
	vb_gsi_device_look(place->verbs->device, place->gid.raw, state);
}

static bool has_moved(const struct vb_cma_place *place, const struct vb_gsi_device_state *state)
{
	return place->moves != state->moves || (!state->has_address && !place->left);
}

void vb_cma_removal_check(const struct vb_cma_place *place)
{
	struct vb_gsi_device_state state;

	look_at(place, &state);
	if (!state.gone && !has_moved(place, &state))
		return;
	atomic_store(&due, true);
	vb_gsi_kick();
}

bool vb_cma_removal_is_due(void)
{
	return atomic_load(&due) && atomic_exchange(&due, false);
}

/* With the locks of the core, the list and the id. The event was reserved when the id was bound. */
static void remove_device(struct sweep *s, struct vb_cma_id *id)
{
	struct vb_cma_event *event;

	id->state = VB_CMA_REMOVED;
	if (s->done != id->place.ifindex)
		vb_cm_device_lost(s->cm, id->place.ifindex);
	s->done = id->place.ifindex;
	event = vb_cma_event_take_locked(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	if (event)
		vb_cma_event_post_locked(id, event);
}

/* A hint. Where there is no memory for the event, the next change brings it. */
static void note_move(struct vb_cma_id *id, const struct vb_gsi_device_state *state)
{
	struct vb_cma_event *event = NULL;

	if (has_moved(&id->place, state)) {
		event = vb_cma_event_alloc(id, RDMA_CM_EVENT_ADDR_CHANGE, 0);
		if (!event)
			return;
	}
	id->place.moves = state->moves;
	id->place.left = !state->has_address;
	if (event)
		vb_cma_event_post_locked(id, event);
}

static void sweep_id(struct vb_cma_id *id, void *sweep)
{
	struct vb_gsi_device_state state;

	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	if (id->place.device && id->state != VB_CMA_REMOVED) {
		look_at(&id->place, &state);
		if (state.gone)
			remove_device(sweep, id);
		else
			note_move(id, &state);
	}
	vb_mutex_release(&id->lock);
}

void vb_cma_removal(void)
{
	struct sweep s = {.cm = vb_cma_manager_take()};

	vb_cma_id_list_each(sweep_id, &s);
	vb_cma_manager_release();
}

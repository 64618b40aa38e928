/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* DEVICE_REMOVAL. */
#include "rdmacm/removal.h"

#include <stdatomic.h>
#include <stdlib.h>

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

void vb_cma_removal_check(const struct vb_cma_place *place)
{
	if (!vb_gsi_device_is_gone(place->verbs->device))
		return;
	atomic_store(&due, true);
	vb_gsi_kick();
}

bool vb_cma_removal_is_due(void)
{
	return atomic_load(&due) && atomic_exchange(&due, false);
}

/* With the locks of the core, the list and the id. An id whose event finds no memory gets it never. */
static void remove_device(struct sweep *s, struct vb_cma_id *id)
{
	struct vb_cma_event *event = vb_cma_event_alloc(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);

	id->state = VB_CMA_REMOVED;
	if (s->done != id->place.ifindex)
		vb_cm_device_lost(s->cm, id->place.ifindex);
	s->done = id->place.ifindex;
	if (event)
		vb_cma_event_post_locked(id, event);
	else
		vb_note(VB_REASON_NO_MEMORY, "an event of the connection manager is lost");
}

static void look_at(struct vb_cma_id *id, void *sweep)
{
	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	if (id->place.device && id->state != VB_CMA_REMOVED &&
	    vb_gsi_device_is_gone(id->place.verbs->device))
		remove_device(sweep, id);
	vb_mutex_release(&id->lock);
}

void vb_cma_removal(void)
{
	struct sweep s = {.cm = vb_cma_manager_take()};

	vb_cma_id_list_each(look_at, &s);
	vb_cma_manager_release();
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Waiting for the event of a synchronous call. */
#include "rdmacm/sync.h"

#include "rdmacm/face.h"
#include "rdmacm/id.h"

void vb_cma_sync_ack(struct vb_cma_id *id)
{
	struct rdma_cm_event *event = id->pub.event;

	id->pub.event = NULL;
	if (event)
		vb_cma_event_ack(vb_cma_event_of(event));
}

int vb_cma_sync_wait(struct vb_cma_id *id)
{
	const struct rdma_cm_event *event;

	if (!id->sync)
		return 0;
	vb_cma_sync_ack(id);
	if (rdma_get_cm_event(id->pub.channel, &id->pub.event))
		return -errno;
	event = id->pub.event;
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		return -ENODEV;
	if (!event->status)
		return 0;
	if (event->event == RDMA_CM_EVENT_REJECTED)
		return -ECONNREFUSED;
	return event->status < 0 ? event->status : -event->status;
}

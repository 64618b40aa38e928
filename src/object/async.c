/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Asynchronous events: raising, dropping, fetching. */
#include "object/async.h"

#include <errno.h>
#include <string.h>

#include "base/reason.h"
#include "object/context.h"
#include "process/process.h"

void vb_async_raise(struct ibv_context *ctx, struct vb_event_node *node)
{
	vb_event_queue_raise(&vb_context_of(ctx)->async, node);
}

void vb_async_drop(struct ibv_context *ctx, struct vb_event_node *node)
{
	vb_event_queue_drop(&vb_context_of(ctx)->async, node);
}

static void set_element(struct ibv_async_event *event, void *object)
{
	switch (event->event_type) {
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_GID_CHANGE:
	case IBV_EVENT_DEVICE_FATAL:
		event->element.port_num = (int)(uintptr_t)object;
		break;
	default:
		event->element.qp = object; /* stands for any of the pointers */
	}
}

int vb_async_get(struct ibv_context *ctx, struct ibv_async_event *event)
{
	struct vb_event_node node;
	int err;

	/*
	 * A program that asks for events expects those of the link as well, which the progress
	 * thread monitors. Without that thread the other events still come.
	 */
	(void)vb_process_start_progress();
	err = vb_event_queue_take(&vb_context_of(ctx)->async, &node);
	if (err == -EAGAIN || err == -EINTR)
		return err;
	if (err)
		return vb_refuse(-err, VB_REASON_SYSTEM, "get_async_event: descriptor %d: %s",
				 ctx->async_fd, strerror(-err));
	memset(event, 0, sizeof(*event));
	event->event_type = (enum ibv_event_type)node.type;
	set_element(event, node.object);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Parts of queue pairs: allocating and freeing them, and affiliated events. */
#include "qp/parts.h"

#include <errno.h>
#include <stdlib.h>

#include "base/reason.h"
#include "object/context.h"

static const enum ibv_event_type raised[VB_QP_EVENTS] = {
	IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR,
	IBV_EVENT_COMM_EST, IBV_EVENT_SQ_DRAINED, IBV_EVENT_QP_LAST_WQE_REACHED,
};

static int no_memory(void)
{
	return vb_refuse(ENOMEM, VB_REASON_NO_MEMORY, "create_qp");
}

int vb_qp_attrs_alloc(struct vb_qp *qp)
{
	qp->attrs = calloc(1, sizeof(*qp->attrs));
	return qp->attrs ? 0 : no_memory();
}

int vb_qp_events_alloc(struct vb_qp *qp)
{
	struct vb_qp_events *events = calloc(1, sizeof(*events));

	qp->events = events;
	if (!events)
		return no_memory();
	for (int i = 0; i < VB_QP_EVENTS; i++) {
		events->node[i].type = raised[i];
		events->node[i].object = &qp->u.qp;
		events->node[i].got = &events->got.async;
	}
	return 0;
}

void vb_qp_parts_free(struct vb_qp *qp)
{
	free(qp->attrs);
	free(qp->events);
	free(qp->builder);
	free(qp->counters);
}

void vb_qp_raise(struct vb_qp *qp, enum ibv_event_type type)
{
	for (int i = 0; i < VB_QP_EVENTS; i++) {
		if (raised[i] == type)
			vb_event_queue_raise(&vb_context_of(qp->u.qp.context)->async,
					     &qp->events->node[i]);
	}
}

void vb_qp_events_end(struct vb_qp *qp, struct vb_events_got *got)
{
	for (int i = 0; i < VB_QP_EVENTS; i++)
		vb_event_queue_drop(&vb_context_of(qp->u.qp.context)->async, &qp->events->node[i]);
	*got = qp->events->got;
}

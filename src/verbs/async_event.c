/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Asynchronous events: ibv_get_async_event(3), ibv_ack_async_event(3). */
#include "verbs/events_wait.h"
#include "verbs/face.h"

VB_EXPORT int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	struct ibv_async_event found = {0};
	int err;

	if (!ctx || !event)
		return vb_answer_minus_one(vb_refuse_null("get_async_event", "an argument"));
	err = vb_ops(ctx)->get_async_event(ctx, &found);
	if (!err)
		*event = found;
	return vb_answer_minus_one(err);
}

static void ack_cq(struct ibv_cq *cq)
{
	vb_acks_add((struct vb_acks){&cq->mutex, &cq->cond, &cq->async_events_completed}, 1);
}

static void ack_qp(struct ibv_qp *qp)
{
	vb_acks_add((struct vb_acks){&qp->mutex, &qp->cond, &qp->events_completed}, 1);
}

static void ack_srq(struct ibv_srq *srq)
{
	vb_acks_add((struct vb_acks){&srq->mutex, &srq->cond, &srq->events_completed}, 1);
}

static void ack_wq(struct ibv_wq *wq)
{
	vb_acks_add((struct vb_acks){&wq->mutex, &wq->cond, &wq->events_completed}, 1);
}

/* ibv_destroy_*(3) does not wait for events of a port or a device, so these are not counted. */
VB_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	if (!event)
		return;
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		ack_cq(event->element.cq);
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		ack_qp(event->element.qp);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		ack_srq(event->element.srq);
		break;
	case IBV_EVENT_WQ_FATAL:
		ack_wq(event->element.wq);
		break;
	default:
		break;
	}
}

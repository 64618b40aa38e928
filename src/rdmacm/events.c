/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Events: rdma_get_cm_event(3), rdma_ack_cm_event(3), rdma_write_cm_event(3). */
#include "rdmacm/event.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/lock.h"
#include "rdmacm/channel.h"
#include "rdmacm/face.h"
#include "rdmacm/fork.h"
#include "rdmacm/id.h"

static struct vb_cma_event *begin(struct vb_cma_event *event, struct vb_cma_id *id,
				  enum rdma_cm_event_type type, int status)
{
	if (!event)
		return NULL;
	event->pub.id = &id->pub;
	event->pub.event = type;
	event->pub.status = status;
	return event;
}

struct vb_cma_event *vb_cma_event_alloc(struct vb_cma_id *id, enum rdma_cm_event_type type,
					int status)
{
	return begin(calloc(1, sizeof(struct vb_cma_event)), id, type, status);
}

int vb_cma_event_reserve(struct vb_cma_id *id, unsigned int count)
{
	int err = 0;

	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	while (id->reserved < count && !err) {
		struct vb_cma_event *event = calloc(1, sizeof(*event));

		if (event) {
			event->next = id->reserve;
			id->reserve = event;
			id->reserved++;
		} else {
			err = -ENOMEM;
		}
	}
	vb_mutex_release(&id->lock);
	return err;
}

void vb_cma_event_unreserve(struct vb_cma_id *id)
{
	struct vb_cma_event *event;

	while ((event = id->reserve)) {
		id->reserve = event->next;
		free(event);
	}
}

struct vb_cma_event *vb_cma_event_take_locked(struct vb_cma_id *id, enum rdma_cm_event_type type,
					      int status)
{
	struct vb_cma_event *event = calloc(1, sizeof(*event));

	if (!event && id->reserve) {
		event = id->reserve;
		id->reserve = event->next;
		id->reserved--;
		event->next = NULL;
	}
	return begin(event, id, type, status);
}

/* With counted's lock. */
static void list_append(struct vb_cma_id *counted, struct vb_cma_event *event)
{
	event->place = counted->events_end;
	event->next = NULL;
	*event->place = event;
	counted->events_end = &event->next;
}

static void list_remove(struct vb_cma_event *event)
{
	*event->place = event->next;
	if (event->next)
		event->next->place = event->place;
	else
		event->counted->events_end = event->place;
	event->next = NULL;
	event->place = NULL;
}

void vb_cma_event_post_locked(struct vb_cma_id *counted, struct vb_cma_event *event)
{
	event->counted = counted;
	event->node.object = event;
	event->node.got = &event->taken;
	list_append(counted, event);
	vb_event_queue_raise(&counted->channel->queue, &event->node);
}

void vb_cma_event_post(struct vb_cma_id *counted, struct vb_cma_event *event)
{
	vb_mutex_take(&counted->lock, VB_ORDER_CM_ID);
	vb_cma_event_post_locked(counted, event);
	vb_mutex_release(&counted->lock);
}

struct vb_cma_event *vb_cma_event_withdraw(struct vb_cma_id *id)
{
	struct vb_cma_event *unread = NULL, **end = &unread;
	struct vb_cma_event *event, *next;

	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	for (event = id->events; event; event = next) {
		next = event->next;
		vb_event_queue_drop(&id->channel->queue, &event->node);
		if (event->taken)
			continue;
		list_remove(event);
		*end = event;
		end = &event->next;
	}
	vb_mutex_release(&id->lock);
	return unread;
}

bool vb_cma_event_waits(struct vb_cma_id *id)
{
	const struct vb_cma_event *event;

	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	for (event = id->events; event && event->taken;)
		event = event->next;
	vb_mutex_release(&id->lock);
	return event;
}

/* Waits for the events of the group, or for all. */
static void wait_acks(struct vb_cma_id *id, const struct vb_cma_group *group)
{
	int state;

	/* The id is half destroyed or moved: a cancelled thread ends afterwards. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	for (;;) {
		const struct vb_cma_event *event = id->events;

		while (event && (!event->taken || (group && event->group != group)))
			event = event->next;
		if (!event)
			break;
		pthread_cond_wait(&id->acked, &id->lock);
	}
	vb_mutex_release(&id->lock);
	pthread_setcancelstate(state, NULL);
}

void vb_cma_event_wait_acks(struct vb_cma_id *id)
{
	wait_acks(id, NULL);
}

void vb_cma_event_forget_group(struct vb_cma_id *id, const struct vb_cma_group *group)
{
	struct vb_cma_event *event, *next;

	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	for (event = id->events; event; event = next) {
		next = event->next;
		if (event->group != group)
			continue;
		vb_event_queue_drop(&id->channel->queue, &event->node);
		if (event->taken)
			continue;
		list_remove(event);
		free(event);
	}
	vb_mutex_release(&id->lock);
	wait_acks(id, group);
}

void vb_cma_event_ack(struct vb_cma_event *event)
{
	struct vb_cma_id *counted = event->counted;

	vb_mutex_take(&counted->lock, VB_ORDER_CM_ID);
	list_remove(event);
	pthread_cond_broadcast(&counted->acked);
	vb_mutex_release(&counted->lock);
	free(event);
}

static void let_go(void *channel)
{
	vb_cma_channel_put(channel);
}

/* Programs cancel threads that wait for events (pthread_cancel(3)), and destroy channels meanwhile. */
static int take_node(struct vb_cma_channel *channel, struct vb_event_node *node)
{
	int err;

	vb_cma_channel_get(channel);
	pthread_cleanup_push(let_go, channel);
	err = vb_event_queue_take(&channel->queue, node);
	pthread_cleanup_pop(1);
	return err;
}

static int get_event(struct vb_cma_channel *channel, struct vb_cma_event **event)
{
	struct vb_event_node node;
	int err = vb_cma_check_generation(channel->generation, "get_cm_event");

	while (!err) {
		err = take_node(channel, &node);
		if (err)
			break;
		*event = node.object;
		if (!(*event)->arrive || (*event)->arrive(*event))
			break;
		vb_cma_event_ack(*event);
	}
	return err;
}

VB_EXPORT int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct vb_cma_event *got = NULL;
	int err;

	if (!channel || !event)
		return vb_cma_answer(vb_cma_refuse_null("get_cm_event", "an argument"));
	err = get_event(vb_cma_channel_of(channel), &got);
	if (!err)
		*event = &got->pub;
	return vb_cma_answer(err);
}

VB_EXPORT int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	if (!event)
		return vb_cma_answer(vb_cma_refuse_null("ack_cm_event", "event"));
	vb_cma_event_ack(vb_cma_event_of(event));
	return 0;
}

VB_EXPORT int rdma_write_cm_event(struct rdma_cm_id *pub, enum rdma_cm_event_type type, int status,
				  uint64_t arg)
{
	struct vb_cma_id *id = vb_cma_id_of(pub);
	struct vb_cma_event *event;
	int err = vb_cma_id_check(id, "write_cm_event");

	if (!err && type != RDMA_CM_EVENT_USER)
		err = vb_refuse(EINVAL, VB_REASON_ARG, "write_cm_event: event %d is not %s", type,
				rdma_event_str(RDMA_CM_EVENT_USER));
	if (err)
		return vb_cma_answer(err);
	event = vb_cma_event_alloc(id, type, status);
	if (!event)
		return vb_cma_answer(vb_cma_refuse_memory("write_cm_event"));
	event->pub.param.arg = arg;
	vb_cma_event_post(id, event);
	return 0;
}

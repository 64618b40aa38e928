/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Ids: rdma_create_id(3), rdma_destroy_id(3), rdma_migrate_id(3). */
#include "rdmacm/id.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/lock.h"
#include "rdmacm/addrinfo.h"
#include "rdmacm/face.h"
#include "rdmacm/fork.h"
#include "rdmacm/id_list.h"
#include "rdmacm/manager.h"
#include "rdmacm/multicast.h"
#include "rdmacm/port.h"
#include "rdmacm/sync.h"

const char *vb_cma_state_name(enum vb_cma_state state)
{
	static const char *const names[VB_CMA_STATES] = {
		[VB_CMA_IDLE] = "idle",
		[VB_CMA_BOUND] = "bound",
		[VB_CMA_ADDR_RESOLVED] = "address resolved",
		[VB_CMA_ROUTE_RESOLVED] = "route resolved",
		[VB_CMA_LISTENING] = "listening",
		[VB_CMA_CONNECTING] = "connecting",
		[VB_CMA_CONNECTED] = "connected",
		[VB_CMA_DISCONNECTED] = "disconnected",
		[VB_CMA_REMOVED] = "device removed",
	};

	return (unsigned int)state < VB_CMA_STATES ? names[state] : "unknown";
}

int vb_cma_id_check(const struct vb_cma_id *id, const char *call)
{
	if (!id)
		return vb_cma_refuse_null(call, "id");
	return vb_cma_check_generation(id->generation, call);
}

int vb_cma_id_refuse_state(const struct vb_cma_id *id, const char *call)
{
	return vb_refuse(EINVAL, VB_REASON_CMA_STATE, "%s: the id is in the state \"%s\"", call,
			 vb_cma_state_name(id->state));
}

int vb_cma_id_create(struct vb_cma_channel *channel, void *context, enum rdma_port_space ps,
		     enum ibv_qp_type type, struct vb_cma_id **id)
{
	struct vb_cma_id *made = calloc(1, sizeof(*made));
	int err = 0;

	if (!made)
		return vb_cma_refuse_memory("create_id");
	if (channel) {
		vb_cma_channel_get(channel);
	} else {
		made->sync = true;
		err = vb_cma_channel_create(&channel);
	}
	if (err) {
		free(made);
		return err;
	}
	pthread_mutex_init(&made->lock, NULL);
	pthread_cond_init(&made->acked, NULL);
	made->events_end = &made->events;
	made->channel = channel;
	made->generation = vb_cma_generation();
	made->pub.channel = &channel->pub;
	made->pub.context = context;
	made->pub.ps = ps;
	made->pub.qp_type = type;
	if (vb_cma_event_reserve(made, VB_CMA_EVENTS_OF_ID)) {
		vb_cma_id_free(made);
		return vb_cma_refuse_memory("create_id");
	}
	vb_cma_id_list_add(made);
	*id = made;
	return 0;
}

static int type_of(enum rdma_port_space ps, enum ibv_qp_type *type)
{
	switch (ps) {
	case RDMA_PS_TCP:
	case RDMA_PS_IB:
		*type = IBV_QPT_RC;
		return 0;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		*type = IBV_QPT_UD;
		return 0;
	}
	return vb_refuse(EINVAL, VB_REASON_ARG, "create_id: unknown port space 0x%x", ps);
}

VB_EXPORT int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id,
			     void *context, enum rdma_port_space ps)
{
	struct vb_cma_channel *queue = vb_cma_channel_of(channel);
	struct vb_cma_id *made = NULL;
	enum ibv_qp_type type;
	int err;

	if (!id)
		return vb_cma_answer(vb_cma_refuse_null("create_id", "id"));
	err = type_of(ps, &type);
	if (!err && queue)
		err = vb_cma_check_generation(queue->generation, "create_id");
	if (!err)
		err = vb_cma_devices_exist();
	if (!err)
		err = vb_cma_id_create(queue, context, ps, type, &made);
	if (!err)
		*id = &made->pub;
	return vb_cma_answer(err);
}

int vb_cma_id_make_sync(struct vb_cma_id *id)
{
	struct vb_cma_channel *from = id->channel, *own = NULL;
	int err = vb_cma_channel_create(&own);

	if (err)
		return err;
	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	id->channel = own;
	id->pub.channel = &own->pub;
	id->sync = true;
	vb_mutex_release(&id->lock);
	vb_cma_channel_put(from);
	return 0;
}

void vb_cma_id_leave_core(struct vb_cma_id *id)
{
	struct vb_cm *cm;

	vb_cma_id_list_remove(id); /* no DEVICE_REMOVAL from now on */
	if (!id->conn && !id->listener)
		return;
	cm = vb_cma_manager_take();
	if (id->listener)
		vb_cm_unlisten(cm, id->listener);
	if (id->conn)
		vb_cm_release(cm, id->conn, vb_clock_ns());
	id->conn = NULL;
	vb_cma_manager_release();
}

void vb_cma_id_free(struct vb_cma_id *id)
{
	vb_cma_id_list_remove(id);
	vb_cma_multicast_end(id);
	vb_cma_event_unreserve(id);
	vb_cma_channel_put(id->channel);
	vb_cma_place_put(&id->place);
	rdma_freeaddrinfo(id->info);
	free(id->listener);
	free(id->paths);
	free(id->ep_connect);
	pthread_cond_destroy(&id->acked);
	pthread_mutex_destroy(&id->lock);
	free(id);
}

/* Requests that the program has not read are rejected, and their ids go with them. */
static void drop_events(struct vb_cma_id *id)
{
	struct vb_cma_event *event = vb_cma_event_withdraw(id), *next;

	for (; event; event = next) {
		next = event->next;
		if (event->pub.event == RDMA_CM_EVENT_CONNECT_REQUEST)
			vb_cma_id_drop(vb_cma_id_of(event->pub.id));
		free(event);
	}
}

void vb_cma_id_drop(struct vb_cma_id *id)
{
	vb_cma_id_leave_core(id);
	drop_events(id);
	vb_cma_id_free(id);
}

VB_EXPORT int rdma_destroy_id(struct rdma_cm_id *pub)
{
	struct vb_cma_id *id = vb_cma_id_of(pub);
	int err = vb_cma_id_check(id, "destroy_id");

	if (err)
		return vb_cma_answer(err);
	vb_cma_id_leave_core(id);
	vb_cma_addrinfo_abandon(id);
	vb_cma_port_release(id);
	drop_events(id);
	vb_cma_sync_ack(id);
	vb_cma_event_wait_acks(id);
	vb_cma_id_free(id);
	return 0;
}

/* The unread events go along, in their order. */
static void move_events(struct vb_cma_id *id, struct vb_cma_channel *to)
{
	struct vb_cma_event *event;

	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	for (event = id->events; event; event = event->next)
		vb_event_queue_drop(&id->channel->queue, &event->node);
	id->channel = to;
	id->pub.channel = &to->pub;
	for (event = id->events; event; event = event->next) {
		if (!event->taken)
			vb_event_queue_raise(&to->queue, &event->node);
	}
	vb_mutex_release(&id->lock);
}

static int migrate(struct vb_cma_id *id, struct vb_cma_channel *to)
{
	struct vb_cma_channel *from = id->channel;
	bool sync = !to;
	int err = 0;

	if (sync && id->sync)
		return vb_refuse(EINVAL, VB_REASON_ARG,
				 "migrate_id: the id is synchronous already");
	if (to)
		err = vb_cma_check_generation(to->generation, "migrate_id");
	if (err)
		return err;
	if (to)
		vb_cma_channel_get(to);
	else
		err = vb_cma_channel_create(&to);
	if (err)
		return err;
	vb_cma_sync_ack(id);
	id->sync = sync;
	move_events(id, to);
	vb_cma_event_wait_acks(id);
	vb_cma_channel_put(from);
	return 0;
}

VB_EXPORT int rdma_migrate_id(struct rdma_cm_id *pub, struct rdma_event_channel *channel)
{
	struct vb_cma_id *id = vb_cma_id_of(pub);
	int err = vb_cma_id_check(id, "migrate_id");

	return vb_cma_answer(err ? err : migrate(id, vb_cma_channel_of(channel)));
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What happens when the program reads an event. */
#include "rdmacm/arrive.h"

#include "base/clock.h"
#include "base/lock.h"
#include "rdmacm/address.h"
#include "rdmacm/bind.h"
#include "rdmacm/face.h"
#include "rdmacm/id.h"
#include "rdmacm/manager.h"
#include "rdmacm/qp.h"
#include "rdmacm/source.h"

static int give_device(struct vb_cma_id *child)
{
	const struct rdma_addr *addr = &child->pub.route.addr;
	struct vb_cma_place place;
	int err = vb_cma_place_find(&addr->addr.ibaddr.sgid, vb_cma_address_scope(&addr->src_addr),
				    &place);

	if (err)
		return err;
	vb_mutex_take(&child->lock, VB_ORDER_CM_ID);
	vb_cma_bind_place(child, &place);
	child->exchange.ah.grh.sgid_index = place.sgid_index;
	child->exchange.ah.port_num = place.port_num;
	vb_mutex_release(&child->lock);
	return 0;
}

bool vb_cma_arrive_request(struct vb_cma_event *event)
{
	struct vb_cma_id *child = vb_cma_id_of(event->pub.id);
	struct vb_cma_id *listener = event->counted;
	/* Before it has a device: nothing is reported yet that would stay with the old channel. */
	int err = listener->sync ? vb_cma_id_make_sync(child) : 0;
	struct vb_cm *cm;

	if (!err)
		err = give_device(child);
	if (err) {
		vb_note(VB_REASON_CMA_NO_DEVICE, "a connection request cannot be served: errno %d",
			-err);
		vb_cma_id_drop(child);
		return false;
	}
	cm = vb_cma_manager_take();
	if (child->conn)
		vb_cm_taken(cm, child->conn);
	vb_cma_manager_release();
	return true;
}

static int go_on(struct vb_cma_id *id)
{
	int err = vb_cma_qp_move(id, IBV_QPS_INIT); /* with the access flags that were agreed on */
	struct vb_cm *cm;

	if (!err)
		err = vb_cma_qp_move(id, IBV_QPS_RTR);
	if (!err)
		err = vb_cma_qp_move(id, IBV_QPS_RTS);
	if (err)
		return err;
	cm = vb_cma_manager_take();
	err = id->conn ? vb_cm_establish(cm, id->conn, vb_clock_ns()) : -EINVAL;
	vb_cma_manager_release();
	return err;
}

static void give_up(struct vb_cma_id *id)
{
	struct vb_cm *cm;

	vb_cma_qp_error(id);
	cm = vb_cma_manager_take();
	id->failed = true;
	if (id->conn)
		(void)vb_cm_reject(cm, id->conn, VB_CM_REJ_CONSUMER, NULL, 0, vb_clock_ns());
	vb_cma_manager_release();
}

static void set_state(struct vb_cma_id *id, enum vb_cma_state state)
{
	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	if (id->state == VB_CMA_CONNECTING)
		id->state = state;
	vb_mutex_release(&id->lock);
}

bool vb_cma_arrive_response(struct vb_cma_event *event)
{
	struct vb_cma_id *id = vb_cma_id_of(event->pub.id);
	int err;

	if (!id->pub.qp)
		return true;
	err = go_on(id);
	event->pub.event = RDMA_CM_EVENT_ESTABLISHED;
	if (!err) {
		set_state(id, VB_CMA_CONNECTED);
		return true;
	}
	event->pub.event = RDMA_CM_EVENT_CONNECT_ERROR;
	event->pub.status = err;
	set_state(id, VB_CMA_DISCONNECTED);
	give_up(id);
	return true;
}

bool vb_cma_arrive_rejected(struct vb_cma_event *event)
{
	struct vb_cma_id *id = vb_cma_id_of(event->pub.id);

	if (id->failed)
		return false;
	vb_cma_qp_error(id);
	return true;
}

bool vb_cma_arrive_end(struct vb_cma_event *event)
{
	return !vb_cma_id_of(event->pub.id)->failed;
}

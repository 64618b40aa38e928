/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma_listen(3), rdma_get_request(3). */
#include <endian.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "base/lock.h"
#include "base/log.h"
#include "rdmacm/address.h"
#include "rdmacm/bind.h"
#include "rdmacm/face.h"
#include "rdmacm/id.h"
#include "rdmacm/manager.h"
#include "rdmacm/param.h"
#include "rdmacm/port.h"
#include "rdmacm/qp.h"
#include "rdmacm/sync.h"

static struct vb_cm_listener *make_listener(struct vb_cma_id *id, int backlog)
{
	const struct sockaddr *addr = &id->pub.route.addr.src_addr;
	const union ibv_gid gid = vb_cma_address_gid(addr);
	struct vb_cm_listener *made = calloc(1, sizeof(*made));

	if (!made)
		return NULL;
	made->user = id;
	made->service_id =
		vb_cm_service_id((uint16_t)id->pub.ps, be16toh(vb_cma_address_port(addr)));
	made->service = vb_cma_param_service(id);
	memcpy(made->address, gid.raw, sizeof(made->address));
	made->scope = vb_cma_address_scope(addr);
	made->afonly = id->options.afonly;
	made->backlog = backlog;
	return made;
}

/* With both locks. */
static int begin(struct vb_cm *cm, struct vb_cma_id *id, int backlog)
{
	struct vb_cm_listener *made;
	int err;

	if (id->state != VB_CMA_BOUND)
		return vb_cma_id_refuse_state(id, "listen");
	err = vb_cma_port_listen(id);
	if (err)
		return err;
	made = make_listener(id, backlog);
	if (!made)
		return vb_cma_refuse_memory("listen");
	err = vb_cm_listen(cm, made);
	if (err) {
		free(made);
		return vb_refuse(-err, VB_REASON_CMA_PORT, "listen: another id listens");
	}
	id->listener = made;
	id->state = VB_CMA_LISTENING;
	return 0;
}

static int bind_any(struct vb_cma_id *id)
{
	const struct sockaddr_in any = {.sin_family = AF_INET};
	int err = 0;

	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	if (id->state == VB_CMA_IDLE)
		err = vb_cma_bind(id, (const struct sockaddr *)&any, NULL);
	vb_mutex_release(&id->lock);
	return err;
}

static const char *space_name(enum rdma_port_space ps)
{
	switch (ps) {
	case RDMA_PS_TCP:
		return "TCP";
	case RDMA_PS_UDP:
		return "UDP";
	case RDMA_PS_IPOIB:
		return "IPOIB";
	default:
		return "IB";
	}
}

VB_EXPORT int rdma_listen(struct rdma_cm_id *pub, int backlog)
{
	struct vb_cma_id *id = vb_cma_id_of(pub);
	int err = vb_cma_id_check(id, "listen");
	struct vb_cm *cm;

	if (!err)
		err = vb_cma_manager_open();
	if (!err)
		err = bind_any(id);
	if (err)
		return vb_cma_answer(err);
	/* Without the port of other hosts, processes of this one are served. */
	(void)vb_cma_manager_reach(NULL);
	cm = vb_cma_manager_take();
	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	err = begin(cm, id, backlog);
	vb_mutex_release(&id->lock);
	vb_cma_manager_release();
	if (!err)
		vb_log(VB_LOG_INFO, "connections: listening on %s port %u", space_name(pub->ps),
		       be16toh(rdma_get_src_port(pub)));
	return vb_cma_answer(err);
}

/* The request's id gets the queue pair that rdma_create_ep() was told of. */
static int equip(struct vb_cma_id *listener, struct rdma_cm_event *event)
{
	struct vb_cma_id *child = vb_cma_id_of(event->id);
	struct ibv_qp_init_attr attr = listener->ep_attr;

	if (!listener->ep_qp)
		return 0;
	attr.qp_type = listener->pub.qp_type;
	return vb_cma_qp_create(child, listener->ep_pd, &attr);
}

static int get_request(struct vb_cma_id *listener, struct rdma_cm_id **child)
{
	struct rdma_cm_event *event;
	int err;

	if (!listener->sync)
		return vb_refuse(EINVAL, VB_REASON_CMA_STATE,
				 "get_request: the id has a channel of the program");
	if (listener->state != VB_CMA_LISTENING)
		return vb_cma_id_refuse_state(listener, "get_request");
	vb_cma_sync_ack(listener);
	if (rdma_get_cm_event(listener->pub.channel, &event))
		return -errno;
	if (event->status || event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		err = event->status ? event->status : -EINVAL;
		rdma_ack_cm_event(event);
		return err < 0 ? err : -err;
	}
	err = equip(listener, event);
	if (err) {
		struct rdma_cm_id *id = event->id;

		rdma_ack_cm_event(event);
		rdma_destroy_ep(id);
		return err;
	}
	event->id->event = event;
	*child = event->id;
	return 0;
}

VB_EXPORT int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	struct vb_cma_id *listener = vb_cma_id_of(listen);
	int err = vb_cma_id_check(listener, "get_request");

	if (!err && !id)
		err = vb_cma_refuse_null("get_request", "id");
	return vb_cma_answer(err ? err : get_request(listener, id));
}

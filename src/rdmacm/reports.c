/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * From the core's events to those of the program. What has to wait for the program to look (queue
 * pairs, RTU) is done when the event arrives there: rdmacm/arrive.h.
 */
#include "rdmacm/report.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/random.h"
#include "rdmacm/address.h"
#include "rdmacm/arrive.h"
#include "rdmacm/face.h"
#include "rdmacm/id.h"

enum { PSN_MASK = 0xffffff };

static void fill_ah(struct ibv_ah_attr *ah, const struct vb_cm_path *path, uint8_t port_num)
{
	memset(ah, 0, sizeof(*ah));
	ah->is_global = 1;
	ah->port_num = port_num;
	ah->sl = path->sl;
	memcpy(ah->grh.dgid.raw, path->dgid, sizeof(path->dgid));
	ah->grh.flow_label = path->flow_label;
	ah->grh.hop_limit = path->hop_limit;
	ah->grh.traffic_class = path->traffic_class;
}

/* What both RC events tell of the peer's queue pair. With the id's lock. */
static void learn(struct vb_cma_id *id, const struct vb_cm_event *e)
{
	struct vb_cma_exchange *x = &id->exchange;

	x->known = true;
	x->replied = true;
	x->peer_qpn = e->qp_num;
	x->sq_psn = e->psn;
	x->responder_resources = e->responder_resources;
	x->initiator_depth = e->initiator_depth;
	x->rnr_retry_count = e->rnr_retry_count;
	id->remote_ece.vendor_id = e->ece_vendor;
	id->remote_ece.options = e->ece_options;
}

static void fill_private(struct vb_cma_event *event, const struct vb_cm_event *e, const void **data,
			 uint8_t *length)
{
	if (!e->private_length)
		return;
	memcpy(event->private_data, e->private_data, e->private_length);
	*data = event->private_data;
	*length = e->private_length;
}

static void fill_conn(struct vb_cma_event *event, const struct vb_cm_event *e)
{
	struct rdma_conn_param *param = &event->pub.param.conn;

	fill_private(event, e, &param->private_data, &param->private_data_len);
	param->responder_resources = e->responder_resources;
	param->initiator_depth = e->initiator_depth;
	param->flow_control = e->flow_control;
	param->retry_count = e->retry_count;
	param->rnr_retry_count = e->rnr_retry_count;
	param->srq = e->srq;
	param->qp_num = e->qp_num;
}

/* The two addresses: as the peer wrote them, from this side. */
static void fill_addresses(struct vb_cma_id *id, const struct vb_cm_event *e)
{
	struct rdma_addr *addr = &id->pub.route.addr;
	const int family = e->address.version == 4 ? AF_INET : AF_INET6;
	union ibv_gid own, peer;

	memcpy(own.raw, e->address.destination, sizeof(own.raw));
	memcpy(peer.raw, e->address.source, sizeof(peer.raw));
	vb_cma_address_make(family, &own, e->path->ifindex, htobe16((uint16_t)e->service_id),
			    &addr->src_storage);
	vb_cma_address_make(family, &peer, e->path->ifindex, htobe16(e->address.port),
			    &addr->dst_storage);
	memcpy(addr->addr.ibaddr.sgid.raw, e->path->sgid, sizeof(e->path->sgid));
	memcpy(addr->addr.ibaddr.dgid.raw, e->path->dgid, sizeof(e->path->dgid));
	addr->addr.ibaddr.pkey = htobe16(0xffff);
}

static struct ibv_sa_path_rec *path_of(const struct vb_cm_path *path)
{
	struct ibv_sa_path_rec *rec = calloc(1, sizeof(*rec));

	if (!rec)
		return NULL;
	memcpy(rec->sgid.raw, path->sgid, sizeof(path->sgid));
	memcpy(rec->dgid.raw, path->dgid, sizeof(path->dgid));
	rec->flow_label = htobe32(path->flow_label);
	rec->hop_limit = path->hop_limit;
	rec->traffic_class = path->traffic_class;
	rec->reversible = 1;
	rec->numb_path = 1;
	rec->pkey = htobe16(0xffff);
	rec->sl = path->sl;
	rec->mtu_selector = rec->rate_selector = rec->packet_life_time_selector = 2;
	rec->mtu = path->mtu;
	rec->rate = path->rate;
	rec->packet_life_time = path->ack_timeout ? (uint8_t)(path->ack_timeout - 1) : 0;
	return rec;
}

/* An id for the request; its device is looked up when the program reads the event. */
static struct vb_cma_id *make_child(const struct vb_cma_id *listener, struct vb_cm_conn *conn,
				    const struct vb_cm_event *e)
{
	struct vb_cma_id *child;

	if (vb_cma_id_create(listener->channel, listener->pub.context, listener->pub.ps,
			     listener->pub.qp_type, &child))
		return NULL;
	child->paths = path_of(e->path);
	if (!child->paths) {
		vb_cma_id_free(child);
		return NULL;
	}
	child->pub.route.path_rec = child->paths;
	child->pub.route.num_paths = 1;
	child->state = VB_CMA_CONNECTING;
	child->requested = true;
	child->conn = conn;
	fill_addresses(child, e);
	if (e->type == VB_CM_EVENT_REQUEST) {
		learn(child, e);
		child->exchange.rq_psn = vb_random32() & PSN_MASK;
		child->exchange.retry_count = e->retry_count;
		child->exchange.mtu = e->path->mtu;
		fill_ah(&child->exchange.ah, e->path, 1);
	}
	return child;
}

static bool report_request(struct vb_cm_conn *conn, const struct vb_cm_event *e)
{
	struct vb_cma_id *listener = e->listener->user;
	struct vb_cma_id *child = make_child(listener, conn, e);
	struct vb_cma_event *event;

	if (!child)
		return false;
	event = vb_cma_event_alloc(child, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	if (!event) {
		vb_cma_id_free(child);
		return false;
	}
	event->pub.listen_id = &listener->pub;
	if (e->type == VB_CM_EVENT_REQUEST)
		fill_conn(event, e);
	else
		fill_private(event, e, &event->pub.param.ud.private_data,
			     &event->pub.param.ud.private_data_len);
	event->arrive = vb_cma_arrive_request;
	conn->user = child;
	vb_cma_event_post(listener, event);
	return true;
}

static void report_response(struct vb_cma_id *id, struct vb_cma_event *event,
			    const struct vb_cm_event *e)
{
	fill_conn(event, e);
	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	learn(id, e);
	vb_mutex_release(&id->lock);
	event->arrive = vb_cma_arrive_response;
}

/* A Q_Key that the id does not have means that its datagrams would be dropped. */
static void report_sidr(struct vb_cma_id *id, struct vb_cma_event *event,
			const struct vb_cm_event *e)
{
	struct rdma_ud_param *ud = &event->pub.param.ud;

	if (e->qkey != RDMA_UDP_QKEY) {
		event->pub.event = RDMA_CM_EVENT_ADDR_ERROR;
		event->pub.status = -EINVAL;
		return;
	}
	fill_private(event, e, &ud->private_data, &ud->private_data_len);
	fill_ah(&ud->ah_attr, e->path, id->pub.port_num);
	ud->ah_attr.grh.sgid_index = id->place.sgid_index;
	ud->qp_num = e->qp_num;
	ud->qkey = e->qkey;
	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	id->state = VB_CMA_CONNECTED;
	vb_mutex_release(&id->lock);
}

static void set_state(struct vb_cma_id *id, enum vb_cma_state state)
{
	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	id->state = state;
	vb_mutex_release(&id->lock);
}

/* The type and what else the event says; false: nobody is told. */
static bool translate(struct vb_cma_id *id, struct vb_cma_event *event, const struct vb_cm_event *e)
{
	event->pub.status = e->status;
	switch (e->type) {
	case VB_CM_EVENT_RESPONSE:
		event->pub.event = RDMA_CM_EVENT_CONNECT_RESPONSE;
		report_response(id, event, e);
		return true;
	case VB_CM_EVENT_ESTABLISHED:
		event->pub.event = RDMA_CM_EVENT_ESTABLISHED;
		set_state(id, VB_CMA_CONNECTED);
		return true;
	case VB_CM_EVENT_REJECTED:
		event->pub.event = RDMA_CM_EVENT_REJECTED;
		fill_private(event, e, &event->pub.param.conn.private_data,
			     &event->pub.param.conn.private_data_len);
		event->arrive = vb_cma_arrive_rejected;
		set_state(id, VB_CMA_DISCONNECTED);
		return !id->requested; /* the peer gave up before the program decided */
	case VB_CM_EVENT_UNREACHABLE:
		event->pub.event = RDMA_CM_EVENT_UNREACHABLE;
		fill_private(event, e, &event->pub.param.ud.private_data,
			     &event->pub.param.ud.private_data_len);
		set_state(id, VB_CMA_DISCONNECTED);
		return true;
	case VB_CM_EVENT_DISCONNECTED:
		event->pub.event = RDMA_CM_EVENT_DISCONNECTED;
		event->arrive = vb_cma_arrive_end;
		set_state(id, VB_CMA_DISCONNECTED);
		return true;
	case VB_CM_EVENT_TIMEWAIT_EXIT:
		event->pub.event = RDMA_CM_EVENT_TIMEWAIT_EXIT;
		return true;
	case VB_CM_EVENT_SIDR_RESPONSE:
		event->pub.event = RDMA_CM_EVENT_ESTABLISHED;
		report_sidr(id, event, e);
		return true;
	default:
		return false;
	}
}

bool vb_cma_report(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_event *e)
{
	struct vb_cma_id *id = conn->user;
	struct vb_cma_event *event;

	(void)cm;
	if (e->type == VB_CM_EVENT_REQUEST || e->type == VB_CM_EVENT_SIDR_REQUEST)
		return report_request(conn, e);
	if (!id)
		return true;
	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	event = vb_cma_event_take_locked(id, RDMA_CM_EVENT_INTERNAL, 0);
	vb_mutex_release(&id->lock);
	if (!event) { /* more than a connection can bring: the reserve was not as large */
		vb_note(VB_REASON_NO_MEMORY, "an event of the connection manager is lost");
		return true;
	}
	if (translate(id, event, e))
		vb_cma_event_post(id, event);
	else
		free(event);
	return true;
}

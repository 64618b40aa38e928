/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A REQ arrives (IBA 12.9.8.3): duplicates, stale connections, listeners, the backlog. */
#include <string.h>

#include "cm/core.h"

#define MTU_MOST 5u /* IBV_MTU_4096 */

/* Whether the REQ is the one that began the connection, and not one of the peer's next life. */
static bool same_request(const struct vb_cm_conn *conn, const struct vb_cm_req *req)
{
	return conn->remote_qpn == req->qpn && conn->remote_psn == req->psn &&
	       conn->service_id == req->service_id;
}

static void duplicate(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_arrival *a)
{
	vb_cm_drop(cm, VB_REASON_CM_STATE, a);
	switch (conn->state) {
	case VB_CM_REQ_RCVD:
		vb_cm_send_mra(cm, conn, VB_CM_ANSWERED_REQ);
		break;
	case VB_CM_REJ_SENT:
		vb_cm_send_again(cm, conn);
		break;
	case VB_CM_TIMEWAIT:
		vb_cm_answer_rej(cm, a, VB_CM_REJ_STALE, NULL, 0);
		break;
	default: /* REP is repeated by its own timer */
		break;
	}
}

/* The queue pair stays known in these states, so that copies of the REQ get the same answer. */
void vb_cm_stale(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now)
{
	switch (conn->state) {
	case VB_CM_ESTABLISHED:
	case VB_CM_REP_SENT:
		vb_cm_send_dreq(cm, conn, now);
		break;
	case VB_CM_REQ_RCVD:
		vb_cm_conn_timewait(cm, conn, now);
		vb_cm_index_qpn(cm, conn);
		vb_cm_report_plain(cm, conn, VB_CM_EVENT_REJECTED, VB_CM_REJ_STALE);
		break;
	default:
		break;
	}
}

/*
 * Whether the peer has a connection here by one of the numbers of its REQ. The peer has forgotten
 * that one then: it ends, and the peer may try again.
 */
static bool refused_as_stale(struct vb_cm *cm, const struct vb_cm_arrival *a)
{
	const struct vb_cm_req *req = &a->message->req;
	struct vb_cm_conn *conn =
		vb_cm_by_remote(cm, false, a->message->local_id, req->guid, a->path->dgid);

	if (conn && same_request(conn, req)) {
		duplicate(cm, conn, a);
		return true;
	}
	if (conn && conn->state == VB_CM_REJ_SENT) {
		vb_cm_conn_idle(cm, conn);
		vb_cm_conn_put(cm, conn);
		conn = NULL;
	}
	if (!conn)
		conn = vb_cm_by_qpn(cm, req->qpn, req->guid, a->path->dgid);
	if (!conn)
		return false;
	vb_cm_drop(cm, VB_REASON_CM_STALE, a);
	vb_cm_answer_rej(cm, a, VB_CM_REJ_STALE, NULL, 0);
	vb_cm_stale(cm, conn, a->now);
	return true;
}

/* The addresses in the message must be those of its packet, or data would go elsewhere. */
static bool gids_match(const struct vb_cm_arrival *a)
{
	const struct vb_cm_wire_path *path = &a->message->req.primary;

	return !memcmp(path->local_gid, a->path->dgid, 16) &&
	       !memcmp(path->remote_gid, a->path->sgid, 16);
}

static uint8_t service_of(const struct vb_cm_req *req)
{
	if (req->service == VB_CM_XRC)
		return req->extended == 1 ? VB_CM_XRC : VB_CM_RD;
	return req->service;
}

static struct vb_cm_listener *find_listener(struct vb_cm *cm, const struct vb_cm_arrival *a,
					    struct vb_cm_address *address)
{
	const struct vb_cm_req *req = &a->message->req;
	struct vb_cm_listener *listener = NULL;

	if (!vb_cm_listener_any(cm, req->service_id, false)) {
		vb_cm_drop(cm, VB_REASON_CM_NO_LISTENER, a);
		vb_cm_answer_rej(cm, a, VB_CM_REJ_INVALID_SERVICE_ID, NULL, 0);
		return NULL;
	}
	if (!gids_match(a)) {
		vb_cm_drop(cm, VB_REASON_CM_GID, a);
		vb_cm_answer_rej(cm, a, VB_CM_REJ_INVALID_GID, a->path->sgid, 16);
		return NULL;
	}
	if (vb_cm_address_decode(a->message->private_data, address) &&
	    vb_cm_address_is_senders(a, address))
		listener = vb_cm_listener_find(cm, req->service_id, service_of(req),
					       address->destination, a->path->ifindex);
	if (!listener) {
		vb_cm_drop(cm, VB_REASON_CM_NO_MATCH, a);
		vb_cm_answer_rej(cm, a, VB_CM_REJ_CONSUMER, NULL, 0);
	}
	return listener;
}

static struct vb_cm_path path_of(const struct vb_cm_arrival *a)
{
	const struct vb_cm_req *req = &a->message->req;
	struct vb_cm_path path = *a->path;

	path.flow_label = req->primary.flow_label;
	path.traffic_class = req->primary.traffic_class;
	path.hop_limit = req->primary.hop_limit;
	path.sl = req->primary.sl;
	path.rate = req->primary.rate;
	path.ack_timeout = req->primary.ack_timeout;
	path.mtu = req->mtu;
	path.pkey = req->pkey;
	return path;
}

static bool report_request(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_arrival *a,
			   const struct vb_cm_address *address)
{
	const struct vb_cm_req *req = &a->message->req;
	const struct vb_cm_event event = {
		.type = VB_CM_EVENT_REQUEST,
		.private_data = a->message->private_data + VB_CM_ADDRESS_BYTES,
		.private_length = VB_CM_USER_REQ,
		/* What the peer initiates this side has to respond to. */
		.responder_resources = req->initiator_depth,
		.initiator_depth = req->responder_resources,
		.retry_count = req->retry_count,
		.rnr_retry_count = req->rnr_retry_count,
		.flow_control = req->flow_control,
		.srq = req->srq,
		.service = conn->service,
		.qp_num = req->qpn,
		.psn = req->psn,
		.ece_vendor = req->vendor_id,
		.ece_options = a->message->modifier,
		.listener = conn->listener,
		.service_id = req->service_id,
		.address = *address,
		.path = &conn->path,
	};

	return vb_cm_report(cm, conn, &event);
}

void vb_cm_request_tell(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_arrival *a,
			const struct vb_cm_address *address)
{
	vb_cm_wait_begin(cm, conn, a->now);
	if (report_request(cm, conn, a, address))
		return;
	vb_cm_drop(cm, VB_REASON_CM_NO_MEMORY, a);
	conn->released = true;
	vb_cm_conn_idle(cm, conn);
	vb_cm_conn_put(cm, conn);
}

static void begin(struct vb_cm *cm, struct vb_cm_listener *listener, const struct vb_cm_arrival *a,
		  const struct vb_cm_address *address, bool later)
{
	const struct vb_cm_req *req = &a->message->req;
	const struct vb_cm_path path = path_of(a);
	struct vb_cm_conn *conn;

	if (vb_cm_conn_new(cm, &path, &conn))
		return;
	conn->state = VB_CM_REQ_RCVD;
	conn->service = listener->service;
	conn->service_id = req->service_id;
	conn->remote_id = a->message->local_id;
	conn->remote_guid = req->guid;
	conn->remote_qpn = req->qpn;
	conn->remote_psn = req->psn;
	conn->tid = a->message->tid;
	vb_cm_index_remote(cm, conn);
	vb_cm_index_qpn(cm, conn);
	vb_cm_unread_add(cm, listener, conn);
	if (later)
		vb_cm_later_add(cm, conn, a);
	else
		vb_cm_request_tell(cm, conn, a, address);
}

void vb_cm_request_arrived(struct vb_cm *cm, const struct vb_cm_arrival *a)
{
	struct vb_cm_listener *listener;
	struct vb_cm_address address;
	enum vb_cm_room room;

	if (refused_as_stale(cm, a))
		return;
	listener = find_listener(cm, a, &address);
	if (!listener)
		return;
	if (!a->message->req.mtu || a->message->req.mtu > MTU_MOST) {
		vb_cm_drop(cm, VB_REASON_CM_NO_MATCH, a);
		vb_cm_answer_rej(cm, a, VB_CM_REJ_INVALID_MTU, NULL, 0);
		return;
	}
	room = vb_cm_request_room(cm, listener, a);
	if (room != VB_CM_ROOM_NONE)
		begin(cm, listener, a, &address, room == VB_CM_ROOM_LATER);
}

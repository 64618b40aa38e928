/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The address of a datagram service (IBA 12.11): asked for, asked here, and answered. */
#include <errno.h>
#include <string.h>

#include "cm/core.h"

int vb_cm_sidr_request(struct vb_cm *cm, const struct vb_cm_sidr_request *how, uint64_t now,
		       struct vb_cm_conn **conn)
{
	struct vb_cm_message message;
	int rc;

	if (how->private_length > VB_CM_USER_SIDR_REQ)
		return -EINVAL;
	rc = vb_cm_conn_new(cm, &how->path, conn);
	if (rc)
		return rc;
	(*conn)->user = how->user;
	(*conn)->active = true;
	(*conn)->service = VB_CM_UD;
	(*conn)->service_id = how->service_id;
	message = (struct vb_cm_message){
		.attribute = VB_CM_SIDR_REQ,
		.tid = (*conn)->tid,
		.local_id = (*conn)->local_id,
		.sidr_req = {.service_id = how->service_id, .pkey = how->path.pkey},
	};
	vb_cm_address_encode(&how->address, message.private_data);
	if (how->private_length)
		memcpy(message.private_data + VB_CM_ADDRESS_BYTES, how->private_data,
		       how->private_length);
	vb_cm_message_encode(&message, (*conn)->mad);
	vb_cm_retry_start(cm, *conn, VB_CM_SIDR_REQ_SENT, now);
	return 0;
}

int vb_cm_sidr_reply(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_sidr_reply *how,
		     uint64_t now)
{
	if (conn->state != VB_CM_SIDR_REQ_RCVD || how->private_length > VB_CM_PRIVATE_SIDR_REP)
		return -EINVAL;
	vb_cm_send_sidr_rep(cm, conn, how);
	vb_cm_conn_remember(cm, conn, VB_CM_SIDR_REP_SENT, now);
	return 0;
}

static void duplicate(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_arrival *a)
{
	vb_cm_drop(cm, VB_REASON_CM_STATE, a);
	if (conn->state == VB_CM_SIDR_REP_SENT)
		vb_cm_send_again(cm, conn);
}

static struct vb_cm_listener *find_listener(struct vb_cm *cm, const struct vb_cm_arrival *a,
					    struct vb_cm_address *address)
{
	uint64_t service_id = a->message->sidr_req.service_id;
	struct vb_cm_listener *listener = NULL;

	if (!vb_cm_listener_any(cm, service_id, true)) {
		vb_cm_drop(cm, VB_REASON_CM_NO_LISTENER, a);
		vb_cm_answer_sidr(cm, a, VB_CM_SIDR_NO_SERVICE);
		return NULL;
	}
	if (vb_cm_address_decode(a->message->private_data, address) &&
	    vb_cm_address_is_senders(a, address))
		listener = vb_cm_listener_find(cm, service_id, VB_CM_UD, address->destination,
					       a->path->ifindex);
	if (!listener) {
		vb_cm_drop(cm, VB_REASON_CM_NO_MATCH, a);
		vb_cm_answer_sidr(cm, a, VB_CM_SIDR_REJECTED);
	}
	return listener;
}

static void begin(struct vb_cm *cm, struct vb_cm_listener *listener, const struct vb_cm_arrival *a,
		  const struct vb_cm_address *address)
{
	struct vb_cm_event event = {
		.type = VB_CM_EVENT_SIDR_REQUEST,
		.private_data = a->message->private_data + VB_CM_ADDRESS_BYTES,
		.private_length = VB_CM_USER_SIDR_REQ,
		.service = VB_CM_UD,
		.listener = listener,
		.service_id = a->message->sidr_req.service_id,
		.address = *address,
	};
	struct vb_cm_conn *conn;

	if (vb_cm_conn_new(cm, a->path, &conn))
		return;
	conn->state = VB_CM_SIDR_REQ_RCVD;
	conn->service = VB_CM_UD;
	conn->service_id = event.service_id;
	conn->path.pkey = a->message->sidr_req.pkey;
	conn->remote_id = a->message->local_id;
	conn->tid = a->message->tid;
	vb_cm_index_remote(cm, conn);
	vb_cm_unread_add(cm, listener, conn);
	vb_cm_wait_begin(cm, conn, a->now);
	event.path = &conn->path;
	if (!vb_cm_report(cm, conn, &event)) {
		vb_cm_drop(cm, VB_REASON_CM_NO_MEMORY, a);
		conn->released = true;
		vb_cm_conn_idle(cm, conn);
		vb_cm_conn_put(cm, conn);
	}
}

/* The same request id and sender for another service: the sender has begun anew. */
static void forget(struct vb_cm *cm, struct vb_cm_conn *conn)
{
	vb_cm_conn_idle(cm, conn);
	vb_cm_conn_put(cm, conn);
}

void vb_cm_sidr_arrived(struct vb_cm *cm, const struct vb_cm_arrival *a)
{
	struct vb_cm_conn *conn = vb_cm_by_remote(cm, true, a->message->local_id, 0, a->path->dgid);
	struct vb_cm_listener *listener;
	struct vb_cm_address address;

	if (conn && conn->service_id == a->message->sidr_req.service_id) {
		duplicate(cm, conn, a);
		return;
	}
	if (conn)
		forget(cm, conn);
	listener = find_listener(cm, a, &address);
	if (listener && vb_cm_request_room(cm, listener, a) == VB_CM_ROOM_NOW)
		begin(cm, listener, a, &address);
}

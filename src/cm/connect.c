/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The active side: REQ leaves, and RTU. */
#include <errno.h>
#include <string.h>

#include "cm/core.h"

/* What Linux says in every REQ over RoCE. */
#define RESPONSE_TIMEOUT 20u
#define CM_RETRIES       15u
#define NO_LID           0xffffu

static uint8_t three_bits(uint8_t count)
{
	return count < 7 ? count : 7;
}

static void put_path(struct vb_cm_wire_path *wire, const struct vb_cm_path *path)
{
	wire->local_lid = wire->remote_lid = NO_LID;
	memcpy(wire->local_gid, path->sgid, 16);
	memcpy(wire->remote_gid, path->dgid, 16);
	wire->flow_label = path->flow_label;
	wire->rate = path->rate;
	wire->traffic_class = path->traffic_class;
	wire->hop_limit = path->hop_limit;
	wire->sl = path->sl;
	wire->ack_timeout = path->ack_timeout;
}

/* An XRC initiator answers nothing and receives nothing (IBA A14); Linux leaves these out. */
static void as_xrc(struct vb_cm_req *req)
{
	req->extended = 1;
	req->responder_resources = 0;
	req->retry_count = 0;
	req->rnr_retry_count = 0;
	req->srq = false;
}

static void write_req(struct vb_cm_conn *conn, const struct vb_cm_connect *how)
{
	struct vb_cm_message message = {
		.attribute = VB_CM_REQ,
		.tid = conn->tid,
		.modifier = how->ece_options,
		.local_id = conn->local_id,
		.req =
			{
				.service_id = how->service_id,
				.guid = how->path.guid,
				.vendor_id = how->ece_vendor,
				.qpn = how->qp_num,
				.psn = how->psn,
				.pkey = how->path.pkey,
				.responder_resources = how->responder_resources,
				.initiator_depth = how->initiator_depth,
				.service = how->service,
				.remote_timeout = RESPONSE_TIMEOUT,
				.local_timeout = RESPONSE_TIMEOUT,
				.retry_count = three_bits(how->retry_count),
				.rnr_retry_count = three_bits(how->rnr_retry_count),
				.mtu = how->path.mtu,
				.cm_retries = CM_RETRIES,
				.flow_control = how->flow_control,
				.srq = how->srq,
			},
	};

	if (how->service == VB_CM_XRC)
		as_xrc(&message.req);
	put_path(&message.req.primary, &how->path);
	vb_cm_address_encode(&how->address, message.private_data);
	if (how->private_length)
		memcpy(message.private_data + VB_CM_ADDRESS_BYTES, how->private_data,
		       how->private_length);
	vb_cm_message_encode(&message, conn->mad);
}

int vb_cm_connect(struct vb_cm *cm, const struct vb_cm_connect *how, uint64_t now,
		  struct vb_cm_conn **conn)
{
	int rc;

	if (how->private_length > VB_CM_USER_REQ || how->service >= VB_CM_UD)
		return -EINVAL;
	rc = vb_cm_conn_new(cm, &how->path, conn);
	if (rc)
		return rc;
	(*conn)->user = how->user;
	(*conn)->active = true;
	(*conn)->service = how->service;
	(*conn)->service_id = how->service_id;
	(*conn)->local_qpn = how->qp_num;
	write_req(*conn, how);
	vb_cm_retry_start(cm, *conn, VB_CM_REQ_SENT, now);
	return 0;
}

int vb_cm_establish(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now)
{
	(void)now;
	if (conn->state != VB_CM_REP_RCVD)
		return -EINVAL;
	conn->state = VB_CM_ESTABLISHED;
	conn->established = true;
	vb_cm_publish(cm, conn);
	vb_cm_send_rtu(cm, conn);
	return 0;
}

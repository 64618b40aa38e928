/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The passive side: REP leaves; the connection is established. */
#include <errno.h>
#include <string.h>

#include "cm/core.h"

/* What an XRC target says: its number is that of a context, not of a queue pair (IBA A14). */
static void as_xrc(struct vb_cm_rep *rep)
{
	rep->eecn = rep->qpn;
	rep->qpn = 0;
	rep->initiator_depth = 0;
	rep->flow_control = false;
	rep->srq = true;
}

int vb_cm_accept(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_accept *how,
		 uint64_t now)
{
	struct vb_cm_message message;

	if (conn->state != VB_CM_REQ_RCVD || how->private_length > VB_CM_PRIVATE_REP)
		return -EINVAL;
	message = (struct vb_cm_message){
		.attribute = VB_CM_REP,
		.tid = conn->tid,
		.modifier = how->ece_options,
		.local_id = conn->local_id,
		.remote_id = conn->remote_id,
		.rep =
			{
				.guid = conn->path.guid,
				.vendor_id = how->ece_vendor,
				.qpn = how->qp_num,
				.psn = how->psn,
				.responder_resources = how->responder_resources,
				.initiator_depth = how->initiator_depth,
				.ack_delay = how->ack_delay,
				.rnr_retry_count = how->rnr_retry_count < 7 ? how->rnr_retry_count
									    : 7,
				.flow_control = how->flow_control,
				.srq = how->srq,
			},
	};
	if (conn->service == VB_CM_XRC)
		as_xrc(&message.rep);
	if (how->private_length)
		memcpy(message.private_data, how->private_data, how->private_length);
	vb_cm_message_encode(&message, conn->mad);
	conn->local_qpn = how->qp_num;
	vb_cm_retry_start(cm, conn, VB_CM_REP_SENT, now);
	vb_cm_wait_begin(cm, conn, now);
	vb_cm_publish(cm, conn);
	return 0;
}

int vb_cm_notify(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now)
{
	if (conn->state == VB_CM_ESTABLISHED)
		return -EISCONN;
	if (conn->state != VB_CM_REP_SENT)
		return -EINVAL;
	vb_cm_established(cm, conn, now);
	return 0;
}

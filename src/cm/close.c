/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Ends of connections that this side wants: reject, disconnect, release. */
#include <errno.h>

#include "cm/core.h"

/*
 * A REJ is repeated when the peer repeats what it is the answer to. After REQ and REP there may be
 * nothing that the peer repeats: it decides, or is established. That REJ is repeated unasked.
 */
static void reject(struct vb_cm *cm, struct vb_cm_conn *conn, uint16_t reason, const void *data,
		   unsigned int length, uint64_t now)
{
	bool unasked = conn->state == VB_CM_REQ_SENT || conn->state == VB_CM_REP_SENT;

	vb_cm_send_rej(cm, conn, reason, data, length);
	vb_cm_conn_remember(cm, conn, VB_CM_REJ_SENT, now);
	if (unasked)
		vb_cm_retry_unasked(cm, conn, now);
}

int vb_cm_reject(struct vb_cm *cm, struct vb_cm_conn *conn, uint16_t reason,
		 const void *private_data, unsigned int private_length, uint64_t now)
{
	if (private_length > VB_CM_PRIVATE_REJ)
		return -EINVAL;
	switch (conn->state) {
	case VB_CM_REQ_RCVD:
	case VB_CM_REP_RCVD:
	case VB_CM_REP_SENT:
		reject(cm, conn, reason, private_data, private_length, now);
		return 0;
	default:
		return -EINVAL;
	}
}

/* The peer asked for the end, and now has the answer. */
static void answer_dreq(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now)
{
	vb_cm_send_drep(cm, conn);
	vb_cm_conn_timewait(cm, conn, now);
}

/*
 * A DREQ that overtakes the REP would be answered by a peer that knows nothing of the connection, and
 * makes it afterwards. In REP_SENT it therefore waits for the RTU, or for an MRA.
 */
int vb_cm_disconnect(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now)
{
	switch (conn->state) {
	case VB_CM_REP_SENT:
		conn->closing = true;
		if (conn->mra)
			vb_cm_send_dreq(cm, conn, now);
		return 0;
	case VB_CM_ESTABLISHED:
		vb_cm_send_dreq(cm, conn, now);
		return 0;
	case VB_CM_DREQ_RCVD:
		answer_dreq(cm, conn, now);
		return 0;
	case VB_CM_DREQ_SENT:
	case VB_CM_TIMEWAIT:
		return 0;
	default:
		return conn->disconnected ? 0 : -EINVAL;
	}
}

bool vb_cm_is_disconnecting(const struct vb_cm_conn *conn)
{
	return !conn->disconnected &&
	       (conn->state == VB_CM_DREQ_SENT || (conn->state == VB_CM_REP_SENT && conn->closing));
}

static void refuse_sidr(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now)
{
	const struct vb_cm_sidr_reply reply = {.status = VB_CM_SIDR_REJECTED};

	vb_cm_sidr_reply(cm, conn, &reply, now);
}

void vb_cm_release(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now)
{
	conn->released = true;
	conn->user = NULL;
	vb_cm_taken(cm, conn);
	switch (conn->state) {
	case VB_CM_REQ_SENT:
		reject(cm, conn, VB_CM_REJ_TIMEOUT, NULL, 0, now);
		break;
	case VB_CM_REQ_RCVD:
	case VB_CM_REP_RCVD:
	case VB_CM_REP_SENT:
		reject(cm, conn, VB_CM_REJ_CONSUMER, NULL, 0, now);
		break;
	case VB_CM_ESTABLISHED:
		vb_cm_send_dreq(cm, conn, now);
		break;
	case VB_CM_DREQ_RCVD:
		answer_dreq(cm, conn, now);
		break;
	case VB_CM_SIDR_REQ_SENT:
		vb_cm_conn_idle(cm, conn);
		break;
	case VB_CM_SIDR_REQ_RCVD:
		refuse_sidr(cm, conn, now);
		break;
	default:
		break;
	}
	vb_cm_conn_put(cm, conn);
}

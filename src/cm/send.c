/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages of connections, and answers to messages for which there is none. */
#include <string.h>

#include "cm/core.h"
#include "wire/bytes.h"

/* A message of the exchange that is under way. */
static struct vb_cm_message begin(const struct vb_cm_conn *conn, uint16_t attribute)
{
	return (struct vb_cm_message){
		.attribute = attribute,
		.tid = conn->tid,
		.local_id = conn->local_id,
		.remote_id = conn->remote_id,
	};
}

static void send_once(struct vb_cm *cm, const struct vb_cm_path *path,
		      const struct vb_cm_message *message)
{
	uint8_t mad[VB_MAD_BYTES];

	vb_cm_message_encode(message, mad);
	cm->env->send(cm, path, mad);
}

void vb_cm_send_again(struct vb_cm *cm, struct vb_cm_conn *conn)
{
	cm->env->send(cm, &conn->path, conn->mad);
}

void vb_cm_send_rtu(struct vb_cm *cm, struct vb_cm_conn *conn)
{
	struct vb_cm_message message = begin(conn, VB_CM_RTU);

	send_once(cm, &conn->path, &message);
}

void vb_cm_send_mra(struct vb_cm *cm, struct vb_cm_conn *conn, uint8_t answered)
{
	struct vb_cm_message message = begin(conn, VB_CM_MRA);

	message.mra.answered = answered;
	message.mra.service_timeout = VB_CM_MRA_TIMEOUT;
	conn->mra = true;
	send_once(cm, &conn->path, &message);
}

void vb_cm_send_drep(struct vb_cm *cm, struct vb_cm_conn *conn)
{
	struct vb_cm_message message = begin(conn, VB_CM_DREP);

	send_once(cm, &conn->path, &message);
}

static void write_dreq(struct vb_cm *cm, struct vb_cm_conn *conn)
{
	struct vb_cm_message message = begin(conn, VB_CM_DREQ);

	/* An exchange of its own. */
	message.tid = conn->tid = (uint64_t)cm->agent << 32 | conn->local_id;
	message.dreq.remote_qpn = conn->remote_qpn;
	vb_cm_message_encode(&message, conn->mad);
}

void vb_cm_send_dreq(struct vb_cm *cm, struct vb_cm_conn *conn, uint64_t now)
{
	write_dreq(cm, conn);
	vb_cm_retry_start(cm, conn, VB_CM_DREQ_SENT, now);
}

/* IBA 12.6.7: what a REJ answers, by what the connection waits for. */
static uint8_t answered_by(const struct vb_cm_conn *conn)
{
	switch (conn->state) {
	case VB_CM_REQ_RCVD:
		return VB_CM_ANSWERED_REQ;
	case VB_CM_REP_RCVD:
		return VB_CM_ANSWERED_REP;
	default:
		return VB_CM_ANSWERED_OTHER;
	}
}

static void put_info(struct vb_cm_message *message, const void *info, unsigned int length)
{
	message->rej.info_length = (uint8_t)length;
	if (length)
		memcpy(message->rej.info, info, length);
}

void vb_cm_send_rej(struct vb_cm *cm, struct vb_cm_conn *conn, uint16_t reason, const void *data,
		    unsigned int length)
{
	struct vb_cm_message message = begin(conn, VB_CM_REJ);
	uint8_t guid[8];

	message.rej.answered = answered_by(conn);
	message.rej.reason = reason;
	vb_put64(guid, conn->path.guid);
	if (reason == VB_CM_REJ_TIMEOUT)
		put_info(&message, guid, sizeof(guid));
	if (length)
		memcpy(message.private_data, data, length);
	vb_cm_message_encode(&message, conn->mad);
	vb_cm_send_again(cm, conn);
}

/* The answer to a message, with ids exchanged. The own one is 0 where there is none. */
static struct vb_cm_message answer(const struct vb_cm_arrival *a, uint16_t attribute)
{
	return (struct vb_cm_message){
		.attribute = attribute,
		.tid = a->message->tid,
		.local_id = a->message->remote_id,
		.remote_id = a->message->local_id,
	};
}

static uint8_t answered_of(uint16_t attribute)
{
	switch (attribute) {
	case VB_CM_REQ:
		return VB_CM_ANSWERED_REQ;
	case VB_CM_REP:
		return VB_CM_ANSWERED_REP;
	default:
		return VB_CM_ANSWERED_OTHER;
	}
}

void vb_cm_answer_rej(struct vb_cm *cm, const struct vb_cm_arrival *a, uint16_t reason,
		      const void *info, unsigned int info_length)
{
	struct vb_cm_message message = answer(a, VB_CM_REJ);

	message.rej.answered = answered_of(a->message->attribute);
	message.rej.reason = reason;
	put_info(&message, info, info_length);
	send_once(cm, a->path, &message);
}

void vb_cm_answer_drep(struct vb_cm *cm, const struct vb_cm_arrival *a)
{
	struct vb_cm_message message = answer(a, VB_CM_DREP);

	send_once(cm, a->path, &message);
}

void vb_cm_send_question(struct vb_cm *cm, const struct vb_cm_arrival *a, uint64_t tid)
{
	struct vb_cm_message message = answer(a, VB_CM_DREQ);

	message.tid = tid;
	message.local_id = vb_cm_question_id(cm);
	send_once(cm, a->path, &message);
}

void vb_cm_answer_sidr(struct vb_cm *cm, const struct vb_cm_arrival *a, uint8_t status)
{
	struct vb_cm_message message = answer(a, VB_CM_SIDR_REP);

	message.sidr_rep.status = status;
	message.sidr_rep.service_id = a->message->sidr_req.service_id;
	send_once(cm, a->path, &message);
}

void vb_cm_send_sidr_rep(struct vb_cm *cm, struct vb_cm_conn *conn,
			 const struct vb_cm_sidr_reply *how)
{
	struct vb_cm_message message = begin(conn, VB_CM_SIDR_REP);

	message.modifier = how->ece_options;
	message.sidr_rep = (struct vb_cm_sidr_rep){
		.service_id = conn->service_id,
		.vendor_id = how->ece_vendor,
		.qpn = how->qp_num,
		.qkey = how->qkey,
		.status = how->status,
	};
	if (how->private_length)
		memcpy(message.private_data, how->private_data, how->private_length);
	vb_cm_message_encode(&message, conn->mad);
	vb_cm_send_again(cm, conn);
}

void vb_cm_send_last_word(struct vb_cm *cm, const struct vb_cm_conn *conn)
{
	static const struct vb_cm_sidr_reply refusal = {.status = VB_CM_SIDR_REJECTED};
	struct vb_cm_conn copy = *conn;

	switch (conn->state) {
	case VB_CM_REQ_SENT:
		vb_cm_send_rej(cm, &copy, VB_CM_REJ_TIMEOUT, NULL, 0);
		break;
	case VB_CM_REQ_RCVD:
	case VB_CM_REP_RCVD:
	case VB_CM_REP_SENT:
		vb_cm_send_rej(cm, &copy, VB_CM_REJ_CONSUMER, NULL, 0);
		break;
	case VB_CM_ESTABLISHED:
	case VB_CM_DREQ_SENT:
		write_dreq(cm, &copy);
		vb_cm_send_again(cm, &copy);
		break;
	case VB_CM_DREQ_RCVD:
		vb_cm_send_drep(cm, &copy);
		break;
	case VB_CM_SIDR_REQ_RCVD:
		vb_cm_send_sidr_rep(cm, &copy, &refusal);
		break;
	default:
		break;
	}
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages of the connection manager, judged and read (IBA 12.6, 12.11). */
#include <string.h>

#include "wire/bytes.h"
#include "wire/cm_layout.h"
#include "wire/cm_message.h"

static uint32_t get24(const uint8_t *at)
{
	return vb_get32(at) >> 8;
}

static void get_path(const uint8_t *p, struct vb_cm_wire_path *path)
{
	uint32_t flow = vb_get32(p + AT_PATH_FLOW);

	path->local_lid = vb_get16(p + AT_PATH_LOCAL_LID);
	path->remote_lid = vb_get16(p + AT_PATH_REMOTE_LID);
	memcpy(path->local_gid, p + AT_PATH_LOCAL_GID, 16);
	memcpy(path->remote_gid, p + AT_PATH_REMOTE_GID, 16);
	path->flow_label = flow >> 12;
	path->rate = flow & 0x3f;
	path->traffic_class = p[AT_PATH_TRAFFIC_CLASS];
	path->hop_limit = p[AT_PATH_HOP_LIMIT];
	path->sl = p[AT_PATH_SL] >> 4;
	path->subnet_local = p[AT_PATH_SL] >> 3 & 1;
	path->ack_timeout = p[AT_PATH_TIMEOUT] >> 3;
}

static enum vb_reason get_req(const uint8_t *body, struct vb_cm_message *message)
{
	struct vb_cm_req *req = &message->req;

	message->remote_id = 0;
	req->vendor_id = vb_get32(body + AT_REQ_VENDOR) & 0xffffff;
	req->service_id = vb_get64(body + AT_REQ_SERVICE_ID);
	req->guid = vb_get64(body + AT_REQ_GUID);
	req->qkey = vb_get32(body + AT_REQ_QKEY);
	req->qpn = get24(body + AT_REQ_QPN);
	req->responder_resources = body[AT_REQ_RESPONDER_RESOURCES];
	req->eecn = get24(body + AT_REQ_EECN);
	req->initiator_depth = body[AT_REQ_INITIATOR_DEPTH];
	req->remote_eecn = get24(body + AT_REQ_REMOTE_EECN);
	req->remote_timeout = body[AT_REQ_SERVICE] >> 3;
	req->service = body[AT_REQ_SERVICE] >> 1 & 3;
	req->flow_control = body[AT_REQ_SERVICE] & 1;
	req->psn = get24(body + AT_REQ_PSN);
	req->local_timeout = body[AT_REQ_RETRY] >> 3;
	req->retry_count = body[AT_REQ_RETRY] & 7;
	req->pkey = vb_get16(body + AT_REQ_PKEY);
	req->mtu = body[AT_REQ_MTU] >> 4;
	req->rdc = body[AT_REQ_MTU] >> 3 & 1;
	req->rnr_retry_count = body[AT_REQ_MTU] & 7;
	req->cm_retries = body[AT_REQ_RETRIES] >> 4;
	req->srq = body[AT_REQ_RETRIES] >> 3 & 1;
	req->extended = body[AT_REQ_RETRIES] & 7;
	get_path(body + AT_REQ_PRIMARY, &req->primary);
	get_path(body + AT_REQ_ALTERNATE, &req->alternate);
	return message->local_id ? VB_REASON_NONE : VB_REASON_CM_MALFORMED;
}

static enum vb_reason get_rep(const uint8_t *body, struct vb_cm_message *message)
{
	struct vb_cm_rep *rep = &message->rep;

	rep->qkey = vb_get32(body + AT_REP_QKEY);
	rep->qpn = get24(body + AT_REP_QPN);
	rep->eecn = get24(body + AT_REP_EECN);
	rep->psn = get24(body + AT_REP_PSN);
	rep->vendor_id = (uint32_t)body[AT_REP_QPN + 3] << 16 |
			 (uint32_t)body[AT_REP_EECN + 3] << 8 | body[AT_REP_PSN + 3];
	rep->responder_resources = body[AT_REP_RESPONDER_RESOURCES];
	rep->initiator_depth = body[AT_REP_INITIATOR_DEPTH];
	rep->ack_delay = body[AT_REP_ACK_DELAY] >> 3;
	rep->failover = body[AT_REP_ACK_DELAY] >> 1 & 3;
	rep->flow_control = body[AT_REP_ACK_DELAY] & 1;
	rep->rnr_retry_count = body[AT_REP_RNR] >> 5;
	rep->srq = body[AT_REP_RNR] >> 4 & 1;
	rep->guid = vb_get64(body + AT_REP_GUID);
	return message->local_id ? VB_REASON_NONE : VB_REASON_CM_MALFORMED;
}

static enum vb_reason get_rej(const uint8_t *body, struct vb_cm_message *message)
{
	struct vb_cm_rej *rej = &message->rej;

	rej->answered = body[AT_REJ_ANSWERED] >> 6;
	rej->info_length = body[AT_REJ_INFO_LENGTH] >> 1;
	rej->reason = vb_get16(body + AT_REJ_REASON);
	memcpy(rej->info, body + AT_REJ_INFO, VB_CM_INFO_BYTES);
	return rej->info_length <= VB_CM_INFO_BYTES ? VB_REASON_NONE : VB_REASON_CM_MALFORMED;
}

static enum vb_reason get_mra(const uint8_t *body, struct vb_cm_message *message)
{
	message->mra.answered = body[AT_MRA_ANSWERED] >> 6;
	message->mra.service_timeout = body[AT_MRA_TIMEOUT] >> 3;
	return VB_REASON_NONE;
}

static enum vb_reason get_sidr_req(const uint8_t *body, struct vb_cm_message *message)
{
	message->remote_id = 0;
	message->sidr_req.pkey = vb_get16(body + AT_SIDR_REQ_PKEY);
	message->sidr_req.service_id = vb_get64(body + AT_SIDR_REQ_SERVICE_ID);
	return VB_REASON_NONE;
}

static enum vb_reason get_sidr_rep(const uint8_t *body, struct vb_cm_message *message)
{
	struct vb_cm_sidr_rep *rep = &message->sidr_rep;

	message->remote_id = message->local_id;
	message->local_id = 0;
	rep->status = body[AT_SIDR_REP_STATUS];
	rep->info_length = body[AT_SIDR_REP_INFO_LENGTH];
	rep->vendor_id = (uint32_t)vb_get16(body + AT_SIDR_REP_VENDOR) << 8 |
			 body[AT_SIDR_REP_QPN + 3];
	rep->qpn = get24(body + AT_SIDR_REP_QPN);
	rep->service_id = vb_get64(body + AT_SIDR_REP_SERVICE_ID);
	rep->qkey = vb_get32(body + AT_SIDR_REP_QKEY);
	memcpy(rep->info, body + AT_SIDR_REP_INFO, VB_CM_INFO_BYTES);
	return rep->info_length <= VB_CM_INFO_BYTES ? VB_REASON_NONE : VB_REASON_CM_MALFORMED;
}

static enum vb_reason get_body(const uint8_t *body, struct vb_cm_message *message)
{
	switch (message->attribute) {
	case VB_CM_REQ:
		return get_req(body, message);
	case VB_CM_MRA:
		return get_mra(body, message);
	case VB_CM_REJ:
		return get_rej(body, message);
	case VB_CM_REP:
		return get_rep(body, message);
	case VB_CM_DREQ:
		message->dreq.remote_qpn = get24(body + AT_DREQ_QPN);
		return VB_REASON_NONE;
	case VB_CM_SIDR_REQ:
		return get_sidr_req(body, message);
	case VB_CM_SIDR_REP:
		return get_sidr_rep(body, message);
	default: /* RTU, DREP: ids and private data */
		return VB_REASON_NONE;
	}
}

enum vb_reason vb_cm_message_decode(const uint8_t *mad, size_t length,
				    struct vb_cm_message *message)
{
	enum vb_reason reason = vb_cm_message_judge(mad, length);
	const uint8_t *body = mad + VB_MAD_HEADER_BYTES;
	struct vb_mad header;

	if (reason)
		return reason;
	memset(message, 0, sizeof(*message));
	vb_mad_decode(mad, length, &header);
	message->attribute = header.attribute;
	message->modifier = header.modifier;
	message->tid = header.tid;
	message->local_id = vb_get32(body + AT_LOCAL_ID);
	message->remote_id = vb_get32(body + AT_REMOTE_ID);
	memcpy(message->private_data, body + vb_cm_private_at(header.attribute),
	       vb_cm_private_room(header.attribute));
	return get_body(body, message);
}

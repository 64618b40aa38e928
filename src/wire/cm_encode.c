/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages of the connection manager, written (IBA 12.6, 12.11). */
#include <string.h>

#include "wire/bytes.h"
#include "wire/cm_layout.h"
#include "wire/cm_message.h"

/* 24 bits, and the byte that shares their word. */
static void put24(uint8_t *at, uint32_t value, uint32_t behind)
{
	vb_put32(at, value << 8 | (behind & 0xff));
}

static uint8_t bits(unsigned int value, unsigned int width, unsigned int shift)
{
	return (uint8_t)((value & ((1u << width) - 1)) << shift);
}

static void put_path(uint8_t *p, const struct vb_cm_wire_path *path)
{
	vb_put16(p + AT_PATH_LOCAL_LID, path->local_lid);
	vb_put16(p + AT_PATH_REMOTE_LID, path->remote_lid);
	memcpy(p + AT_PATH_LOCAL_GID, path->local_gid, 16);
	memcpy(p + AT_PATH_REMOTE_GID, path->remote_gid, 16);
	vb_put32(p + AT_PATH_FLOW, path->flow_label << 12 | (path->rate & 0x3f));
	p[AT_PATH_TRAFFIC_CLASS] = path->traffic_class;
	p[AT_PATH_HOP_LIMIT] = path->hop_limit;
	p[AT_PATH_SL] = bits(path->sl, 4, 4) | bits(path->subnet_local, 1, 3);
	p[AT_PATH_TIMEOUT] = bits(path->ack_timeout, 5, 3);
}

static void put_req(uint8_t *body, const struct vb_cm_message *message)
{
	const struct vb_cm_req *req = &message->req;

	vb_put32(body + AT_REQ_VENDOR, req->vendor_id & 0xffffff);
	vb_put64(body + AT_REQ_SERVICE_ID, req->service_id);
	vb_put64(body + AT_REQ_GUID, req->guid);
	vb_put32(body + AT_REQ_QKEY, req->qkey);
	put24(body + AT_REQ_QPN, req->qpn, req->responder_resources);
	put24(body + AT_REQ_EECN, req->eecn, req->initiator_depth);
	put24(body + AT_REQ_REMOTE_EECN, req->remote_eecn,
	      bits(req->remote_timeout, 5, 3) | bits(req->service, 2, 1) |
		      bits(req->flow_control, 1, 0));
	put24(body + AT_REQ_PSN, req->psn,
	      bits(req->local_timeout, 5, 3) | bits(req->retry_count, 3, 0));
	vb_put16(body + AT_REQ_PKEY, req->pkey);
	body[AT_REQ_MTU] = bits(req->mtu, 4, 4) | bits(req->rdc, 1, 3) |
			   bits(req->rnr_retry_count, 3, 0);
	body[AT_REQ_RETRIES] = bits(req->cm_retries, 4, 4) | bits(req->srq, 1, 3) |
			       bits(req->extended, 3, 0);
	put_path(body + AT_REQ_PRIMARY, &req->primary);
	put_path(body + AT_REQ_ALTERNATE, &req->alternate);
}

static void put_rep(uint8_t *body, const struct vb_cm_message *message)
{
	const struct vb_cm_rep *rep = &message->rep;

	vb_put32(body + AT_REP_QKEY, rep->qkey);
	put24(body + AT_REP_QPN, rep->qpn, rep->vendor_id >> 16);
	put24(body + AT_REP_EECN, rep->eecn, rep->vendor_id >> 8);
	put24(body + AT_REP_PSN, rep->psn, rep->vendor_id);
	body[AT_REP_RESPONDER_RESOURCES] = rep->responder_resources;
	body[AT_REP_INITIATOR_DEPTH] = rep->initiator_depth;
	body[AT_REP_ACK_DELAY] = bits(rep->ack_delay, 5, 3) | bits(rep->failover, 2, 1) |
				 bits(rep->flow_control, 1, 0);
	body[AT_REP_RNR] = bits(rep->rnr_retry_count, 3, 5) | bits(rep->srq, 1, 4);
	vb_put64(body + AT_REP_GUID, rep->guid);
}

static uint8_t info_length(uint8_t length)
{
	return length < VB_CM_INFO_BYTES ? length : VB_CM_INFO_BYTES;
}

static void put_rej(uint8_t *body, const struct vb_cm_message *message)
{
	const struct vb_cm_rej *rej = &message->rej;

	body[AT_REJ_ANSWERED] = bits(rej->answered, 2, 6);
	body[AT_REJ_INFO_LENGTH] = bits(info_length(rej->info_length), 7, 1);
	vb_put16(body + AT_REJ_REASON, rej->reason);
	memcpy(body + AT_REJ_INFO, rej->info, VB_CM_INFO_BYTES);
}

static void put_sidr_rep(uint8_t *body, const struct vb_cm_message *message)
{
	const struct vb_cm_sidr_rep *rep = &message->sidr_rep;

	body[AT_SIDR_REP_STATUS] = rep->status;
	body[AT_SIDR_REP_INFO_LENGTH] = info_length(rep->info_length);
	vb_put16(body + AT_SIDR_REP_VENDOR, (uint16_t)(rep->vendor_id >> 8));
	put24(body + AT_SIDR_REP_QPN, rep->qpn, rep->vendor_id);
	vb_put64(body + AT_SIDR_REP_SERVICE_ID, rep->service_id);
	vb_put32(body + AT_SIDR_REP_QKEY, rep->qkey);
	memcpy(body + AT_SIDR_REP_INFO, rep->info, VB_CM_INFO_BYTES);
}

static void put_ids(uint8_t *body, const struct vb_cm_message *message)
{
	bool sidr_rep = message->attribute == VB_CM_SIDR_REP;

	vb_put32(body + AT_LOCAL_ID, sidr_rep ? message->remote_id : message->local_id);
	if (message->attribute != VB_CM_REQ && message->attribute != VB_CM_SIDR_REQ && !sidr_rep)
		vb_put32(body + AT_REMOTE_ID, message->remote_id);
}

static void put_body(uint8_t *body, const struct vb_cm_message *message)
{
	switch (message->attribute) {
	case VB_CM_REQ:
		put_req(body, message);
		break;
	case VB_CM_MRA:
		body[AT_MRA_ANSWERED] = bits(message->mra.answered, 2, 6);
		body[AT_MRA_TIMEOUT] = bits(message->mra.service_timeout, 5, 3);
		break;
	case VB_CM_REJ:
		put_rej(body, message);
		break;
	case VB_CM_REP:
		put_rep(body, message);
		break;
	case VB_CM_DREQ:
		put24(body + AT_DREQ_QPN, message->dreq.remote_qpn, 0);
		break;
	case VB_CM_SIDR_REQ:
		vb_put16(body + AT_SIDR_REQ_PKEY, message->sidr_req.pkey);
		vb_put64(body + AT_SIDR_REQ_SERVICE_ID, message->sidr_req.service_id);
		break;
	case VB_CM_SIDR_REP:
		put_sidr_rep(body, message);
		break;
	default:
		break;
	}
}

void vb_cm_message_encode(const struct vb_cm_message *message, uint8_t mad[VB_MAD_BYTES])
{
	const struct vb_mad header = {
		.base_version = VB_MAD_BASE_VERSION,
		.class = VB_MAD_CLASS_CM,
		.class_version = VB_MAD_VERSION_CM,
		.method = VB_MAD_METHOD_SEND,
		.tid = message->tid,
		.attribute = message->attribute,
		.modifier = message->modifier,
	};
	uint8_t *body = mad + VB_MAD_HEADER_BYTES;

	memset(mad, 0, VB_MAD_BYTES);
	vb_mad_encode(&header, mad);
	put_ids(body, message);
	put_body(body, message);
	memcpy(body + vb_cm_private_at(message->attribute), message->private_data,
	       vb_cm_private_room(message->attribute));
}

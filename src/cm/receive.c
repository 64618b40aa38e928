/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A message arrives: what it does in each state is a table at the end of this file. REQ and SIDR_REQ
 * are not in it, because they look for a connection by other numbers (request.c, sidr.c).
 */
#include <string.h>

#include "cm/core.h"
#include "wire/bytes.h"

typedef void handler(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_arrival *a);

/* REP. Where XRC is spoken, the number of the target's queue pair is in the place of an EEC. */
static uint32_t rep_qpn(const struct vb_cm_conn *conn, const struct vb_cm_rep *rep)
{
	return conn->service == VB_CM_XRC ? rep->eecn : rep->qpn;
}

static void report_response(struct vb_cm *cm, struct vb_cm_conn *conn,
			    const struct vb_cm_arrival *a)
{
	const struct vb_cm_rep *rep = &a->message->rep;
	const struct vb_cm_event event = {
		.type = VB_CM_EVENT_RESPONSE,
		.private_data = a->message->private_data,
		.private_length = VB_CM_PRIVATE_REP,
		.responder_resources = rep->initiator_depth,
		.initiator_depth = rep->responder_resources,
		.rnr_retry_count = rep->rnr_retry_count,
		.flow_control = rep->flow_control,
		.srq = rep->srq,
		.service = conn->service,
		.qp_num = conn->remote_qpn,
		.psn = rep->psn,
		.ece_vendor = rep->vendor_id,
		.ece_options = a->message->modifier,
		.service_id = conn->service_id,
		.path = &conn->path,
	};

	vb_cm_report(cm, conn, &event);
}

static void rep_answers(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_arrival *a)
{
	const struct vb_cm_rep *rep = &a->message->rep;
	struct vb_cm_conn *other;

	if (vb_cm_by_remote(cm, false, a->message->local_id, rep->guid, a->path->dgid)) {
		vb_cm_drop(cm, VB_REASON_CM_STATE, a);
		return;
	}
	other = vb_cm_by_qpn(cm, rep_qpn(conn, rep), rep->guid, a->path->dgid);
	/* One queue pair at both ends of this connection is no other connection. */
	if (other && other->remote_id != conn->local_id) {
		vb_cm_drop(cm, VB_REASON_CM_STALE, a);
		vb_cm_answer_rej(cm, a, VB_CM_REJ_STALE, NULL, 0);
		vb_cm_stale(cm, other, a->now);
		return;
	}
	vb_cm_retry_stop(cm, conn);
	conn->state = VB_CM_REP_RCVD;
	conn->mra = false;
	conn->remote_id = a->message->local_id;
	conn->remote_guid = rep->guid;
	conn->remote_qpn = rep_qpn(conn, rep);
	vb_cm_index_remote(cm, conn);
	vb_cm_index_qpn(cm, conn);
	report_response(cm, conn, a);
}

static void rep_waits(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_arrival *a)
{
	vb_cm_drop(cm, VB_REASON_CM_STATE, a);
	vb_cm_send_mra(cm, conn, VB_CM_ANSWERED_REP);
}

/* The RTU was lost. */
static void rep_again(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_arrival *a)
{
	vb_cm_drop(cm, VB_REASON_CM_STATE, a);
	if (conn->active)
		vb_cm_send_rtu(cm, conn);
}

static void rtu_establishes(struct vb_cm *cm, struct vb_cm_conn *conn,
			    const struct vb_cm_arrival *a)
{
	vb_cm_established(cm, conn, a->now);
}

/* The peer goes on with what was rejected: the REJ was lost. */
static void rejected_again(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_arrival *a)
{
	vb_cm_drop(cm, VB_REASON_CM_STATE, a);
	vb_cm_send_again(cm, conn);
}

static void mra_stretches(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_arrival *a)
{
	uint8_t wanted = conn->state == VB_CM_REQ_SENT ? VB_CM_ANSWERED_REQ : VB_CM_ANSWERED_REP;

	if (a->message->mra.answered != wanted ||
	    !vb_cm_retry_stretch(cm, conn, a->message->mra.service_timeout, a->now)) {
		vb_cm_drop(cm, VB_REASON_CM_STATE, a);
		return;
	}
	conn->asker = a->message->local_id;
	if (conn->closing) /* the peer has the REP, but its program does not go on */
		vb_cm_send_dreq(cm, conn, a->now);
}

/* The peer goes on with what this side has given up. */
static void rtu_is_late(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_arrival *a)
{
	vb_cm_drop(cm, VB_REASON_CM_STATE, a);
	if (!conn->active && !conn->established)
		vb_cm_answer_rej(cm, a, VB_CM_REJ_CONSUMER, NULL, 0);
}

static void rej_ends_setup(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_arrival *a)
{
	const struct vb_cm_event event = {
		.type = VB_CM_EVENT_REJECTED,
		.status = a->message->rej.reason,
		.private_data = a->message->private_data,
		.private_length = VB_CM_PRIVATE_REJ,
		.service = conn->service,
		.service_id = conn->service_id,
		.path = &conn->path,
	};

	if (conn->closing) {
		vb_cm_disconnected(cm, conn, 0, a->now);
		return;
	}
	/*
	 * A queue pair that the peer takes for another one's rests for a while (IBA 12.9.8.3.1). At
	 * the passive side a late copy of REQ must not look like a new one.
	 */
	if (event.status == VB_CM_REJ_STALE || !conn->active)
		vb_cm_conn_timewait(cm, conn, a->now);
	else
		vb_cm_conn_idle(cm, conn);
	vb_cm_report(cm, conn, &event);
	vb_cm_conn_put(cm, conn);
}

static void ends(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_arrival *a)
{
	vb_cm_disconnected(cm, conn, 0, a->now);
}

static bool dreq_is_ours(struct vb_cm *cm, const struct vb_cm_conn *conn,
			 const struct vb_cm_arrival *a)
{
	if (a->message->dreq.remote_qpn == conn->local_qpn)
		return true;
	vb_cm_drop(cm, VB_REASON_CM_UNKNOWN, a);
	return false;
}

/* Both sides disconnect at once. The own program has done its part, so the answer leaves at once. */
static void dreq_crosses(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_arrival *a)
{
	if (!dreq_is_ours(cm, conn, a))
		return;
	conn->tid = a->message->tid;
	vb_cm_send_drep(cm, conn);
	vb_cm_disconnected(cm, conn, 0, a->now);
}

/*
 * The DREP waits until the program calls rdma_disconnect() or rdma_destroy_id(): its queue pair
 * works until then.
 */
static void dreq_arrives(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_arrival *a)
{
	if (conn->closing) {
		dreq_crosses(cm, conn, a);
		return;
	}
	if (!dreq_is_ours(cm, conn, a))
		return;
	vb_cm_retry_stop(cm, conn);
	vb_cm_link_remove(&conn->by_qpn);
	conn->state = VB_CM_DREQ_RCVD;
	conn->tid = a->message->tid;
	vb_cm_report_plain(cm, conn, VB_CM_EVENT_DISCONNECTED, 0);
}

/*
 * The peer has accepted, and disconnects before it has the RTU, which only this implementation does
 * (Linux lets the connection be made). To the program it is a refusal.
 */
static void dreq_ends_setup(struct vb_cm *cm, struct vb_cm_conn *conn,
			    const struct vb_cm_arrival *a)
{
	static const uint8_t nothing[VB_CM_PRIVATE_REJ];
	const struct vb_cm_event event = {
		.type = VB_CM_EVENT_REJECTED,
		.status = VB_CM_REJ_CONSUMER,
		.private_data = nothing,
		.private_length = VB_CM_PRIVATE_REJ,
		.service = conn->service,
		.service_id = conn->service_id,
		.path = &conn->path,
	};

	if (!dreq_is_ours(cm, conn, a))
		return;
	conn->tid = a->message->tid;
	vb_cm_send_drep(cm, conn);
	vb_cm_conn_idle(cm, conn);
	vb_cm_report(cm, conn, &event);
	vb_cm_conn_put(cm, conn);
}

/*
 * The listener asks whether this host is where its request says, since it has little room
 * (senders.h). It takes the request as soon as it knows.
 */
static void question_asked(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_arrival *a)
{
	vb_cm_drop(cm, VB_REASON_CM_STATE, a);
	vb_cm_answer_drep(cm, a);
	vb_cm_send_again(cm, conn);
}

static void dreq_again(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_arrival *a)
{
	(void)conn;
	vb_cm_drop(cm, VB_REASON_CM_STATE, a);
	vb_cm_answer_drep(cm, a);
}

static void sidr_answers(struct vb_cm *cm, struct vb_cm_conn *conn, const struct vb_cm_arrival *a)
{
	const struct vb_cm_sidr_rep *rep = &a->message->sidr_rep;
	const struct vb_cm_event event = {
		.type = rep->status ? VB_CM_EVENT_UNREACHABLE : VB_CM_EVENT_SIDR_RESPONSE,
		.status = rep->status,
		.private_data = a->message->private_data,
		.private_length = VB_CM_PRIVATE_SIDR_REP,
		.service = VB_CM_UD,
		.qp_num = rep->status ? 0 : rep->qpn,
		.qkey = rep->status ? 0 : rep->qkey,
		.ece_vendor = rep->vendor_id,
		.ece_options = a->message->modifier,
		.service_id = conn->service_id,
		.path = &conn->path,
	};

	vb_cm_conn_idle(cm, conn);
	vb_cm_report(cm, conn, &event);
	vb_cm_conn_put(cm, conn);
}

#define MESSAGE(name) [VB_CM_##name - VB_CM_REQ]
#define MESSAGES      (VB_CM_SIDR_REP - VB_CM_REQ + 1)

/* What is not here has no use: the message is dropped. */
static handler *const table[VB_CM_STATE_COUNT][MESSAGES] = {
	[VB_CM_IDLE] = {MESSAGE(DREQ) = dreq_again},
	[VB_CM_REQ_SENT] = {MESSAGE(REP) = rep_answers, MESSAGE(REJ) = rej_ends_setup,
			    MESSAGE(MRA) = mra_stretches, MESSAGE(DREQ) = question_asked},
	[VB_CM_REP_RCVD] = {MESSAGE(REP) = rep_waits, MESSAGE(REJ) = rej_ends_setup,
			    MESSAGE(DREQ) = dreq_ends_setup},
	[VB_CM_REQ_RCVD] = {MESSAGE(REJ) = rej_ends_setup},
	[VB_CM_REP_SENT] = {MESSAGE(RTU) = rtu_establishes, MESSAGE(REJ) = rej_ends_setup,
			    MESSAGE(MRA) = mra_stretches, MESSAGE(DREQ) = dreq_arrives},
	[VB_CM_ESTABLISHED] = {MESSAGE(REP) = rep_again, MESSAGE(REJ) = ends,
			       MESSAGE(DREQ) = dreq_arrives},
	[VB_CM_DREQ_SENT] = {MESSAGE(REJ) = ends, MESSAGE(DREQ) = dreq_crosses,
			     MESSAGE(DREP) = ends},
	[VB_CM_DREQ_RCVD] = {MESSAGE(DREP) = ends},
	[VB_CM_TIMEWAIT] = {MESSAGE(RTU) = rtu_is_late, MESSAGE(DREQ) = dreq_again},
	[VB_CM_REJ_SENT] = {MESSAGE(REP) = rejected_again, MESSAGE(RTU) = rejected_again,
			    MESSAGE(DREQ) = dreq_again},
	[VB_CM_SIDR_REQ_SENT] = {MESSAGE(SIDR_REP) = sidr_answers, MESSAGE(DREQ) = question_asked},
};

/* Of REJ with reason 4: its sender may not know the receiver's id, and gives its GUID (IBA 12.6.7.3). */
static struct vb_cm_conn *find_given_up(struct vb_cm *cm, const struct vb_cm_arrival *a)
{
	const struct vb_cm_rej *rej = &a->message->rej;

	if (a->message->attribute != VB_CM_REJ || rej->reason != VB_CM_REJ_TIMEOUT ||
	    rej->info_length < 8)
		return NULL;
	return vb_cm_by_remote(cm, false, a->message->local_id, vb_get64(rej->info), a->path->dgid);
}

/*
 * Whether the sender's number is that of the peer, which is not known before the first answer. A REJ
 * without one answers a REQ; it is late once there was another answer.
 */
static bool from_peer(const struct vb_cm_conn *conn, const struct vb_cm_message *message)
{
	return !conn->remote_id || message->local_id == conn->remote_id;
}

static enum vb_reason find(struct vb_cm *cm, const struct vb_cm_arrival *a,
			   struct vb_cm_conn **conn)
{
	*conn = find_given_up(cm, a);
	if (*conn)
		return VB_REASON_NONE;
	*conn = vb_cm_by_local(cm, a->message->remote_id);
	if (!*conn || !from_peer(*conn, a->message))
		return VB_REASON_CM_UNKNOWN;
	return memcmp((*conn)->path.dgid, a->path->dgid, 16) ? VB_REASON_CM_SOURCE : VB_REASON_NONE;
}

/*
 * Of a message for an id that nobody has, or no connection any more: DREQ has one answer. Who sends
 * REP waits, and would wait for a minute: the process that asked has been killed.
 */
static void answer_unknown(struct vb_cm *cm, const struct vb_cm_arrival *a)
{
	if (a->message->attribute == VB_CM_DREQ)
		vb_cm_answer_drep(cm, a);
	else if (a->message->attribute == VB_CM_REP && !vb_cm_by_local(cm, a->message->remote_id))
		vb_cm_answer_rej(cm, a, VB_CM_REJ_INVALID_COMM_ID, NULL, 0);
}

static void answer_arrived(struct vb_cm *cm, const struct vb_cm_arrival *a)
{
	struct vb_cm_conn *conn;
	enum vb_reason reason;
	handler *act;

	if (a->message->attribute == VB_CM_DREP && vb_cm_question_answered(cm, a))
		return;
	reason = find(cm, a, &conn);
	if (reason) {
		vb_cm_drop(cm, reason, a);
		if (reason == VB_REASON_CM_UNKNOWN)
			answer_unknown(cm, a);
		return;
	}
	if (a->message->remote_id == conn->local_id)
		vb_cm_sender_known(cm, a->path, a->now);
	act = table[conn->state][a->message->attribute - VB_CM_REQ];
	if (act)
		act(cm, conn, a);
	else
		vb_cm_drop(cm, VB_REASON_CM_STATE, a);
}

void vb_cm_receive(struct vb_cm *cm, const struct vb_cm_path *path, const uint8_t *mad,
		   size_t length, uint64_t now)
{
	struct vb_cm_message message;
	enum vb_reason reason = vb_cm_message_decode(mad, length, &message);
	const struct vb_cm_arrival a = {.message = &message, .path = path, .mad = mad, .now = now};

	if (reason) {
		cm->env->drop(cm, reason, path, length == VB_MAD_BYTES ? mad : NULL);
		return;
	}
	switch (message.attribute) {
	case VB_CM_REQ:
		vb_cm_request_arrived(cm, &a);
		break;
	case VB_CM_SIDR_REQ:
		vb_cm_sidr_arrived(cm, &a);
		break;
	default:
		answer_arrived(cm, &a);
		break;
	}
}

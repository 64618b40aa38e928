/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The passive side: rdma_accept(3), rdma_reject(3), rdma_reject_ece(3), rdma_notify(3). */
#include "base/clock.h"
#include "base/lock.h"
#include "rdmacm/face.h"
#include "rdmacm/id.h"
#include "rdmacm/manager.h"
#include "rdmacm/param.h"
#include "rdmacm/qp.h"
#include "rdmacm/sync.h"

enum { ACK_DELAY = 15 }; /* 4.096 us * 2^15, what the kernel says of rxe */

static int check_requested(const struct vb_cma_id *id, const char *call)
{
	int err = vb_cma_id_check(id, call);

	if (!err && !id->requested)
		err = vb_cma_id_refuse_state(id, call);
	return err;
}

/* Before REP leaves, because the peer's first message may be faster than RTU. */
static int ready_qp(struct vb_cma_id *id, const struct rdma_conn_param *param)
{
	int err;

	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	id->exchange.responder_resources = param->responder_resources;
	id->exchange.initiator_depth = param->initiator_depth;
	vb_mutex_release(&id->lock);
	if (!id->pub.qp)
		return 0;
	err = vb_cma_qp_move(id, IBV_QPS_INIT);
	if (!err)
		err = vb_cma_qp_move(id, IBV_QPS_RTR);
	if (!err)
		err = vb_cma_qp_move(id, IBV_QPS_RTS);
	return err;
}

static int reply(struct vb_cma_id *id, const struct rdma_conn_param *param)
{
	struct vb_cm *cm = vb_cma_manager_take();
	int err = -EINVAL;

	if (id->conn)
		err = vb_cm_accept(cm, id->conn,
				   &(struct vb_cm_accept){
					   .qp_num = param->qp_num,
					   .psn = id->exchange.rq_psn,
					   .responder_resources = param->responder_resources,
					   .initiator_depth = param->initiator_depth,
					   .rnr_retry_count = param->rnr_retry_count,
					   .ack_delay = ACK_DELAY,
					   .flow_control = param->flow_control,
					   .srq = param->srq,
					   .ece_vendor = id->ece.vendor_id,
					   .ece_options = id->ece.options,
					   .private_data = param->private_data,
					   .private_length = param->private_data_len,
				   },
				   vb_clock_ns());
	if (!err)
		id->requested = false;
	vb_cma_manager_release();
	return err ? vb_refuse(-err, VB_REASON_CMA_STATE, "accept: the peer has given up") : 0;
}

static int answer_sidr(struct vb_cma_id *id, const struct vb_cm_sidr_reply *how, const char *call)
{
	struct vb_cm *cm = vb_cma_manager_take();
	int err = id->conn ? vb_cm_sidr_reply(cm, id->conn, how, vb_clock_ns()) : -EINVAL;

	if (!err)
		id->requested = false;
	vb_cma_manager_release();
	return err ? vb_refuse(-err, VB_REASON_CMA_STATE, "%s: the request is over", call) : 0;
}

static int reject(struct vb_cma_id *id, uint16_t reason, const void *data, unsigned int length)
{
	struct vb_cm *cm = vb_cma_manager_take();
	int err = id->conn ? vb_cm_reject(cm, id->conn, reason, data, length, vb_clock_ns())
			   : -EINVAL;

	id->requested = false;
	vb_cma_manager_release();
	return err ? vb_refuse(-err, VB_REASON_CMA_STATE, "reject: the request is over") : 0;
}

static void set_state(struct vb_cma_id *id, enum vb_cma_state state)
{
	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	id->state = state;
	vb_mutex_release(&id->lock);
}

static int accept_datagram(struct vb_cma_id *id, const struct rdma_conn_param *given)
{
	struct rdma_conn_param param;
	int err = vb_cma_param_complete(id, given, NULL, VB_CM_PRIVATE_SIDR_REP, "accept", &param);

	if (!err)
		err = answer_sidr(id,
				  &(struct vb_cm_sidr_reply){
					  .status = VB_CM_SIDR_VALID,
					  .qp_num = param.qp_num,
					  .qkey = RDMA_UDP_QKEY,
					  .ece_vendor = id->ece.vendor_id,
					  .ece_options = id->ece.options,
					  .private_data = param.private_data,
					  .private_length = param.private_data_len,
				  },
				  "accept");
	if (!err)
		set_state(id, VB_CMA_CONNECTED);
	return err;
}

static int accept_connection(struct vb_cma_id *id, const struct rdma_conn_param *given)
{
	struct rdma_conn_param param;
	int err = vb_cma_param_complete(id, given, &id->exchange, VB_CM_PRIVATE_REP, "accept",
					&param);

	if (!err && vb_cma_event_reserve(id, VB_CMA_EVENTS_OF_CONNECTION))
		err = vb_cma_refuse_memory("accept");
	if (err)
		return err;
	err = ready_qp(id, &param);
	if (err) {
		vb_cma_qp_error(id);
		(void)reject(id, VB_CM_REJ_CONSUMER, NULL, 0);
		return err;
	}
	err = reply(id, &param);
	return err ? err : vb_cma_sync_wait(id);
}

VB_EXPORT int rdma_accept(struct rdma_cm_id *pub, struct rdma_conn_param *conn_param)
{
	struct vb_cma_id *id = vb_cma_id_of(pub);
	int err = check_requested(id, "accept");

	if (err)
		return vb_cma_answer(err);
	return vb_cma_answer(vb_cma_id_is_datagram(id) ? accept_datagram(id, conn_param)
						       : accept_connection(id, conn_param));
}

static int refuse(struct vb_cma_id *id, uint16_t reason, const void *data, uint8_t length)
{
	unsigned int most;
	int err = vb_cma_id_check(id, "reject");

	if (err)
		return err;
	if (!id->conn)
		return vb_cma_id_refuse_state(id, "reject");
	most = vb_cma_id_is_datagram(id) ? VB_CM_PRIVATE_SIDR_REP : VB_CM_PRIVATE_REJ;
	if (length && !data)
		return vb_cma_refuse_null("reject", "private_data");
	if (length > most)
		return vb_refuse(EINVAL, VB_REASON_ARG_LIMIT,
				 "reject: %u bytes of private data, at most %u", length, most);
	if (!vb_cma_id_is_datagram(id))
		err = reject(id, reason, data, length);
	else
		err = answer_sidr(id,
				  &(struct vb_cm_sidr_reply){
					  .status = VB_CM_SIDR_REJECTED,
					  .private_data = data,
					  .private_length = length,
				  },
				  "reject");
	if (!err)
		set_state(id, VB_CMA_DISCONNECTED);
	return err;
}

VB_EXPORT int rdma_reject(struct rdma_cm_id *pub, const void *private_data,
			  uint8_t private_data_len)
{
	return vb_cma_answer(
		refuse(vb_cma_id_of(pub), VB_CM_REJ_CONSUMER, private_data, private_data_len));
}

VB_EXPORT int rdma_reject_ece(struct rdma_cm_id *pub, const void *private_data,
			      uint8_t private_data_len)
{
	return vb_cma_answer(
		refuse(vb_cma_id_of(pub), VB_CM_REJ_VENDOR, private_data, private_data_len));
}

VB_EXPORT int rdma_notify(struct rdma_cm_id *pub, enum ibv_event_type event)
{
	struct vb_cma_id *id = vb_cma_id_of(pub);
	int err = vb_cma_id_check(id, "notify");
	struct vb_cm *cm;

	if (!err && event != IBV_EVENT_COMM_EST)
		err = vb_refuse(EINVAL, VB_REASON_ARG, "notify: event %d", event);
	if (err)
		return vb_cma_answer(err);
	cm = vb_cma_manager_take();
	err = id->conn ? vb_cm_notify(cm, id->conn, vb_clock_ns()) : -EINVAL;
	vb_cma_manager_release();
	if (err)
		err = vb_refuse(-err, VB_REASON_CMA_STATE, "notify: the id is in the state \"%s\"",
				vb_cma_state_name(id->state));
	return vb_cma_answer(err);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The active side: rdma_connect(3), rdma_establish(3). */
#include <endian.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/random.h"
#include "rdmacm/address.h"
#include "rdmacm/face.h"
#include "rdmacm/id.h"
#include "rdmacm/manager.h"
#include "rdmacm/param.h"
#include "rdmacm/sync.h"

enum { PSN_MASK = 0xffffff };

/* With the id's lock. */
static struct vb_cm_path path_of(const struct vb_cma_id *id)
{
	const struct ibv_sa_path_rec *rec = id->paths;
	struct vb_cm_path path = {
		.guid = be64toh(ibv_get_device_guid(id->place.verbs->device)),
		.ifindex = id->place.ifindex,
		.flow_label = be32toh(rec->flow_label),
		.pkey = be16toh(rec->pkey),
		.traffic_class = rec->traffic_class,
		.hop_limit = rec->hop_limit,
		.sl = rec->sl,
		.mtu = rec->mtu,
		.ack_timeout = (uint8_t)(rec->packet_life_time + 1),
	};

	if (id->options.ack_timeout_set)
		path.ack_timeout = id->options.ack_timeout;
	memcpy(path.sgid, id->pub.route.addr.addr.ibaddr.sgid.raw, sizeof(path.sgid));
	memcpy(path.dgid, id->pub.route.addr.addr.ibaddr.dgid.raw, sizeof(path.dgid));
	return path;
}

static struct vb_cm_address address_of(const struct vb_cma_id *id)
{
	const struct rdma_addr *addr = &id->pub.route.addr;
	const union ibv_gid source = vb_cma_address_gid(&addr->src_addr);
	const union ibv_gid destination = vb_cma_address_gid(&addr->dst_addr);
	struct vb_cm_address a = {
		.version = addr->src_addr.sa_family == AF_INET ? 4 : 6,
		.port = be16toh(vb_cma_address_port(&addr->src_addr)),
	};

	memcpy(a.source, source.raw, sizeof(a.source));
	memcpy(a.destination, destination.raw, sizeof(a.destination));
	return a;
}

static uint64_t service_of(const struct vb_cma_id *id)
{
	return vb_cm_service_id((uint16_t)id->pub.ps,
				be16toh(vb_cma_address_port(&id->pub.route.addr.dst_addr)));
}

/* What the own side of the queue pair is, before the peer has answered. With the id's lock. */
static void begin_exchange(struct vb_cma_id *id, const struct rdma_conn_param *param,
			   const struct vb_cm_path *path)
{
	struct vb_cma_exchange *x = &id->exchange;

	*x = (struct vb_cma_exchange){
		.known = true,
		.rq_psn = vb_random32() & PSN_MASK,
		.responder_resources = param->responder_resources,
		.initiator_depth = param->initiator_depth,
		.retry_count = param->retry_count,
		.mtu = path->mtu,
		.ah = {.is_global = 1, .port_num = id->pub.port_num, .sl = path->sl},
	};
	memcpy(x->ah.grh.dgid.raw, path->dgid, sizeof(path->dgid));
	x->ah.grh.sgid_index = id->place.sgid_index;
	x->ah.grh.flow_label = path->flow_label;
	x->ah.grh.hop_limit = path->hop_limit;
	x->ah.grh.traffic_class = path->traffic_class;
}

/* With both locks. */
static int begin(struct vb_cm *cm, struct vb_cma_id *id, const struct rdma_conn_param *param,
		 const void *data, unsigned int length)
{
	const struct vb_cm_path path = path_of(id);

	begin_exchange(id, param, &path);
	if (id->pub.qp_type == IBV_QPT_UD)
		return vb_cm_sidr_request(cm,
					  &(struct vb_cm_sidr_request){
						  .user = id,
						  .path = path,
						  .service_id = service_of(id),
						  .address = address_of(id),
						  .private_data = data,
						  .private_length = (uint8_t)length,
					  },
					  vb_clock_ns(), &id->conn);
	return vb_cm_connect(cm,
			     &(struct vb_cm_connect){
				     .user = id,
				     .path = path,
				     .service_id = service_of(id),
				     .address = address_of(id),
				     .service = vb_cma_param_service(id),
				     .qp_num = param->qp_num,
				     .psn = id->exchange.rq_psn,
				     .responder_resources = param->responder_resources,
				     .initiator_depth = param->initiator_depth,
				     .retry_count = param->retry_count,
				     .rnr_retry_count = param->rnr_retry_count,
				     .flow_control = param->flow_control,
				     .srq = param->srq,
				     .ece_vendor = id->ece.vendor_id,
				     .ece_options = id->ece.options,
				     .private_data = data,
				     .private_length = (uint8_t)length,
			     },
			     vb_clock_ns(), &id->conn);
}

/* rdma_create_ep() may have brought data that come first. */
static int connect_with(struct vb_cma_id *id, const struct rdma_conn_param *param,
			unsigned int most)
{
	uint8_t data[VB_CM_PRIVATE_SIDR_REQ];
	size_t length = id->ep_connect_len + param->private_data_len;
	struct vb_cm *cm;
	int err;

	if (length > most)
		return vb_refuse(EINVAL, VB_REASON_ARG_LIMIT,
				 "connect: %zu bytes of private data, at most %u", length, most);
	if (id->ep_connect_len)
		memcpy(data, id->ep_connect, id->ep_connect_len);
	if (param->private_data_len)
		memcpy(data + id->ep_connect_len, param->private_data, param->private_data_len);
	if (vb_cma_event_reserve(id, VB_CMA_EVENTS_OF_CONNECTION))
		return vb_cma_refuse_memory("connect");
	cm = vb_cma_manager_take();
	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	err = id->state == VB_CMA_ROUTE_RESOLVED ? begin(cm, id, param, data, (unsigned int)length)
						 : vb_cma_id_refuse_state(id, "connect");
	if (!err)
		id->state = VB_CMA_CONNECTING;
	vb_mutex_release(&id->lock);
	vb_cma_manager_release();
	return err;
}

static int check(const struct vb_cma_id *id, const struct rdma_conn_param *param)
{
	int err = vb_cma_id_check(id, "connect");

	if (!err && id->state != VB_CMA_ROUTE_RESOLVED)
		err = vb_cma_id_refuse_state(id, "connect");
	if (!err && id->pub.qp_type != IBV_QPT_UD && !id->pub.qp && !param)
		err = vb_refuse(EINVAL, VB_REASON_CMA_STATE,
				"connect: the id has no queue pair, and conn_param none");
	return err;
}

VB_EXPORT int rdma_connect(struct rdma_cm_id *pub, struct rdma_conn_param *conn_param)
{
	struct vb_cma_id *id = vb_cma_id_of(pub);
	struct rdma_conn_param param;
	unsigned int most;
	int err = check(id, conn_param);

	if (err)
		return vb_cma_answer(err);
	most = pub->qp_type == IBV_QPT_UD ? VB_CM_USER_SIDR_REQ : VB_CM_USER_REQ;
	err = vb_cma_param_complete(id, conn_param, NULL, most, "connect", &param);
	if (!err)
		err = connect_with(id, &param, most);
	return vb_cma_answer(err ? err : vb_cma_sync_wait(id));
}

VB_EXPORT int rdma_establish(struct rdma_cm_id *pub)
{
	struct vb_cma_id *id = vb_cma_id_of(pub);
	int err = vb_cma_id_check(id, "establish");
	struct vb_cm *cm;

	if (!err && pub->qp)
		err = vb_refuse(
			EINVAL, VB_REASON_CMA_STATE,
			"establish: the id has a queue pair, and is established by its event");
	if (err)
		return vb_cma_answer(err);
	cm = vb_cma_manager_take();
	err = id->conn ? vb_cm_establish(cm, id->conn, vb_clock_ns()) : -EINVAL;
	if (!err) {
		vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
		id->state = VB_CMA_CONNECTED;
		vb_mutex_release(&id->lock);
	}
	vb_cma_manager_release();
	return vb_cma_answer(err ? vb_cma_id_refuse_state(id, "establish") : 0);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Functions that this library does not serve yet: they refuse. They are here so that a program which
 * was linked with them starts. tests/abi/symbols-rdmacm-later.txt has what is missing altogether.
 */
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "rdmacm/face.h"

VB_EXPORT struct rdma_event_channel *rdma_create_event_channel(void)
{
	return vb_cm_answer_null(-EOPNOTSUPP);
}

VB_EXPORT void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	(void)channel;
}

VB_EXPORT int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id,
			     void *context, enum rdma_port_space ps)
{
	(void)channel;
	(void)id;
	(void)context;
	(void)ps;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_destroy_id(struct rdma_cm_id *id)
{
	(void)id;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	(void)id;
	(void)channel;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
			     struct ibv_qp_init_attr *qp_init_attr)
{
	(void)id;
	(void)res;
	(void)pd;
	(void)qp_init_attr;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT void rdma_destroy_ep(struct rdma_cm_id *id)
{
	(void)id;
}

VB_EXPORT int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	(void)id;
	(void)addr;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr,
				struct sockaddr *dst_addr, int timeout_ms)
{
	(void)id;
	(void)src_addr;
	(void)dst_addr;
	(void)timeout_ms;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	(void)id;
	(void)timeout_ms;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
			     struct ibv_qp_init_attr *qp_init_attr)
{
	(void)id;
	(void)pd;
	(void)qp_init_attr;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *qp_init_attr)
{
	(void)id;
	(void)qp_init_attr;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT void rdma_destroy_qp(struct rdma_cm_id *id)
{
	(void)id;
}

VB_EXPORT int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr,
				int *qp_attr_mask)
{
	(void)id;
	(void)qp_attr;
	(void)qp_attr_mask;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	(void)id;
	(void)conn_param;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_establish(struct rdma_cm_id *id)
{
	(void)id;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	(void)id;
	(void)backlog;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	(void)listen;
	(void)id;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	(void)id;
	(void)conn_param;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	(void)id;
	(void)private_data;
	(void)private_data_len;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data,
			      uint8_t private_data_len)
{
	(void)id;
	(void)private_data;
	(void)private_data_len;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	(void)id;
	(void)event;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_disconnect(struct rdma_cm_id *id)
{
	(void)id;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	(void)id;
	(void)ece;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	(void)id;
	(void)ece;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	(void)id;
	(void)addr;
	(void)context;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	(void)id;
	(void)addr;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_join_multicast_ex(struct rdma_cm_id *id,
				     struct rdma_cm_join_mc_attr_ex *mc_join_attr, void *context)
{
	(void)id;
	(void)mc_join_attr;
	(void)context;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	(void)channel;
	(void)event;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	(void)event;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
				  uint64_t arg)
{
	(void)id;
	(void)event;
	(void)status;
	(void)arg;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT struct ibv_context **rdma_get_devices(int *num_devices)
{
	(void)num_devices;
	return vb_cm_answer_null(-EOPNOTSUPP);
}

VB_EXPORT void rdma_free_devices(struct ibv_context **list)
{
	(void)list;
}

VB_EXPORT int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval,
			      size_t optlen)
{
	(void)id;
	(void)level;
	(void)optname;
	(void)optval;
	(void)optlen;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_getaddrinfo(const char *node, const char *service,
			       const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	(void)node;
	(void)service;
	(void)hints;
	(void)res;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	(void)res;
}

VB_EXPORT int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
				    const struct rdma_addrinfo *hints)
{
	(void)id;
	(void)node;
	(void)service;
	(void)hints;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info)
{
	(void)id;
	(void)info;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd,
			      struct ibv_srq_init_attr *attr)
{
	(void)id;
	(void)pd;
	(void)attr;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	(void)id;
	(void)attr;
	return vb_cm_answer(-EOPNOTSUPP);
}

VB_EXPORT void rdma_destroy_srq(struct rdma_cm_id *id)
{
	(void)id;
}

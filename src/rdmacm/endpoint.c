/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma_create_ep(3), rdma_destroy_ep(3): a synchronous id, addresses and queue pair in one step. */
#include <rdma/rdma_verbs.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/devices.h"
#include "rdmacm/face.h"
#include "rdmacm/id.h"
#include "rdmacm/qp.h"

enum { RESOLVE_MS = 2000 };

/* A listener has no queue pair: those of its requests are made like this. */
static int create_passive(struct vb_cma_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
			  const struct ibv_qp_init_attr *attr)
{
	if (rdma_bind_addr(&id->pub, res->ai_src_addr))
		return -errno;
	if (attr) {
		id->ep_qp = true;
		id->ep_attr = *attr;
		id->ep_pd = pd;
	}
	return 0;
}

static int keep_connect_data(struct vb_cma_id *id, const struct rdma_addrinfo *res)
{
	if (!res->ai_connect_len)
		return 0;
	id->ep_connect = malloc(res->ai_connect_len);
	if (!id->ep_connect)
		return vb_cma_refuse_memory("create_ep");
	memcpy(id->ep_connect, res->ai_connect, res->ai_connect_len);
	id->ep_connect_len = res->ai_connect_len;
	return 0;
}

static int resolve_route(struct rdma_cm_id *pub, const struct rdma_addrinfo *res)
{
	if (res->ai_route_len)
		return rdma_set_option(pub, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, res->ai_route,
				       res->ai_route_len);
	return rdma_resolve_route(pub, RESOLVE_MS);
}

static int create_active(struct vb_cma_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
			 struct ibv_qp_init_attr *attr)
{
	int err = 0;

	if (rdma_resolve_addr(&id->pub, res->ai_src_addr, res->ai_dst_addr, RESOLVE_MS) ||
	    resolve_route(&id->pub, res))
		return -errno;
	if (attr) {
		attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
		err = vb_cma_qp_create(id, pd, attr);
	}
	return err ? err : keep_connect_data(id, res);
}

VB_EXPORT int rdma_create_ep(struct rdma_cm_id **pub, struct rdma_addrinfo *res, struct ibv_pd *pd,
			     struct ibv_qp_init_attr *attr)
{
	struct vb_cma_id *id = NULL;
	int err;

	if (!pub || !res)
		return vb_cma_answer(vb_cma_refuse_null("create_ep", "an argument"));
	err = vb_cma_devices_exist();
	if (!err)
		err = vb_cma_id_create(NULL, NULL, (enum rdma_port_space)res->ai_port_space,
				       (enum ibv_qp_type)res->ai_qp_type, &id);
	if (err)
		return vb_cma_answer(err);
	err = res->ai_flags & RAI_PASSIVE ? create_passive(id, res, pd, attr)
					  : create_active(id, res, pd, attr);
	if (err)
		rdma_destroy_ep(&id->pub);
	else
		*pub = &id->pub;
	return vb_cma_answer(err);
}

VB_EXPORT void rdma_destroy_ep(struct rdma_cm_id *pub)
{
	if (vb_cma_id_check(vb_cma_id_of(pub), "destroy_ep"))
		return;
	if (pub->qp)
		rdma_destroy_qp(pub);
	if (pub->srq)
		rdma_destroy_srq(pub);
	(void)rdma_destroy_id(pub);
}

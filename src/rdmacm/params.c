/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What programs say of a connection, checked and completed. */
#include "rdmacm/param.h"

#include "rdmacm/face.h"
#include "rdmacm/id.h"

enum { RETRIES_MOST = 7 };

static uint8_t smaller(int a, int b)
{
	return (uint8_t)(a < b ? a : b);
}

static int limits_of(const struct vb_cma_id *id, uint8_t *responder, uint8_t *initiator)
{
	struct ibv_device_attr attr;
	int err = ibv_query_device(id->pub.verbs, &attr);

	if (err)
		return -err;
	*responder = smaller(attr.max_qp_rd_atom, UINT8_MAX);
	*initiator = smaller(attr.max_qp_init_rd_atom, UINT8_MAX);
	return 0;
}

static int check_depths(const struct rdma_conn_param *p, uint8_t responder, uint8_t initiator,
			const char *call)
{
	if (p->responder_resources != RDMA_MAX_RESP_RES && p->responder_resources > responder)
		return vb_refuse(EINVAL, VB_REASON_ARG_LIMIT,
				 "%s: responder_resources %u, at most %u", call,
				 p->responder_resources, responder);
	if (p->initiator_depth != RDMA_MAX_INIT_DEPTH && p->initiator_depth > initiator)
		return vb_refuse(EINVAL, VB_REASON_ARG_LIMIT, "%s: initiator_depth %u, at most %u",
				 call, p->initiator_depth, initiator);
	return 0;
}

/* "As many as the device can do": of a request, as many as the peer wants of them. */
static void complete_depths(struct rdma_conn_param *p, const struct vb_cma_exchange *request,
			    uint8_t responder, uint8_t initiator)
{
	if (request) {
		responder = smaller(responder, request->responder_resources);
		initiator = smaller(initiator, request->initiator_depth);
	}
	if (p->responder_resources == RDMA_MAX_RESP_RES)
		p->responder_resources = responder;
	if (p->initiator_depth == RDMA_MAX_INIT_DEPTH)
		p->initiator_depth = initiator;
}

int vb_cma_param_complete(const struct vb_cma_id *id, const struct rdma_conn_param *given,
			  const struct vb_cma_exchange *request, unsigned int private_most,
			  const char *call, struct rdma_conn_param *full)
{
	static const struct rdma_conn_param none = {
		.responder_resources = RDMA_MAX_RESP_RES,
		.initiator_depth = RDMA_MAX_INIT_DEPTH,
		.retry_count = RETRIES_MOST,
		.rnr_retry_count = RETRIES_MOST,
	};
	uint8_t responder = 0, initiator = 0;
	int err = limits_of(id, &responder, &initiator);

	if (err)
		return err;
	*full = given ? *given : none;
	if (full->private_data_len && !full->private_data)
		return vb_cma_refuse_null(call, "private_data");
	if (full->private_data_len > private_most)
		return vb_refuse(EINVAL, VB_REASON_ARG_LIMIT,
				 "%s: %u bytes of private data, at most %u", call,
				 full->private_data_len, private_most);
	err = check_depths(full, responder, initiator, call);
	if (err)
		return err;
	complete_depths(full, request, responder, initiator);
	full->retry_count = smaller(full->retry_count, RETRIES_MOST);
	full->rnr_retry_count = smaller(full->rnr_retry_count, RETRIES_MOST);
	if (id->pub.qp) {
		full->qp_num = id->pub.qp->qp_num;
		full->srq = id->pub.qp->srq != NULL;
	}
	return 0;
}

uint8_t vb_cma_param_service(const struct vb_cma_id *id)
{
	switch (id->pub.qp_type) {
	case IBV_QPT_UC:
		return VB_CM_UC;
	case IBV_QPT_UD:
		return VB_CM_UD;
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return VB_CM_XRC;
	default:
		return VB_CM_RC;
	}
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma_create_srq(3), rdma_destroy_srq(3). */
#include <errno.h>
#include <string.h>

#include <rdma/rdma_verbs.h>

#include "rdmacm/cq.h"
#include "rdmacm/face.h"
#include "rdmacm/id.h"

static int check(const struct vb_cma_id *id, const struct ibv_pd *pd)
{
	if (id->pub.srq)
		return vb_refuse(EINVAL, VB_REASON_CMA_STATE,
				 "create_srq: the id has a shared receive queue");
	if (!id->pub.verbs)
		return vb_refuse(EINVAL, VB_REASON_CMA_STATE, "create_srq: the id has no device");
	if (pd && pd->context != id->pub.verbs)
		return vb_refuse(EINVAL, VB_REASON_HANDLE,
				 "create_srq: the protection domain is of another device");
	return 0;
}

/* An XRC queue has a completion queue and a domain of its own. */
static int complete_xrc(struct vb_cma_id *id, struct ibv_srq_init_attr_ex *attr)
{
	int err;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !attr->cq) {
		err = vb_cma_cq_one(id, attr->attr.max_wr, &id->made_srq_channel, &id->made_srq_cq);
		if (err)
			return err;
		id->pub.recv_cq_channel = id->made_srq_channel;
		id->pub.recv_cq = id->made_srq_cq;
		attr->cq = id->made_srq_cq;
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
	}
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !attr->xrcd) {
		attr->xrcd = vb_cma_place_xrcd(&id->place);
		if (!attr->xrcd)
			return -errno;
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
	}
	return 0;
}

static int create(struct vb_cma_id *id, struct ibv_srq_init_attr_ex *attr)
{
	int err = check(id, attr->comp_mask & IBV_SRQ_INIT_ATTR_PD ? attr->pd : NULL);

	if (err)
		return err;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->pd = id->pub.pd;
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
	}
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type == IBV_SRQT_XRC)
		err = complete_xrc(id, attr);
	if (!err) {
		id->pub.srq = ibv_create_srq_ex(id->pub.verbs, attr);
		err = id->pub.srq ? 0 : -errno;
	}
	if (err)
		vb_cma_cq_end_srq(id);
	return err;
}

VB_EXPORT int rdma_create_srq(struct rdma_cm_id *pub, struct ibv_pd *pd,
			      struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex full = {0};
	struct vb_cma_id *id = vb_cma_id_of(pub);
	int err = vb_cma_id_check(id, "create_srq");

	if (!err && !attr)
		err = vb_cma_refuse_null("create_srq", "attr");
	if (err)
		return vb_cma_answer(err);
	memcpy(&full, attr, sizeof(*attr)); /* the first members are the same */
	full.comp_mask = pd ? IBV_SRQ_INIT_ATTR_PD : 0;
	full.pd = pd;
	if (pub->qp_type == IBV_QPT_XRC_RECV || pub->qp_type == IBV_QPT_XRC_SEND) {
		full.comp_mask |= IBV_SRQ_INIT_ATTR_TYPE;
		full.srq_type = IBV_SRQT_XRC;
	}
	err = create(id, &full);
	if (!err)
		memcpy(attr, &full, sizeof(*attr));
	return vb_cma_answer(err);
}

VB_EXPORT int rdma_create_srq_ex(struct rdma_cm_id *pub, struct ibv_srq_init_attr_ex *attr)
{
	struct vb_cma_id *id = vb_cma_id_of(pub);
	int err = vb_cma_id_check(id, "create_srq_ex");

	if (!err && !attr)
		err = vb_cma_refuse_null("create_srq_ex", "attr");
	return vb_cma_answer(err ? err : create(id, attr));
}

VB_EXPORT void rdma_destroy_srq(struct rdma_cm_id *pub)
{
	struct vb_cma_id *id = vb_cma_id_of(pub);

	if (vb_cma_id_check(id, "destroy_srq"))
		return;
	if (pub->srq)
		ibv_destroy_srq(pub->srq);
	pub->srq = NULL;
	vb_cma_cq_end_srq(id);
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma_create_qp(3), rdma_destroy_qp(3). */
#include "rdmacm/qp.h"

#include <string.h>

#include "rdmacm/cq.h"
#include "rdmacm/face.h"
#include "rdmacm/id.h"
#include "rdmacm/multicast.h"

void vb_cma_qp_error(struct vb_cma_id *id)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (id->pub.qp)
		(void)ibv_modify_qp(id->pub.qp, &attr, IBV_QP_STATE);
}

static int check_create(const struct vb_cma_id *id, const struct ibv_pd *pd,
			const struct ibv_qp_init_attr_ex *attr)
{
	if (id->pub.qp)
		return vb_refuse(EINVAL, VB_REASON_CMA_STATE, "create_qp: the id has a queue pair");
	if (!id->pub.verbs)
		return vb_refuse(
			EINVAL, VB_REASON_CMA_STATE,
			"create_qp: the id has no device; bind it to an address of one, or "
			"resolve one");
	if (pd && pd->context != id->pub.verbs)
		return vb_refuse(EINVAL, VB_REASON_HANDLE,
				 "create_qp: the protection domain is of another device");
	if (id->pub.recv_cq && attr->recv_cq && attr->recv_cq != id->pub.recv_cq)
		return vb_refuse(EINVAL, VB_REASON_ARG, "create_qp: the id has another recv_cq");
	if (id->pub.send_cq && attr->send_cq && attr->send_cq != id->pub.send_cq)
		return vb_refuse(EINVAL, VB_REASON_ARG, "create_qp: the id has another send_cq");
	return 0;
}

/* Connections begin in INIT, so that receives can be posted; datagrams are ready at once. */
static int prepare(struct vb_cma_id *id)
{
	int err = vb_cma_qp_move(id, IBV_QPS_INIT);

	if (id->pub.qp_type != IBV_QPT_UD)
		return err;
	if (!err)
		err = vb_cma_qp_move(id, IBV_QPS_RTR);
	return err ? err : vb_cma_qp_move(id, IBV_QPS_RTS);
}

static int create(struct vb_cma_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_pd *pd = attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : NULL;
	struct ibv_qp *qp;
	int err = check_create(id, pd, attr);

	if (err)
		return err;
	if (attr->qp_type != IBV_QPT_XRC_RECV) {
		attr->pd = pd ? pd : id->pub.pd;
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
	}
	err = vb_cma_cq_make(id, attr);
	if (err)
		return err;
	qp = ibv_create_qp_ex(id->pub.verbs, attr);
	if (!qp) {
		err = -errno;
		vb_cma_cq_end(id);
		return err;
	}
	id->pub.qp = qp;
	id->pub.qp_type = qp->qp_type;
	err = prepare(id);
	if (err) {
		id->pub.qp = NULL;
		ibv_destroy_qp(qp);
		vb_cma_cq_end(id);
	}
	return err;
}

int vb_cma_qp_create(struct vb_cma_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex full = {0};
	int err;

	memcpy(&full, attr, sizeof(*attr)); /* the first members are the same */
	if (pd) {
		full.pd = pd;
		full.comp_mask = IBV_QP_INIT_ATTR_PD;
	}
	err = create(id, &full);
	if (!err)
		memcpy(attr, &full, sizeof(*attr));
	return err;
}

VB_EXPORT int rdma_create_qp(struct rdma_cm_id *pub, struct ibv_pd *pd,
			     struct ibv_qp_init_attr *attr)
{
	struct vb_cma_id *id = vb_cma_id_of(pub);
	int err = vb_cma_id_check(id, "create_qp");

	if (!err && !attr)
		err = vb_cma_refuse_null("create_qp", "qp_init_attr");
	return vb_cma_answer(err ? err : vb_cma_qp_create(id, pd, attr));
}

VB_EXPORT int rdma_create_qp_ex(struct rdma_cm_id *pub, struct ibv_qp_init_attr_ex *attr)
{
	struct vb_cma_id *id = vb_cma_id_of(pub);
	int err = vb_cma_id_check(id, "create_qp_ex");

	if (!err && !attr)
		err = vb_cma_refuse_null("create_qp_ex", "qp_init_attr");
	return vb_cma_answer(err ? err : create(id, attr));
}

VB_EXPORT void rdma_destroy_qp(struct rdma_cm_id *pub)
{
	struct vb_cma_id *id = vb_cma_id_of(pub);

	if (vb_cma_id_check(id, "destroy_qp"))
		return;
	if (pub->qp) {
		vb_cma_multicast_detach(id);
		ibv_destroy_qp(pub->qp);
	}
	pub->qp = NULL;
	vb_cma_cq_end(id);
}

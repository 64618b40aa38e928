/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdma_set_local_ece(3), rdma_get_remote_ece(3). */
#include <rdma/rdma_cma.h>

#include "base/lock.h"
#include "rdmacm/face.h"
#include "rdmacm/id.h"

/* With a queue pair of the id, the library negotiates; without, the program does. */
static int check(const struct vb_cma_id *id, const struct ibv_ece *ece, const char *call)
{
	int err = vb_cma_id_check(id, call);

	if (!err && !ece)
		err = vb_cma_refuse_null(call, "ece");
	if (!err && id->pub.qp)
		err = vb_refuse(EINVAL, VB_REASON_CMA_STATE, "%s: the id has a queue pair", call);
	return err;
}

VB_EXPORT int rdma_set_local_ece(struct rdma_cm_id *pub, struct ibv_ece *ece)
{
	struct vb_cma_id *id = vb_cma_id_of(pub);
	int err = check(id, ece, "set_local_ece");

	if (!err && !ece->vendor_id)
		err = vb_refuse(EINVAL, VB_REASON_ARG, "set_local_ece: vendor_id is 0");
	if (err)
		return vb_cma_answer(err);
	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	id->ece = *ece;
	vb_mutex_release(&id->lock);
	return 0;
}

VB_EXPORT int rdma_get_remote_ece(struct rdma_cm_id *pub, struct ibv_ece *ece)
{
	struct vb_cma_id *id = vb_cma_id_of(pub);
	int err = check(id, ece, "get_remote_ece");

	if (err)
		return vb_cma_answer(err);
	vb_mutex_take(&id->lock, VB_ORDER_CM_ID);
	*ece = id->remote_ece;
	vb_mutex_release(&id->lock);
	return 0;
}

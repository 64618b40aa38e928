/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Enhanced connection establishment (ibv_set_ece(3)): vendor options that two peers agree on. This
 * device has none. Whatever is asked for, it accepts its own vendor id with no options; peers of
 * another vendor find the same.
 */
#include <errno.h>

#include "base/reason.h"
#include "object/context.h"
#include "process/limits.h"
#include "qp/qp.h"

int vb_qp_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	int err = vb_context_check(qp->context, VB_HANDLE_QP, qp->handle, qp, "qp");

	if (!err)
		*ece = (struct ibv_ece){.vendor_id = VB_VENDOR_ID};
	return err;
}

int vb_qp_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (ece->comp_mask)
		return vb_refuse(EINVAL, VB_REASON_ARG_MASK, "set_ece: comp_mask 0x%x",
				 ece->comp_mask);
	return vb_qp_query_ece(qp, ece);
}

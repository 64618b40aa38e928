/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * XRC domains: ibv_open_xrcd(3), ibv_close_xrcd(3), and the number of an XRC queue:
 * ibv_get_srq_num(3).
 */
#include "verbs/face.h"
#include "verbs/slots.h"

struct ibv_xrcd *vb_slot_open_xrcd(struct ibv_context *ctx, struct ibv_xrcd_init_attr *attr)
{
	struct ibv_xrcd *xrcd = NULL;
	int err = attr ? vb_ops(ctx)->open_xrcd(ctx, attr, &xrcd)
		       : vb_refuse_null("open_xrcd", "xrcd_init_attr");

	return err ? vb_answer_null(err) : xrcd;
}

int vb_slot_close_xrcd(struct ibv_xrcd *xrcd)
{
	return vb_answer(vb_ops(xrcd->context)->close_xrcd(xrcd));
}

int vb_slot_get_srq_num(struct ibv_srq *srq, uint32_t *number)
{
	if (!number)
		return vb_answer(vb_refuse_null("get_srq_num", "srq_num"));
	return vb_answer(vb_ops(srq->context)->get_srq_num(srq, number));
}

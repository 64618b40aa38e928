/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Protection, parent and thread domains: ibv_alloc_pd(3), ibv_alloc_parent_domain(3),
 * ibv_alloc_td(3).
 */
#include "verbs/face.h"
#include "verbs/slots.h"

VB_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
	struct ibv_pd *pd = NULL;
	int err = ctx ? vb_ops(ctx)->alloc_pd(ctx, &pd) : vb_refuse_null("alloc_pd", "context");

	return err ? vb_answer_null(err) : pd;
}

VB_EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
	if (!pd)
		return vb_answer(vb_refuse_null("dealloc_pd", "pd"));
	return vb_answer(vb_ops(pd->context)->dealloc_pd(pd));
}

struct ibv_pd *vb_slot_alloc_parent_domain(struct ibv_context *ctx,
					   struct ibv_parent_domain_init_attr *attr)
{
	struct ibv_pd *pd = NULL;
	int err = attr ? vb_ops(ctx)->alloc_parent_domain(ctx, attr, &pd)
		       : vb_refuse_null("alloc_parent_domain", "attr");

	return err ? vb_answer_null(err) : pd;
}

struct ibv_td *vb_slot_alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *attr)
{
	struct ibv_td *td = NULL;
	int err = attr ? vb_check_mask("alloc_td", "comp_mask", attr->comp_mask, 0)
		       : vb_refuse_null("alloc_td", "init_attr");

	if (!err)
		err = vb_ops(ctx)->alloc_td(ctx, &td);
	return err ? vb_answer_null(err) : td;
}

int vb_slot_dealloc_td(struct ibv_td *td)
{
	return vb_answer(vb_ops(td->context)->dealloc_td(td));
}

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Protection domains: ibv_alloc_pd(3). */
#include "verbs/face.h"

VB_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
	struct ibv_pd *pd = NULL;
	int err = vb_ops(ctx)->alloc_pd(ctx, &pd);

	return err ? vb_answer_null(err) : pd;
}

VB_EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
	if (!pd)
		return vb_answer(vb_refuse_null("dealloc_pd", "pd"));
	return vb_answer(vb_ops(pd->context)->dealloc_pd(pd));
}

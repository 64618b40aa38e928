/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sharing objects by descriptor and handle: ibv_import_device(3), ibv_import_pd(3),
 * ibv_import_mr(3), ibv_import_dm(3). An imported object is a view; unimport and destroy both end
 * the view.
 */
#include "verbs/face.h"
#include "verbs/slots.h"

VB_EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct ibv_context *ctx = NULL;
	int err = vb_provider.import_device(cmd_fd, &ctx);

	if (err)
		return vb_answer_null(err);
	vb_slots_fill(ctx);
	return ctx;
}

VB_EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *ctx, uint32_t pd_handle)
{
	struct ibv_pd *pd = NULL;
	int err = ctx ? vb_ops(ctx)->import_pd(ctx, pd_handle, &pd)
		      : vb_refuse_null("import_pd", "context");

	return err ? vb_answer_null(err) : pd;
}

VB_EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
	if (pd)
		vb_answer(vb_ops(pd->context)->dealloc_pd(pd));
}

VB_EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	struct ibv_mr *mr = NULL;
	int err;

	if (!pd)
		return vb_answer_null(vb_refuse_null("import_mr", "pd"));
	err = vb_ops(pd->context)->import_mr(pd, mr_handle, &mr);
	return err ? vb_answer_null(err) : mr;
}

VB_EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
	if (mr)
		vb_answer(vb_ops(mr->context)->dereg_mr(mr));
}

VB_EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *ctx, uint32_t dm_handle)
{
	struct ibv_dm *dm = NULL;
	int err = ctx ? vb_ops(ctx)->import_dm(ctx, dm_handle, &dm)
		      : vb_refuse_null("import_dm", "context");

	return err ? vb_answer_null(err) : vb_face_dm(dm);
}

VB_EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
	if (dm)
		vb_answer(vb_ops(dm->context)->free_dm(dm));
}

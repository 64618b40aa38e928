/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sharing objects between processes by descriptor and handle: ibv_import_device(3),
 * ibv_import_pd(3), ibv_import_mr(3), ibv_import_dm(3). Not offered yet.
 */
#include "verbs/face.h"

VB_EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	(void)cmd_fd;
	return vb_answer_null(vb_refuse_verb("import_device"));
}

VB_EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *ctx, uint32_t pd_handle)
{
	(void)ctx;
	(void)pd_handle;
	return vb_answer_null(vb_refuse_verb("import_pd"));
}

VB_EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
	(void)pd;
	vb_refuse_verb("unimport_pd");
}

VB_EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	(void)pd;
	(void)mr_handle;
	return vb_answer_null(vb_refuse_verb("import_mr"));
}

VB_EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
	(void)mr;
	vb_refuse_verb("unimport_mr");
}

VB_EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *ctx, uint32_t dm_handle)
{
	(void)ctx;
	(void)dm_handle;
	return vb_answer_null(vb_refuse_verb("import_dm"));
}

VB_EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
	(void)dm;
	vb_refuse_verb("unimport_dm");
}

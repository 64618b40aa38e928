/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that a device provides or describes: buffers, device memory's export, DMA handles.
 * No device of ours has any of it yet; each answer says so.
 */
#include "verbs/face.h"

VB_EXPORT void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf)
{
	(void)pd;
	(void)size;
	(void)buf;
	return vb_answer_null(vb_refuse_verb("alloc_buf"));
}

VB_EXPORT void ibv_free_buf(struct ibv_buf *buf)
{
	if (buf)
		vb_refuse_verb("free_buf");
}

VB_EXPORT struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr,
					size_t length, int access)
{
	(void)pd;
	(void)buf;
	(void)addr;
	(void)length;
	(void)access;
	return vb_answer_null(vb_refuse_verb("reg_buf_mr"));
}

VB_EXPORT int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf)
{
	(void)buf;
	return vb_answer_minus_one(vb_refuse_verb("export_buf_dmabuf_fd"));
}

VB_EXPORT int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm)
{
	(void)dm;
	return vb_answer_minus_one(vb_refuse_verb("dm_export_dmabuf_fd"));
}

VB_EXPORT struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *ctx, struct ibv_dmah_init_attr *attr)
{
	(void)ctx;
	(void)attr;
	return vb_answer_null(vb_refuse_verb("alloc_dmah"));
}

VB_EXPORT int ibv_dealloc_dmah(struct ibv_dmah *dmah)
{
	(void)dmah;
	return vb_answer(vb_refuse_verb("dealloc_dmah"));
}
